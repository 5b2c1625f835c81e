"""The contract of topologies: each check finds its fault."""

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
from search_spaces.testing.subject import ContractError
from search_spaces.topologies.base import InputMode, StackSpec
from search_spaces.topologies.single_stream import SingleStreamTopology


class Gated(SingleStreamTopology):
    """x_{t+1} = x_t + w_t f_t(x_t), with a weight per layer that starts at 1."""

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return True

    def __init__(self, spec: StackSpec, options: Any) -> None:
        super().__init__(spec, options)
        self.w = nn.Parameter(torch.ones(len(spec.sites)))

    @classmethod
    def count(cls, spec: StackSpec, options: Any) -> Count:
        return Count(params=len(spec.sites), elementwise=2 * len(spec.sites) * spec.width)

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


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    """One weight for each layer, or one for each feature."""

    per_feature: bool = False


class IgnoresOption(Gated):
    """Counts the weights of an option that it does not build."""

    Options = ScaleOptions
    axes: ClassVar[Axes] = {"per_feature": (False, True)}

    @classmethod
    def count(cls, spec: StackSpec, options: ScaleOptions) -> Count:
        count = super().count(spec, options)
        return count + Count(params=len(spec.sites) * (spec.width - 1)) if options.per_feature else count


def test_each_value_of_an_axis_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ContractError):
        check_topology(IgnoresOption)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > len(CONTRACT)
    assert lines[-1].startswith("IgnoresOption(per_feature=true): ")


class Wide(Gated):
    """Returns another shape."""

    def close(self, state: Tensor) -> Tensor:
        return torch.cat((state, state), dim=-1)


class UnusedParameter(Gated):
    """Has an unused weight."""

    def __init__(self, spec: StackSpec, options: Any) -> None:
        super().__init__(spec, options)
        self.idle = nn.Parameter(torch.zeros(1))

    @classmethod
    def count(cls, spec: StackSpec, options: Any) -> Count:
        return super().count(spec, options) + Count(params=1)


class WrongCount(Gated):
    """Omits its weights in the closed form."""

    @classmethod
    def count(cls, spec: StackSpec, options: Any) -> Count:
        return Count()


class Busy(Gated):
    """Omits a product in the closed form."""

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return super().write(t, state, y @ torch.eye(y.shape[-1], dtype=y.dtype, device=y.device))


class Keeping(Gated):
    """Stores state on the module."""

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        self.last = state
        return super().read(t, state)


class Meeting(Keeping):
    """Reads state of another forward from the module."""

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return super().write(t, self.last, y)


class Twofold(Gated):
    """Reads differently when recomputed."""

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        (x,), state = super().read(t, state)
        in_backward = torch._C._current_graph_task_id() >= 0
        return (x * (self.w[t] + in_backward),), state


class Mixing(Gated):
    """Mixes tokens."""

    def close(self, state: Tensor) -> Tensor:
        return state + 0.0 * state if state.ndim < 3 else state + 0.1 * state.mean(1, keepdim=True)


class Late(Gated):
    """Claims to start as the residual network, but starts at half of it."""

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return state + 0.5 * self.w[t] * y


class Behind(Late):
    """Claims the same behind norms."""

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return False

    @classmethod
    def equals_resnet_with_norms(cls, options: Any) -> bool:
        return True


class Weaker(Gated):
    """Claims the same at every strength."""

    axes: ClassVar[Axes] = {"strength": (1.0, 0.5)}

    @dataclass(frozen=True)
    class Options:
        strength: float = 1.0

    def __init__(self, spec: StackSpec, options: Options) -> None:
        super().__init__(spec, options)
        self.strength = options.strength

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return super().write(t, state, self.strength * y)


class Otherwise(Gated):
    """Has another input mode than its class declares."""

    @classmethod
    def input_mode_of(cls, options: Any) -> InputMode:
        return "bare"


class Fragile(Gated):
    """Overflows in low precision."""

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return super().write(t, state, y if y.dtype != torch.bfloat16 else y * 1e30 * 1e30)


class Silent(Gated):
    """Refuses without a reason."""

    @classmethod
    def incompatibility_reason(cls, architecture: Architecture, options: Any) -> str | None:
        return "" if not architecture.heads else None


class Loose(Gated):
    """Has an axis without an option."""

    axes: ClassVar[Axes] = {"strength": (1, 2)}


class Growing(Gated):
    """Grows a thousandfold per layer after the sixth."""

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return False

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return (1000 if t > 5 else 1) * super().write(t, state, y)


class Steep(Gated):
    """Has unbounded gradients after the sixth layer."""

    def __init__(self, spec: StackSpec, options: Any) -> None:
        super().__init__(spec, options)
        self.v = nn.Parameter(torch.ones(1))

    @classmethod
    def count(cls, spec: StackSpec, options: Any) -> Count:
        return super().count(spec, options) + Count(params=1)

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        root = self.v * self.w[t]
        return super().write(t, state, self.v * y + ((root - root.detach()).sqrt() if t > 5 else 0))


class Flat(Gated):
    """Reports its weights without rows."""

    def coefficients(self) -> dict[str, Tensor]:
        return {"w": self.w[0]}


@dataclass
class Changing:
    """Mutable options."""

    strength: int = 1


class NeverFrozen(Gated):
    """Has mutable options."""

    Options: ClassVar[type] = Changing


class Breaking(Gated):
    """Breaks torch.compile's graph."""

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        torch._dynamo.graph_break()
        return super().write(t, state, y)


@pytest.mark.parametrize(
    ("kind", "check", "fields"),
    [
        (Wide, "shape-is-kept", {"shape": (2, 5, 32)}),
        (UnusedParameter, "parameters-learn", {"depth": 1, "parameters": ("idle",)}),
        (WrongCount, "params-are-counted", {"closed_form": 0, "counted": 6}),
        (Busy, "macs-are-counted", {"closed_form": 0}),
        (Keeping, "modules-keep-no-tensor", {"modules": ("the topology",)}),
        (Meeting, "forwards-do-not-meet", {}),
        (Twofold, "recomputed-gradients-are-equal", {}),
        (Mixing, "positions-do-not-meet", {"positions": (0, 1, 3, 4)}),
        (Late, "starts-as-claimed", {"claim": "equals_resnet"}),
        (Behind, "starts-as-claimed", {"claim": "equals_resnet_with_norms"}),
        (Weaker, "starts-as-claimed", {"claim": "equals_resnet", "options": "Weaker.Options(strength=0.5)"}),
        (Otherwise, "delivers-what-it-says", {"delivered": "bare", "input_mode": "shared"}),
        (Fragile, "bf16-is-near-float32", {}),
        (Growing, "deep-features-are-finite", {}),
        (Steep, "deep-gradients-are-finite", {"parameters": ("topology.w", "topology.v")}),
        (Flat, "coefficients-have-rows", {"coefficients": "w"}),
        (Silent, "reason-is-not-empty", {}),
        (Loose, "axes-are-options", {"axes": ("strength",)}),
        (NeverFrozen, "options-are-frozen", {}),
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


def test_a_parameter_marked_still_may_not_learn() -> None:
    check_topology(UnusedParameter, still=("idle",))


def test_an_unknown_topology_is_refused_with_the_nearest_name() -> None:
    with raises("unknown-name", option="topology", value="resnett", nearest="resnet"):
        check_topology("resnett")


class Spectral(Gated):
    """Filters features in the frequency domain, with a handler for the FFT."""

    handlers: ClassVar[Handlers] = {"aten::fft_rfft": lambda inputs, outputs: 10 * inputs[0][0] * inputs[0][1],
                                    "aten::fft_irfft": None}  # fmt: skip

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return False

    @classmethod
    def count(cls, spec: StackSpec, options: Any) -> Count:
        return super().count(spec, options) + Count(macs=10)

    def close(self, state: Tensor) -> Tensor:
        return torch.fft.irfft(torch.fft.rfft(state.float()), n=state.shape[-1]).to(state.dtype)


def test_a_topology_with_handlers_is_checked_by_the_counter_that_knows_them() -> None:
    check_topology(Spectral, count_macs=lambda network, inputs: count_macs(network, inputs)[0])
    with breaks("macs-are-counted", closed_form=70, counted=0):
        check_topology(Spectral)
