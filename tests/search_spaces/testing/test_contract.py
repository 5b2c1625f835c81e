"""The contract of topologies: each check finds the fault that it is there for."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

import search_spaces.testing.checks
from expect import breaks, raises
from nas.costs.count import count_macs
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count, Handlers
from search_spaces.support.spec import Axes
from search_spaces.testing.checks import CONTRACT
from search_spaces.testing.contract import check_topology
from search_spaces.topologies.base import InputMode, Wiring
from search_spaces.topologies.chain import Chain


class Gated(Chain):
    """x_{t+1} = x_t + w_t f_t(x_t), with a weight for each layer that is 1 at the start."""

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return True

    def __init__(self, wiring: Wiring, options: Any) -> None:
        super().__init__(wiring, options)
        self.w = nn.Parameter(torch.ones(len(wiring.sites)))

    @classmethod
    def count(cls, wiring: Wiring, options: Any) -> Count:
        return Count(params=len(wiring.sites), elementwise=2 * len(wiring.sites) * wiring.width)

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return state + self.w[t] * y


def test_a_correct_topology_passes_and_each_check_prints_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    check_topology(Gated, compiles=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(CONTRACT) + 1
    assert all(line.startswith("Gated: ") and len(line) > 30 for line in lines)


def test_a_source_with_other_defaults_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_spaces.testing.checks, "option_defaults", lambda *_: {"k": 3})
    with breaks("source-tells-defaults", value={"k": 3}):
        check_topology(Gated)


def test_an_installed_topology_is_named_by_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    check_topology("grn-v1(k=1)")
    assert capsys.readouterr().out.startswith("grn-v1(k=1): ")


class Wide(Gated):
    """Gives what it is not asked for."""

    def close(self, state: Tensor) -> Tensor:
        return torch.cat((state, state), dim=-1)


class Unused(Gated):
    """Has a weight that nothing reads."""

    def __init__(self, wiring: Wiring, options: Any) -> None:
        super().__init__(wiring, options)
        self.idle = nn.Parameter(torch.zeros(1))

    @classmethod
    def count(cls, wiring: Wiring, options: Any) -> Count:
        return super().count(wiring, options) + Count(params=1)


class Miscounted(Gated):
    """Forgets its weights in the closed form."""

    @classmethod
    def count(cls, wiring: Wiring, options: Any) -> Count:
        return Count()


class Busy(Gated):
    """Forgets a product in the closed form."""

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return super().write(t, state, y @ torch.eye(y.shape[-1], dtype=y.dtype, device=y.device))


class Keeping(Gated):
    """Keeps on the module what belongs in the state."""

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        self.last = state
        return super().read(t, state)


class Meeting(Keeping):
    """Reads what another forward may have left on the module."""

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return super().write(t, self.last, y)


class Twofold(Gated):
    """Reads otherwise in a backward pass."""

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        (x,), state = super().read(t, state)
        in_backward = torch._C._current_graph_task_id() >= 0
        return (x * (self.w[t] + in_backward),), state


class Mixing(Gated):
    """Lets tokens see one another."""

    def close(self, state: Tensor) -> Tensor:
        return state + 0.0 * state if state.ndim < 3 else state + 0.1 * state.mean(1, keepdim=True)


class Late(Gated):
    """Claims to start as the residual network, and starts at half of it."""

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return state + 0.5 * self.w[t] * y


class Behind(Late):
    """Claims to do so behind norms."""

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return False

    @classmethod
    def equals_resnet_behind_norms(cls, options: Any) -> bool:
        return True


class Weaker(Gated):
    """Claims to do so with every strength."""

    axes: ClassVar[Axes] = {"strength": (1.0, 0.5)}

    @dataclass(frozen=True)
    class Options:
        strength: float = 1.0

    def __init__(self, wiring: Wiring, options: Options) -> None:
        super().__init__(wiring, options)
        self.strength = options.strength

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return super().write(t, state, self.strength * y)


class Otherwise(Gated):
    """Delivers otherwise than its class says."""

    @classmethod
    def input_mode_of(cls, options: Any) -> InputMode:
        return "bare"


class Fragile(Gated):
    """Loses its numbers where they are coarse."""

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return super().write(t, state, y if y.dtype != torch.bfloat16 else y * 1e30 * 1e30)


class Silent(Gated):
    """Refuses without a reason."""

    @classmethod
    def refusal(cls, architecture: Architecture, options: Any) -> str | None:
        return "" if not architecture.heads else None


class Loose(Gated):
    """Searches an option that it has not."""

    axes: ClassVar[Axes] = {"strength": (1, 2)}


class Growing(Gated):
    """Grows a thousandfold with each layer behind the sixth."""

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return False

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return (1000 if t > 5 else 1) * super().write(t, state, y)


class Steep(Gated):
    """Has gradients without bound behind the sixth layer, and features as before."""

    def __init__(self, wiring: Wiring, options: Any) -> None:
        super().__init__(wiring, options)
        self.v = nn.Parameter(torch.ones(1))

    @classmethod
    def count(cls, wiring: Wiring, options: Any) -> Count:
        return super().count(wiring, options) + Count(params=1)

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        root = self.v * self.w[t]
        return super().write(t, state, self.v * y + ((root - root.detach()).sqrt() if t > 5 else 0))


class Flat(Gated):
    """Shows its weights without rows."""

    def coefficients(self) -> dict[str, Tensor]:
        return {"w": self.w[0]}


@dataclass
class Changing:
    """Options that can be changed behind an architecture's back."""

    strength: int = 1


class Thawed(Gated):
    """Has such options."""

    Options: ClassVar[type] = Changing


class Breaking(Gated):
    """Does what torch.compile cannot follow."""

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        torch._dynamo.graph_break()
        return super().write(t, state, y)


@pytest.mark.parametrize(
    ("kind", "check", "fields"),
    [
        (Wide, "shape-is-kept", {"shape": (2, 5, 32)}),
        (Unused, "parameters-learn", {"depth": 1, "parameters": ("idle",)}),
        (Miscounted, "params-are-counted", {"closed_form": 0, "counted": 6}),
        (Busy, "macs-are-counted", {"closed_form": 0}),
        (Keeping, "modules-keep-no-tensor", {"modules": ("the topology",)}),
        (Meeting, "forwards-do-not-meet", {}),
        (Twofold, "recomputed-gradients-are-equal", {}),
        (Mixing, "positions-do-not-meet", {"positions": (0, 1, 3, 4)}),
        (Late, "starts-as-claimed", {"claim": "equals_resnet"}),
        (Behind, "starts-as-claimed", {"claim": "equals_resnet_behind_norms"}),
        (Weaker, "starts-as-claimed", {"claim": "equals_resnet", "options": "Weaker.Options(strength=0.5)"}),
        (Otherwise, "delivers-what-it-says", {"delivered": "bare", "input_mode": "shared"}),
        (Fragile, "bf16-is-near-float32", {}),
        (Growing, "deep-features-are-finite", {}),
        (Steep, "deep-gradients-are-finite", {"parameters": ("topology.w", "topology.v")}),
        (Flat, "coefficients-have-rows", {"coefficients": "w"}),
        (Silent, "reason-is-not-empty", {}),
        (Loose, "axes-are-options", {"axes": ("strength",)}),
        (Thawed, "options-are-frozen", {}),
    ],
)
def test_each_fault_is_found_by_its_check(kind: type[Gated], check: str, fields: dict[str, Any]) -> None:
    with breaks(check, **fields):
        check_topology(kind)


def test_a_topology_that_cannot_be_compiled_is_found_on_request() -> None:
    check_topology(Breaking)
    with pytest.raises(torch._dynamo.exc.Unsupported) as caught:
        check_topology(Breaking, compiles=True)
    assert "graph_break" in str(caught.value)


def test_a_parameter_named_as_still_need_not_learn() -> None:
    check_topology(Unused, still=("idle",))


def test_an_unknown_topology_is_refused_with_the_nearest_name() -> None:
    with raises("unknown-name", option="topology", value="resnett", nearest="resnet"):
        check_topology("resnett")


class Spectral(Gated):
    """Filters features by their spectrum, and says what an FFT costs."""

    handlers: ClassVar[Handlers] = {"aten::fft_rfft": lambda inputs, outputs: 10 * inputs[0][0] * inputs[0][1],
                                    "aten::fft_irfft": None}  # fmt: skip

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return False

    @classmethod
    def count(cls, wiring: Wiring, options: Any) -> Count:
        return super().count(wiring, options) + Count(macs=10)

    def close(self, state: Tensor) -> Tensor:
        return torch.fft.irfft(torch.fft.rfft(state.float()), n=state.shape[-1]).to(state.dtype)


def test_a_topology_with_handlers_is_checked_by_the_counter_that_knows_them() -> None:
    check_topology(Spectral, count_macs=lambda network, inputs: count_macs(network, inputs)[0])
    with breaks("macs-are-counted", closed_form=70, counted=0):
        check_topology(Spectral)
