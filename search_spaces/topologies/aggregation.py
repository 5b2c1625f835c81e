"""Hierarchical aggregation: a tree over the blocks of a residual network, whose nodes join two states of the stream.

Legend: h_s = the stream behind stage s = 1 .. S, some blocks on end; a_n = node n = 1 .. N.
Shapes: ... = any leading axes, D = width, F = features inside a node.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from search_spaces.support.count import Count, linear
from search_spaces.support.errors import check_at_least
from search_spaces.support.lecun_init import init_lecun
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import Topology, Wiring, sum_tensors


@dataclass(frozen=True, slots=True)
class AggregationOptions:
    """How many nodes there are, and how large.

    Attributes:
        every: Blocks of a stage, of which a node joins two: 12 blocks have six nodes at 1, the paper's, and two at 3.
        features: Inside the feed-forward net of a node, F; none is four times the width.
        initial: How maps are drawn: "xavier", or "lecun" as in Mak and Flanigan's comparison (2025, C.4).
    """

    every: int = 1
    features: int | None = None
    initial: Literal["xavier", "lecun"] = "xavier"

    def __post_init__(self) -> None:
        for name, number in (("every", self.every), ("features", self.features)):
            check_at_least(name, number, 1)


class Node(nn.Module):
    """LN(W_2 sigmoid(W_1 [x; y; ...] + b_1) + b_2 + x + y + ...)."""

    def __init__(self, states: int, width: int, features: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(states * width, features), nn.Linear(features, width)
        self.norm = nn.LayerNorm(width, 1e-6)
        for linear_map in (self.up, self.down):
            nn.init.xavier_uniform_(linear_map.weight)
            nn.init.zeros_(linear_map.bias)

    def forward(self, *states: Tensor) -> Tensor:
        """Join so many states [..., D] to one."""
        output = self.down(torch.sigmoid(self.up(torch.cat(states, dim=-1))))
        return self.norm(output + sum_tensors(states))  # type: ignore[no-any-return]  # nn.Module returns Any


@final
class Aggregation(Topology):
    """Hierarchical aggregation (Dou et al., 2018): nodes join two stages of residual blocks and the node before.

    Residual blocks, joined by nodes: AGG(x, y[, z]) = LN(FF([x; y; z]) + x + y + z), FF two maps around a sigmoid.

        a_1 = AGG(h_1, h_2),  a_n = AGG(h_{2n-1}, h_{2n}, a_{n-1})

    The stream goes on from a node: what stage 2n + 1 begins with is a_n, and the head reads a_N. Before training this
    is not the residual network.

    Source: Dou et al., Exploiting Deep Representations for Neural Machine Translation (arXiv 1810.10181, 2018),
    hierarchical aggregation, as a public library has it (hfxunlp's transformer: HierEncoder and ResidueCombiner), from
    which it is that the stream goes on from a node. Readings taken:

    * A stage is a block; `every` makes it longer. Where `every` does not divide the blocks, the last stage has those
      that are left over, and where stages are odd in number, the last node joins one and the node before.
    * Features inside FF are four times the width, as in a transformer's own feed-forward layers; that library gives a
      node those of the layers. Weights are each node's own.
    * In that library the last node's norm is the network's last; here the network's own follows, as under every
      topology.
    * Maps start by Xavier's rule (`initial=lecun`: N(0, 1 / fan-in)) and biases at 0; maps are weight-decayed, gains
      and biases are not. No source for it.

    The state is the stream, the stage that the next node will join if it has ended, and the node before it if there is
    one.

    Parameters: `sum(
        (1 + (start + every < blocks) + (start > 0)) * width * (features or 4 * width)
        + (features or 4 * width) * (width + 1) + 3 * width
        for start in range(0, blocks, 2 * every)
    )`
    """

    Options: ClassVar[type] = AggregationOptions
    axes: ClassVar[Axes] = {"every": (1, 3)}
    in_joint_spaces: ClassVar[bool] = False

    def __init__(self, wiring: Wiring, options: AggregationOptions) -> None:
        super().__init__()
        width = wiring.width
        self.stage = _stages(wiring, options.every)
        self.stages = max(self.stage)
        sizes = _sizes(wiring, options.every)
        self.nodes = nn.ModuleList(Node(states, width, options.features or 4 * width) for states in sizes)
        if options.initial == "lecun":
            init_lecun(self.modules())

    @classmethod
    def count(cls, wiring: Wiring, options: AggregationOptions) -> Count:
        """An addition for each layer; two maps and a norm for each node, and an addition for each state it joins."""
        width, features = wiring.width, options.features or 4 * wiring.width
        total_count = Count(elementwise=len(wiring.sites) * width)
        for states in _sizes(wiring, options.every):
            total_count += linear(states * width, features) + linear(features, width) + Count(2 * width)
            total_count += Count(elementwise=states * width)
        return total_count

    def open(self, *parts: Tensor) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Start from x_0, the sum of the embeddings, with nothing to join."""
        return sum_tensors(parts), (), ()

    def read(self, t: int, state: Any) -> tuple[tuple[Tensor, ...], Any]:
        """Give the stream to all ports."""
        return (state[0],), state

    def recomputes(self, t: int) -> Literal["read", "write"]:
        """Where the nodes are."""
        return "write"

    def write(self, t: int, state: Any, y: Tensor) -> Any:
        """Add the layer's output, and where a node stands behind it, join and go on from there."""
        stream, stages, before = state
        stream, stage = stream + y, self.stage[t]
        if stage == 0:
            return stream, stages, before
        if stage % 2 and stage < self.stages:
            return stream, (stream,), before
        node = self.nodes[(stage - 1) // 2](*stages, stream, *before)
        return node, (), (node,)

    def close(self, state: Any) -> Tensor:
        """Return the last node."""
        stream: Tensor = state[0]
        return stream


def _stages(wiring: Wiring, every: int) -> list[int]:
    """For each layer the stage that it ends, counted from 1; 0 where it ends none."""
    ends_block = [*(site.starts_block for site in wiring.sites[1:]), True]
    block = list(accumulate(ends_block))
    return [
        -(-number // every) if end and (number % every == 0 or number == block[-1]) else 0
        for end, number in zip(ends_block, block, strict=True)
    ]


def _sizes(wiring: Wiring, every: int) -> list[int]:
    """How many states each node joins: two stages or the last one, and the node before."""
    stages = max(_stages(wiring, every))
    return [min(2, stages - first) + (first > 0) for first in range(0, stages, 2)]
