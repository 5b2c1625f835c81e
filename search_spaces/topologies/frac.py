"""Frac-connections: the residual stream in parts, which are mixed before and after each layer.

Shapes: ... = any leading axes, D = width, M = parts; H is the parts, [..., M, D / M].
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count, linear
from search_spaces.support.errors import UserError, check_at_least
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import Topology, Wiring, largest_divisor, sum_tensors


@dataclass(frozen=True, slots=True)
class FracOptions:
    """How many parts the stream has, and whether their mixing depends on the input.

    Attributes:
        parts: m; it must divide the width.
        dynamic: Add to the learned matrices what a linear map makes of the parts.
    """

    parts: int = 4
    dynamic: bool = True

    def __post_init__(self) -> None:
        check_at_least("parts", self.parts, 1)


class FracConnection(nn.Module):
    """The matrices of one layer: Y and A, [M, M], and B, [M], side by side."""

    def __init__(self, width: int, options: FracOptions) -> None:
        super().__init__()
        m = options.parts
        self.static = nn.Parameter(torch.cat((torch.eye(m), torch.eye(m), torch.ones(m, 1)), dim=1))
        self.dynamic = FracDynamic(width // m, m) if options.dynamic else None

    def forward(self, parts: Tensor) -> Tensor:
        """Return [Y | A | B], [..., M, 2 M + 1], for parts [..., M, D / M]."""
        if self.dynamic is None:
            return self.static.expand(*parts.shape[:-1], -1)
        return self.static + self.dynamic(parts)  # type: ignore[no-any-return]  # nn.Module returns Any


class FracDynamic(nn.Module):
    """What the input adds: s tanh(norm(H) W), where Y and A have one s and B has another."""

    def __init__(self, size: int, parts: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(size, 1e-6)
        self.project = nn.Linear(size, 2 * parts + 1, bias=False)
        nn.init.zeros_(self.project.weight)
        self.scale_mix = nn.Parameter(torch.tensor(0.01))
        self.scale_write = nn.Parameter(torch.tensor(0.01))

    def forward(self, parts: Tensor) -> Tensor:
        """Map [..., M, D / M] to [..., M, 2 M + 1]."""
        change = torch.tanh(self.project(self.norm(parts)))
        scale = torch.cat((self.scale_mix.expand(change.shape[-1] - 1), self.scale_write.expand(1)))
        return scale * change


@final
class FracConnections(Topology):
    """Frac-connections (Zhu et al., 2025): the stream in parts, which are read, written and mixed by learned weights.

    With H the stream in m parts: the layer reads Y^T H, and then H' = A^T H + B f(Y^T H), its output in parts too.

    At the start Y = A = I and B = 1: the residual network. Dynamic: Y + s tanh(norm(H) W_Y), likewise A and B, with
    W = 0 and s = 0.01 at the start, where norm is of each part by itself. The state is H; between `read` and `write`
    it is (A^T H, B).

    Source: Zhu et al., Frac-Connections (arXiv 2503.14125, 2025): hyper-connections with a fraction of the width for
    each stream in place of copies. Readings taken:

    * The norm has a gain and no bias, which gives the printed 165,056 parameters (m = 4, width 2048, 32 layers) beside
      1,152 static ones.
    * s is "small"; 0.01 as in hyper-connections.
    * Static matrices are not weight-decayed, W is.

    Parameters: `layers * (parts * (2 * parts + 1) + ((width // parts) * (2 * parts + 2) + 2 if dynamic else 0))`

    Raises:
        UserError: What `refusal` says.
    """

    Options: ClassVar[type] = FracOptions
    axes: ClassVar[Axes] = {"parts": (2, 4), "dynamic": (True, False)}
    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        """Always."""
        return True

    def __init__(self, wiring: Wiring, options: FracOptions) -> None:
        super().__init__()
        reason = _refusal(wiring.width, options)
        if reason is not None:
            raise UserError("mismatch", reason, option="parts", value=options.parts, width=wiring.width)
        self.parts = options.parts
        self.connections = nn.ModuleList(FracConnection(wiring.width, options) for _ in wiring.sites)

    @classmethod
    def refusal(cls, architecture: Architecture, options: FracOptions) -> str | None:
        """Widths that are no multiple of the parts."""
        return _refusal(architecture.width, options)

    @classmethod
    def count(cls, wiring: Wiring, options: FracOptions) -> Count:
        """Y, A, B, W and a gain; the products Y^T H, A^T H and norm(H) W. Elementwise: + s tanh, and + B f."""
        m, width = options.parts, wiring.width
        entries = m * (2 * m + 1)
        layer = Count(entries, 2 * m * width, 2 * width)
        if options.dynamic:
            layer += linear(width // m, 2 * m + 1, bias=False).times(m)
            layer += Count(width // m + 2, 0, 2 * entries)
        return layer.repeat(len(wiring.sites))

    def coefficients(self) -> dict[str, Tensor]:
        """Y, A and B of each layer, without what the input adds."""
        static = torch.stack([connection.get_parameter("static") for connection in self.connections])  # [L, M, 2 M + 1]
        y, a, b = static.split((m := static.shape[1], m, 1), dim=-1)
        return {"Y": y, "A": a, "B": b.squeeze(-1)}

    def open(self, *parts: Tensor) -> Tensor:
        """Cut the network's input into parts."""
        return torch.unflatten(sum_tensors(parts), -1, (self.parts, -1))

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Any]:
        """Give the mixed parts as one input, and carry those for the stream and the weights of the output."""
        matrices = self.connections[t](state)
        read, carry, write = matrices.split((self.parts, self.parts, 1), dim=-1)
        return ((read.mT @ state).flatten(-2),), (carry.mT @ state, write)

    def write(self, t: int, state: Any, y: Tensor) -> Tensor:
        """Add the weighted output, part by part."""
        stream, weights = state
        return torch.addcmul(stream, weights, y.unflatten(-1, (self.parts, -1)))

    def close(self, state: Tensor) -> Tensor:
        """Return the parts as one."""
        return state.flatten(-2)


def _refusal(width: int, options: FracOptions) -> str | None:
    if width % options.parts:
        rule = f"frac's parts must divide the width, got parts={options.parts} and width={width}"
        return f"{rule}. Take parts={largest_divisor(width, options.parts)}."
    return None
