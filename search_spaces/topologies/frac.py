"""Frac-connections: the residual stream is divided into parts, which are mixed before and after each layer.

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
from search_spaces.topologies.base import StackSpec, Topology, largest_divisor, sum_tensors


@dataclass(frozen=True, slots=True)
class FracOptions:
    """The number of parts, and whether their mixing depends on the input.

    Attributes:
        parts: Number of parts of the stream, m; it must divide the width.
        dynamic: Whether a linear map of the parts is added to the learned matrices.
    """

    parts: int = 4
    dynamic: bool = True

    def __post_init__(self) -> None:
        check_at_least("parts", self.parts, 1)


class FracConnection(nn.Module):
    """The matrices of one layer, concatenated: Y and A, [M, M], and B, [M]."""

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
    """The input-dependent term s tanh(norm(H) W); Y and A share one s, B has its own."""

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

    At initialization Y = A = I and B = 1: the residual network. Dynamic: Y + s tanh(norm(H) W_Y), likewise A and B. W
    starts at 0 and s at 0.01; norm applies to each part separately. The state is H; between `read` and `write` it is
    (A^T H, B).

    Source: Zhu et al., Frac-Connections (arXiv 2503.14125, 2025): hyper-connections in which each stream is a fraction
    of the width instead of a copy. Differences and choices:

    * The norm has a gain and no bias. This gives the printed 165,056 dynamic parameters (m = 4, width 2048, 32 layers),
      besides 1,152 static ones.
    * The paper calls s "small"; here it is 0.01, as in hyper-connections.
    * Static matrices are not weight-decayed, W is.

    Parameters: `layers * (parts * (2 * parts + 1) + ((width // parts) * (2 * parts + 2) + 2 if dynamic else 0))`

    Raises:
        UserError: The parts do not divide the width.
    """

    Options: ClassVar[type] = FracOptions
    axes: ClassVar[Axes] = {"parts": (2, 4), "dynamic": (True, False)}
    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return True

    def __init__(self, spec: StackSpec, options: FracOptions) -> None:
        super().__init__()
        reason = _incompatibility_reason(spec.width, options)
        if reason is not None:
            raise UserError("mismatch", reason, option="parts", value=options.parts, width=spec.width)
        self.parts = options.parts
        self.connections = nn.ModuleList(FracConnection(spec.width, options) for _ in spec.sites)

    @classmethod
    def incompatibility_reason(cls, architecture: Architecture, options: FracOptions) -> str | None:
        """Refuse widths that are no multiple of the parts."""
        return _incompatibility_reason(architecture.width, options)

    @classmethod
    def count(cls, spec: StackSpec, options: FracOptions) -> Count:
        """Count Y, A, B, W and a gain; the products Y^T H, A^T H and norm(H) W. Elementwise: + s tanh, and + B f."""
        m, width = options.parts, spec.width
        entries = m * (2 * m + 1)
        layer = Count(entries, 2 * m * width, 2 * width)
        if options.dynamic:
            layer += linear(width // m, 2 * m + 1, bias=False).at_positions(m)
            layer += Count(width // m + 2, 0, 2 * entries)
        return layer.copies(len(spec.sites))

    def coefficients(self) -> dict[str, Tensor]:
        """Return Y, A and B of each layer, without their input-dependent terms."""
        static = torch.stack([connection.get_parameter("static") for connection in self.connections])  # [L, M, 2 M + 1]
        y, a, b = static.split((m := static.shape[1], m, 1), dim=-1)
        return {"Y": y, "A": a, "B": b.squeeze(-1)}

    def open(self, *embeddings: Tensor) -> Tensor:
        """Divide the network's input into parts."""
        return torch.unflatten(sum_tensors(embeddings), -1, (self.parts, -1))

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Any]:
        """Return the mixed parts as one input; the state holds the mixed stream and the weights of the output."""
        matrices = self.connections[t](state)
        read, carry, write = matrices.split((self.parts, self.parts, 1), dim=-1)
        return ((read.mT @ state).flatten(-2),), (carry.mT @ state, write)

    def write(self, t: int, state: Any, y: Tensor) -> Tensor:
        stream, weights = state
        return torch.addcmul(stream, weights, y.unflatten(-1, (self.parts, -1)))

    def close(self, state: Tensor) -> Tensor:
        return state.flatten(-2)


def _incompatibility_reason(width: int, options: FracOptions) -> str | None:
    if width % options.parts:
        rule = f"frac's parts must divide the width, got parts={options.parts} and width={width}"
        return f"{rule}. Use parts={largest_divisor(width, options.parts)}."
    return None
