"""Hierarchical aggregation: a tree over the blocks of a residual network, whose nodes join states of the stream.

Legend: h_s = the stream after stage s = 1 .. S, a number of consecutive blocks; a_n = node n = 1 .. N.
Shapes: ... = any leading axes, D = width, F = hidden features of a node.
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
from search_spaces.topologies.base import StackSpec, Topology, sum_tensors


@dataclass(frozen=True, slots=True)
class AggregationOptions:
    """The number and size of nodes.

    Attributes:
        every: Blocks per stage. A node joins two stages, so 12 blocks have six nodes with 1, as in the paper, and two
            with 3.
        features: Hidden features of a node's feed-forward net, F; by default four times the width.
        initial: Initialization of weights: "xavier", or "lecun" as in Mak and Flanigan's comparison (2025, C.4).
    """

    every: int = 1
    features: int | None = None
    initial: Literal["xavier", "lecun"] = "xavier"

    def __post_init__(self) -> None:
        for name, number in (("every", self.every), ("features", self.features)):
            check_at_least(name, number, 1)


class Node(nn.Module):
    """A node: LN(W_2 sigmoid(W_1 [x; y; ...] + b_1) + b_2 + x + y + ...)."""

    def __init__(self, states: int, width: int, features: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(states * width, features), nn.Linear(features, width)
        self.norm = nn.LayerNorm(width, 1e-6)
        for linear_map in (self.up, self.down):
            nn.init.xavier_uniform_(linear_map.weight)
            nn.init.zeros_(linear_map.bias)

    def forward(self, *states: Tensor) -> Tensor:
        """Join several states [..., D] into one."""
        output = self.down(torch.sigmoid(self.up(torch.cat(states, dim=-1))))
        return self.norm(output + sum_tensors(states))  # type: ignore[no-any-return]  # nn.Module returns Any


@final
class Aggregation(Topology):
    """Hierarchical aggregation (Dou et al., 2018): nodes join two stages of residual blocks and the node before.

    Nodes join residual blocks: AGG(x, y[, z]) = LN(FF([x; y; z]) + x + y + z), where FF is two linear maps around a
    sigmoid.

        a_1 = AGG(h_1, h_2),  a_n = AGG(h_{2n-1}, h_{2n}, a_{n-1})

    The stream continues from each node: stage 2n + 1 starts with a_n, and the output head reads a_N. At initialization
    this is not the residual network.

    Source: Dou et al., Exploiting Deep Representations for Neural Machine Translation (arXiv 1810.10181, 2018),
    hierarchical aggregation. hfxunlp's public transformer library implements it (HierEncoder and ResidueCombiner). Only
    the library lets the stream continue from a node. Differences and choices:

    * A stage is one block, or `every` blocks. The last stage is shorter if `every` does not divide the blocks. If the
      number of stages is odd, the last node joins one stage and the node before.
    * FF has four times the width as hidden features, like a transformer's feed-forward layers; the library gives a node
      as many as those layers. Nodes do not share weights.
    * In the library the last node's norm is the network's final norm. Here the final norm follows it, as with every
      topology.
    * Weights are Xavier-initialized (`initial=lecun`: N(0, 1 / fan-in)) and biases are 0. Weights are decayed, gains
      and biases are not. No source states this.

    The state is the stream, the stage that the next node will join if it has ended, and the previous node if there is
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

    def __init__(self, spec: StackSpec, options: AggregationOptions) -> None:
        super().__init__()
        width = spec.width
        self.stage = _stages(spec, options.every)
        self.stages = max(self.stage)
        sizes = _sizes(spec, options.every)
        self.nodes = nn.ModuleList(Node(states, width, options.features or 4 * width) for states in sizes)
        if options.initial == "lecun":
            init_lecun(self.modules())

    @classmethod
    def count(cls, spec: StackSpec, options: AggregationOptions) -> Count:
        """Count an addition per layer; two maps and a norm per node, and an addition per state that it joins."""
        width, features = spec.width, options.features or 4 * spec.width
        total_count = Count(elementwise=len(spec.sites) * width)
        for states in _sizes(spec, options.every):
            total_count += linear(states * width, features) + linear(features, width) + Count(2 * width)
            total_count += Count(elementwise=states * width)
        return total_count

    def open(self, *embeddings: Tensor) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        return sum_tensors(embeddings), (), ()

    def read(self, t: int, state: Any) -> tuple[tuple[Tensor, ...], Any]:
        return (state[0],), state

    def recomputes(self, t: int) -> Literal["read", "write"]:
        return "write"

    def write(self, t: int, state: Any, y: Tensor) -> Any:
        """Add the layer's output; if a node follows, apply it and continue from it."""
        stream, stages, before = state
        stream, stage = stream + y, self.stage[t]
        if stage == 0:
            return stream, stages, before
        if stage % 2 and stage < self.stages:
            return stream, (stream,), before
        node = self.nodes[(stage - 1) // 2](*stages, stream, *before)
        return node, (), (node,)

    def close(self, state: Any) -> Tensor:
        stream: Tensor = state[0]
        return stream


def _stages(spec: StackSpec, every: int) -> list[int]:
    """Return for each layer the stage that it ends, counted from 1, or 0."""
    block = list(accumulate(spec.ends_block))
    return [
        -(-number // every) if end and (number % every == 0 or number == block[-1]) else 0
        for end, number in zip(spec.ends_block, block, strict=True)
    ]


def _sizes(spec: StackSpec, every: int) -> list[int]:
    """Return how many states each node joins: one or two stages, and the node before."""
    stages = max(_stages(spec, every))
    return [min(2, stages - first) + (first > 0) for first in range(0, stages, 2)]
