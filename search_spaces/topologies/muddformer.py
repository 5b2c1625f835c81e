"""MUDDFormer: dense connections across blocks, with position-dependent weights for each use of a state.

Legend: X_0 = the network's input, X_i = the state after block i = 1 .. B, with its skip.
Shapes: ... = any leading axes, D = width, S = sources, C = streams that are mixed from them.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.support.count import Count, linear, weighted_sum
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import InputMode, StackSpec, Topology, pad_rows, sum_tensors
from search_spaces.topologies.grn import mixture

EPS = 1e-6
SMALL = 1e-3
"""Initial gain of the norm after a skip's mix."""


@dataclass(frozen=True, slots=True)
class MUDDOptions:
    """How the states are mixed.

    Attributes:
        norm: "pre-post", for deep and narrow networks, norms every state before mixing and the skip's mix after it.
            "none" mixes the states without norms.
        rounded: Whether the hidden features of the weights' generator are rounded up to the next multiple of 64, as in
            the official code's fast form.
    """

    norm: Literal["none", "pre-post"] = "none"
    rounded: bool = False


class MUDDState(NamedTuple):
    """The states that are mixed, and the streams for the next block, the skip's last."""

    sources: tuple[Tensor, ...]
    streams: tuple[Tensor, ...]


class MixWeights(nn.Module):
    """The mixing weights GELU(rms(x) W_1) W_2 + a for C streams of S sources; W_2 is initialized to 0."""

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
        """Map [..., D] to a tuple of source weights, each [..., 1], for every stream."""
        shifts = self.second(F.gelu(self.first(F.rms_norm(x, x.shape[-1:], eps=EPS))))
        weights = shifts.unflatten(-1, self.a.shape) + self.a  # [..., C, S]
        return [stream.split(1, dim=-1) for stream in weights.unbind(-2)]


@final
class MUDDFormer(Topology):
    """MUDDFormer (Xiao et al., 2025): queries, keys, values and skip are each a mix of all blocks, by position.

    After block i stream c is sum_{j<=i} w_cj X_j, w = GELU(rms(X_i) W_1) W_2 + a in R^{C x (i+1)}, at each position.

    The streams are queries, keys, values and the skip of the next block, C = 4. After the last block, and where a
    block's first layer has one input, there is only the skip's stream, which is that input too. Block 1 reads X_0 in
    all streams. At initialization a is 1 for the newest state and 0 for the others, and W_2 is 0: the residual network.

    With `norm=pre-post` all of a starts at 0, and the mix of g_j * rms(X_j) is added to X_i. The skip's mix is normed
    again before the addition, with an initial gain of 1e-3. This starts as the residual network too.

    Source: Xiao et al., MUDDFormer (arXiv 2502.12170, 2025), and the official code. Differences and choices:

    * W_1 has C * S hidden features, and four times as many after the last block; with `rounded`, as many as the code.
    * With `pre-post` the code's rms(X_i) has a gain. Here it has none, since W_1 absorbs it.
    * W_1 is drawn from N(0, 1 / D). a is not weight-decayed, W_1 and W_2 are; no source states this.
    * Only the skip has the second norm, as in the code; the paper prints it for all streams.
    * Queries, keys and values have their own norms in every block, also in the first, where all read X_0.
    * The paper's feed-forward layers that grow with depth are not part of the topology: see `hidden` of an
      architecture.

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
        return True

    def __init__(self, spec: StackSpec, options: MUDDOptions) -> None:
        super().__init__()
        self.starts_block, self.ends_block = spec.starts_block, spec.ends_block
        self.first_streams = _streams(len(spec.sites[0].ports))
        shapes, has_norms = _shapes(spec, options), options.norm == "pre-post"
        self.weights = nn.ModuleList(MixWeights(spec.width, *shape, newest=float(not has_norms)) for shape in shapes)
        self.pre_norms = nn.ModuleList(nn.RMSNorm(spec.width, EPS) for _ in range(len(shapes) + 1) if has_norms)
        self.post_norms = nn.ModuleList(nn.RMSNorm(spec.width, EPS) for _ in shapes if has_norms)
        with torch.no_grad():
            for gain in self.post_norms.parameters():
                gain.fill_(SMALL)

    @classmethod
    def count(cls, spec: StackSpec, options: MUDDOptions) -> Count:
        """Count two maps and a per mix, and its sums; a skip per layer. With norms, their gains and an addition."""
        width, has_norms = spec.width, options.norm == "pre-post"
        shapes = _shapes(spec, options)
        total_count = Count((2 * len(shapes) + 1) * width * has_norms, elementwise=len(spec.sites) * width)
        for hidden, streams, sources in shapes:
            maps = linear(width, hidden, bias=False) + linear(hidden, streams * sources, bias=False)
            sums = streams * (sources + weighted_sum(sources, width) + width * has_norms)
            total_count += maps + Count(streams * sources, elementwise=sums)
        return total_count

    def coefficients(self) -> dict[str, Tensor]:
        """Return a of each stream after each block, with a column per state j."""
        *inner, last = [weights.get_parameter("a") for weights in self.weights]
        ports = {f"a of port {c + 1}": pad_rows(a[c] for a in inner) for c in range(self.first_streams - 1) if inner}
        return {**ports, "a of the skip": pad_rows(a[-1] for a in (*inner, last))}

    def open(self, *embeddings: Tensor) -> MUDDState:
        x = sum_tensors(embeddings)
        return MUDDState((self.pre_norms[0](x) if self.pre_norms else x,), (x,) * self.first_streams)

    def read(self, t: int, state: MUDDState) -> tuple[tuple[Tensor, ...], MUDDState]:
        """Return the streams at the start of a block; inside it, the skip's stream with the layers' outputs added."""
        *ports, skip = state.streams
        return tuple(ports) if ports and self.starts_block[t] else (skip,), state._replace(streams=(skip,))

    def write(self, t: int, state: MUDDState, y: Tensor) -> MUDDState:
        """Add to the skip; at the end of a block, mix the streams of the next."""
        x = state.streams[-1] + y
        if not self.ends_block[t]:
            return state._replace(streams=(x,))
        block = len(state.sources)
        sources = (*state.sources, self.pre_norms[block](x) if self.pre_norms else x)
        mixes = [mixture(weights, sources) for weights in self.weights[block - 1](x)]
        if self.post_norms:
            mixes[-1] = self.post_norms[block - 1](mixes[-1])
            mixes = [x + mix for mix in mixes]
        return MUDDState(sources, tuple(mixes))

    def close(self, state: MUDDState) -> Tensor:
        return state.streams[-1]


def _shapes(spec: StackSpec, options: MUDDOptions) -> list[tuple[int, int, int]]:
    """Return hidden features, streams and sources of the mix after each block."""
    _, *later = [_streams(len(site.ports)) for site in spec.sites if site.starts_block]
    streams = [*later, 1]
    hidden = [c * s for s, c in enumerate(streams, start=2)]
    hidden[-1] *= 4
    if options.rounded:
        hidden = [(k // 64 + 1) * 64 for k in hidden]
    return [(k, c, s) for s, (k, c) in enumerate(zip(hidden, streams, strict=True), start=2)]


def _streams(ports: int) -> int:
    """Return the number of streams: one per port and one for the skip, or a single one if there is one port."""
    return ports + 1 if ports > 1 else 1
