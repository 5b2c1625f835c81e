"""MUDDFormer: dense connections across blocks whose weights depend on the position, one set for each use of a state.

Legend: X_0 = the network's input, X_i = what block i = 1 .. B leaves, its skip included.
Shapes: ... = any leading axes, D = width, S = sources, C = streams that are mixed from them.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.support.count import Count, linear, weighted_sum
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import InputMode, Topology, Wiring, pad_rows, sum_tensors
from search_spaces.topologies.grn import mixture

EPS = 1e-6
SMALL = 1e-3
"""Where the gain of the norm behind a skip's mix starts."""


@dataclass(frozen=True, slots=True)
class MUDDOptions:
    """How the states are mixed.

    Attributes:
        norm: "pre-post" norms every state before it is mixed, and what is mixed for the skip after, for deep and
            narrow networks; "none" mixes the states as they are.
        rounded: Whether the hidden features of what makes the weights are the next multiple of 64 above, as in the
            official code's fast form.
    """

    norm: Literal["none", "pre-post"] = "none"
    rounded: bool = False


class MUDDState(NamedTuple):
    """The states that are mixed, and the streams made of them for the block to come, the skip's last."""

    sources: tuple[Tensor, ...]
    streams: tuple[Tensor, ...]


class Weights(nn.Module):
    """GELU(rms(x) W_1) W_2 + a for C streams of S sources; W_2 is zeros at the start."""

    def __init__(self, width: int, hidden: int, streams: int, sources: int, newest: float) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden, bias=False)
        self.second = nn.Linear(hidden, streams * sources, bias=False)
        nn.init.normal_(self.first.weight, std=width**-0.5)
        nn.init.zeros_(self.second.weight)
        self.a = nn.Parameter(torch.zeros(streams, sources))
        with torch.no_grad():
            self.a[:, -1] = newest

    def forward(self, x: Tensor) -> list[tuple[Tensor, ...]]:
        """Map [..., D] to a list for each stream of the sources' weights, each [..., 1]."""
        shifts = self.second(F.gelu(self.first(F.rms_norm(x, x.shape[-1:], eps=EPS))))
        weights = shifts.unflatten(-1, self.a.shape) + self.a  # [..., C, S]
        return [stream.split(1, dim=-1) for stream in weights.unbind(-2)]


@final
class MUDDFormer(Topology):
    """MUDDFormer (Xiao et al., 2025): queries, keys, values and skip are each a mix of all blocks, by position.

    After block i stream c is sum_{j<=i} w_cj X_j, w = GELU(rms(X_i) W_1) W_2 + a in R^{C x (i+1)}, at each position.

    The streams are queries, keys, values and the skip of the next block, C = 4; behind the last block, and where a
    block's first layer has one input, there is the skip's alone, which is that input too. Block 1 reads X_0 in all.
    a is 1 for the newest state and 0 for the others, W_2 is zeros: the residual network at the start.

    With `norm=pre-post` a is zeros throughout, the mix is of g_j * rms(X_j) and is added to X_i, and what is added to
    the skip is normed again, by a gain of 1e-3 at the start: the residual network as well.

    Source: Xiao et al., MUDDFormer (arXiv 2502.12170, 2025), and the official code. Readings taken:

    * W_1 has C * S hidden features and four times that behind the last block; with `rounded` those of the code's.
    * With `pre-post` the code's rms(X_i) has a gain, which is one with W_1: here it has none.
    * W_1 is drawn from N(0, 1 / D). a is not weight-decayed, W_1 and W_2 are; no source says.
    * The second norm is the skip's alone, as in the code; the paper prints it for all streams.
    * Queries, keys and values have norms of their own in every block, the first included, where all read X_0.
    * The paper's feed-forward layers that grow with depth are no wiring: `hidden` of an architecture.

    Parameters: `sum(
        (s := i + 1) and (c := (ports + 1 if ports > 1 else 1) if i < blocks else 1)
        and (k := (c * s * (4 if i == blocks else 1) // 64 + 1) * 64 if rounded else c * s * (4 if i == blocks else 1))
        and k * (width + c * s) + c * s
        for i in range(1, blocks + 1)
    ) + (norm == "pre-post") * (2 * blocks + 1) * width`
    """

    Options: ClassVar[type] = MUDDOptions
    axes: ClassVar[Axes] = {"norm": ("none", "pre-post")}
    input_mode: InputMode = "per-port"
    in_joint_spaces: ClassVar[bool] = False

    @classmethod
    def equals_resnet(cls, options: MUDDOptions) -> bool:
        """Always."""
        return True

    def __init__(self, wiring: Wiring, options: MUDDOptions) -> None:
        super().__init__()
        self.opens = [site.starts_block for site in wiring.sites]
        self.closes = [*self.opens[1:], True]
        self.first_streams = _streams(len(wiring.sites[0].ports))
        shapes, has_norms = _shapes(wiring, options), options.norm == "pre-post"
        self.weights = nn.ModuleList(Weights(wiring.width, *shape, newest=float(not has_norms)) for shape in shapes)
        self.before = nn.ModuleList(nn.RMSNorm(wiring.width, EPS) for _ in range(len(shapes) + 1) if has_norms)
        self.behind = nn.ModuleList(nn.RMSNorm(wiring.width, EPS) for _ in shapes if has_norms)
        with torch.no_grad():
            for gain in self.behind.parameters():
                gain.fill_(SMALL)

    @classmethod
    def count(cls, wiring: Wiring, options: MUDDOptions) -> Count:
        """Two maps and a for each mix, and its sums; a skip for each layer. With norms their gains, and an addition."""
        width, has_norms = wiring.width, options.norm == "pre-post"
        shapes = _shapes(wiring, options)
        total_count = Count((2 * len(shapes) + 1) * width * has_norms, elementwise=len(wiring.sites) * width)
        for hidden, streams, sources in shapes:
            maps = linear(width, hidden, bias=False) + linear(hidden, streams * sources, bias=False)
            sums = streams * (sources + weighted_sum(sources, width) + width * has_norms)
            total_count += maps + Count(streams * sources, elementwise=sums)
        return total_count

    def coefficients(self) -> dict[str, Tensor]:
        """a of each stream behind each block: state j across."""
        *inner, last = [weights.get_parameter("a") for weights in self.weights]
        ports = {f"a of port {c + 1}": pad_rows(a[c] for a in inner) for c in range(self.first_streams - 1) if inner}
        return {**ports, "a of the skip": pad_rows(a[-1] for a in (*inner, last))}

    def open(self, *parts: Tensor) -> MUDDState:
        """Give the network's input to every stream."""
        x = sum_tensors(parts)
        return MUDDState((self.before[0](x) if self.before else x,), (x,) * self.first_streams)

    def read(self, t: int, state: MUDDState) -> tuple[tuple[Tensor, ...], MUDDState]:
        """Give the streams at the start of a block, and inside it the skip's with what its layers added."""
        *ports, skip = state.streams
        return tuple(ports) if ports and self.opens[t] else (skip,), state._replace(streams=(skip,))

    def write(self, t: int, state: MUDDState, y: Tensor) -> MUDDState:
        """Add to the skip; at the end of a block mix the streams of the next."""
        x = state.streams[-1] + y
        if not self.closes[t]:
            return state._replace(streams=(x,))
        block = len(state.sources)
        sources = (*state.sources, self.before[block](x) if self.before else x)
        mixes = [mixture(weights, sources) for weights in self.weights[block - 1](x)]
        if self.behind:
            mixes[-1] = self.behind[block - 1](mixes[-1])
            mixes = [x + mix for mix in mixes]
        return MUDDState(sources, tuple(mixes))

    def close(self, state: MUDDState) -> Tensor:
        """Return the skip's stream."""
        return state.streams[-1]


def _shapes(wiring: Wiring, options: MUDDOptions) -> list[tuple[int, int, int]]:
    """Hidden features, streams and sources of the mix after each block."""
    _, *later = [_streams(len(site.ports)) for site in wiring.sites if site.starts_block]
    streams = [*later, 1]
    hidden = [c * s for s, c in enumerate(streams, start=2)]
    hidden[-1] *= 4
    if options.rounded:
        hidden = [(k // 64 + 1) * 64 for k in hidden]
    return [(k, c, s) for s, (k, c) in enumerate(zip(hidden, streams, strict=True), start=2)]


def _streams(ports: int) -> int:
    """One for each input of a block's first layer and one for its skip, which are the same where there is one input."""
    return ports + 1 if ports > 1 else 1
