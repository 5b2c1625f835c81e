"""Hyper-connections: several parallel residual streams, mixed before and after each layer.

Shapes: ... = any leading axes, D = width, N = streams; H is the streams, [..., N, D].
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.support.count import Count
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import StackSpec, Topology, sum_tensors

MAX_STREAMS = 64
"""Maximum number of streams, eight times the paper's largest; a typing error could exhaust the memory."""


@dataclass(frozen=True, slots=True)
class HyperOptions:
    """The number of streams, and whether their mixing depends on the input.

    Attributes:
        streams: Number of parallel streams, n.
        dynamic: Whether a linear map of the streams is added to the learned matrices.
    """

    streams: int = 4
    dynamic: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.streams <= MAX_STREAMS:
            rule = f"streams must be from 1 to {MAX_STREAMS}, got {self.streams}."
            raise UserError("out-of-range", rule, option="streams", value=self.streams, least=1, most=MAX_STREAMS)


class Connection(nn.Module):
    """The matrices of one layer, concatenated: A = [A_m | A_r], [N, N + 1], and B, [N].

    At initialization A_m = e_{t mod N}, A_r = I and B = 1. Dynamic: A + s_a tanh(norm(H) W_a), B + s_b tanh(norm(H)
    w_b), with W initialized to 0 and s to 0.01 (equations 10 to 14).
    """

    def __init__(self, t: int, width: int, options: HyperOptions) -> None:
        super().__init__()
        n = options.streams
        read = F.one_hot(torch.tensor([t % n]), n).mT
        self.static = nn.Parameter(torch.cat((read, torch.eye(n), torch.ones(n, 1)), dim=1))
        self.dynamic = Dynamic(width, n) if options.dynamic else None

    def forward(self, streams: Tensor) -> Tensor:
        """Return [A | B], [..., N, N + 2], for streams [..., N, D]."""
        if self.dynamic is None:
            return self.static.expand(*streams.shape[:-1], -1)
        return self.static + self.dynamic(streams)  # type: ignore[no-any-return]  # nn.Module returns Any


class Dynamic(nn.Module):
    """The input-dependent term of [A | B]: s * tanh(norm(H) W), where A and B have an s each."""

    def __init__(self, width: int, streams: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, streams + 2, bias=False)
        nn.init.zeros_(self.project.weight)
        self.scale_a = nn.Parameter(torch.tensor(0.01))
        self.scale_b = nn.Parameter(torch.tensor(0.01))

    def forward(self, streams: Tensor) -> Tensor:
        """Map [..., N, D] to [..., N, N + 2]."""
        mix = torch.tanh(self.project(F.layer_norm(streams, streams.shape[-1:])))
        scale = torch.cat((self.scale_a.expand(mix.shape[-1] - 1), self.scale_b.expand(1)))
        return scale * mix


class ParallelStreams(Topology):
    """The common part of topologies with parallel streams: copies of the input at first, their mean at the end."""

    streams: int

    def open(self, *embeddings: Tensor) -> Tensor:
        return torch.stack((sum_tensors(embeddings),) * self.streams, dim=-2)  # [..., N, D]

    def close(self, state: Tensor) -> Tensor:
        return state.mean(-2)


@final
class HyperConnections(ParallelStreams):
    """Hyper-connections (Zhu et al., 2024): parallel streams, read, written and mixed by learned weights.

    With H the streams: the layer reads A_m^T H, and then H' = A_r^T H + B^T f(A_m^T H). The output head reads mean(H).

    H starts as n copies of the network's input. The state is H, [..., N, D]; between `read` and `write` it is (A_r^T H,
    B).

    Source: Zhu et al., Hyper-Connections (2024), equations 1 to 14 and algorithm 2. Differences and choices:

    * The paper sums the streams before a final norm. The mean differs by a factor n, which the norm removes, forward
      and backward, up to its epsilon. So before a norm this is the published network. Without a norm, the sum would
      start n times as large as the residual network, and the mean equals it. So the mean is used, and `equals_resnet`
      is true.
    * norm(H) normalizes each stream without parameters, like the paper's OLMo models. The paper prints their exact
      count (394,048 for 16 blocks, width 2048, 4 streams). W would absorb a gain.
    * Static matrices are not weight-decayed, W is (section 4). The paper also scales the initial output maps of layers
      by sqrt(n). This is left out: layers are the same under every topology.

    Parameters: `layers * (streams * (streams + 2) + (width * (streams + 2) + 2 if dynamic else 0))`
    """

    Options: ClassVar[type] = HyperOptions
    axes: ClassVar[Axes] = {"streams": (2, 4)}

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return True

    def __init__(self, spec: StackSpec, options: HyperOptions) -> None:
        super().__init__()
        self.streams = options.streams
        self.connections = nn.ModuleList(Connection(t, spec.width, options) for t in range(len(spec.sites)))

    @classmethod
    def count(cls, spec: StackSpec, options: HyperOptions) -> Count:
        """Count A, B and W; the products A^T H and norm(H) W. Elementwise: [A | B] + s tanh, + B^T f, and the mean."""
        n, width = options.streams, spec.width
        layer = Count(n * (n + 2), n * (n + 1) * width, 2 * n * width)
        if options.dynamic:
            layer += Count((n + 2) * width + 2, n * (n + 2) * width, 2 * n * (n + 2))
        return layer.copies(len(spec.sites)) + Count(elementwise=n * width)

    def coefficients(self) -> dict[str, Tensor]:
        """Return A_m, A_r and B of each layer, without their input-dependent terms."""
        static = torch.stack([connection.get_parameter("static") for connection in self.connections])  # [L, N, N + 2]
        return {"A_m": static[..., 0], "A_r": static[..., 1:-1], "B": static[..., -1]}

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Any]:
        """Return the mixed input; the state holds the mixed streams and the weights of the output."""
        matrices = self.connections[t](state)
        # Splitting avoids the zero-padded additions of indexing in the backward pass. The layer's input is copied: a
        # view would keep the mixed streams in memory for the backward pass.
        read_and_carry, write = matrices.split((self.streams + 1, 1), dim=-1)
        x, streams = (read_and_carry.mT @ state).split((1, self.streams), dim=-2)
        return (x.squeeze(-2).contiguous(),), (streams, write)

    def write(self, t: int, state: Any, y: Tensor) -> Tensor:
        streams, b = state
        return torch.addcmul(streams, b, y.unsqueeze(-2))
