"""Hierarchical aggregation: a tree over the blocks of a residual network, whose nodes join blocks on end.

Legend: h_b = the residual stream behind block b = 1 .. B, a_n = node n = 1 ..
Shapes: ... = any leading axes, D = width, S = states that a node joins, F = features inside it.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from search_spaces.count import Count, linear
from search_spaces.errors import UserError
from search_spaces.spec import Axes
from search_spaces.topologies.base import Topology, Wiring, total


@dataclass(frozen=True, slots=True)
class AggregationOptions:
    """How many nodes there are, and how large.

    Attributes:
        every: Blocks that one node joins; 12 blocks have six nodes of 2, and two of 6.
        features: Inside the feed-forward net of a node, F; none is four times the width.
    """

    every: int = 2
    features: int | None = None

    def __post_init__(self) -> None:
        for name, number in (("every", self.every), ("features", self.features)):
            if number is not None and number < 1:
                raise UserError(f"{name} must be at least 1, got {number}.")


class Node(nn.Module):
    """LN(W_2 sigmoid(W_1 [x; y; ...] + b_1) + b_2 + x + y + ...)."""

    def __init__(self, states: int, width: int, features: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(states * width, features), nn.Linear(features, width)
        self.norm = nn.LayerNorm(width, 1e-6)
        for each in (self.up, self.down):
            nn.init.xavier_uniform_(each.weight)
            nn.init.zeros_(each.bias)

    def forward(self, *states: Tensor) -> Tensor:
        """Join so many states [..., D] to one."""
        made = self.down(torch.sigmoid(self.up(torch.cat(states, dim=-1))))
        return self.norm(made + total(states))  # type: ignore[no-any-return]  # nn.Module returns Any


@final
class Aggregation(Topology):
    """Residual blocks, joined by nodes: AGG(x, y[, z]) = LN(FF([x; y; z]) + x + y + z), FF two maps around a sigmoid.

        a_1 = AGG(h_1, h_2),  a_n = AGG(h_{2n-1}, h_{2n}, a_{n-1})

    The stream goes on from a node: what block 2n + 1 reads is a_n, and the head reads the last node. Before training
    this is not the residual network.

    Source: Dou et al., Exploiting Deep Representations for Neural Machine Translation (arXiv 1810.10181, 2018),
    hierarchical aggregation, and a public library that has it (hfxunlp's, ResidueCombiner). Readings taken:

    * Where the blocks are no multiple of `every`, the last node joins those that are left over, one or more.
    * Features inside FF are four times the width, as in a transformer's own feed-forward layers; that library gives a
      node those of the layers. Weights are each node's own.
    * Maps start by Xavier's rule, biases at 0; neither is said.
    * The paper's blocks norm what they leave, these what they read, as under every topology; so the norm at a network's
      end is of what the last node has normed.
    * Maps are weight-decayed, gains and biases are not.

    The state is the stream, the blocks that the next node will join, and the node before it if there is one.

    Parameters: `sum(
        (min(every, blocks - start) + (start > 0)) * width * (features or 4 * width)
        + (features or 4 * width) * (width + 1) + 3 * width
        for start in range(0, blocks, every)
    )`
    """

    Options: ClassVar[type] = AggregationOptions
    axes: ClassVar[Axes] = {"every": (2, 4)}
    searched: ClassVar[bool] = False

    def __init__(self, wiring: Wiring, options: AggregationOptions) -> None:
        super().__init__()
        width = wiring.width
        ends = _ends(wiring)
        block = list(accumulate(ends))
        last = block[-1]
        self.closes_block = ends
        self.node = [  # which node stands behind a layer, None where there is none
            (number - 1) // options.every if end and (number % options.every == 0 or number == last) else None
            for end, number in zip(ends, block, strict=True)
        ]
        sizes = _sizes(wiring, options)
        self.nodes = nn.ModuleList(Node(states, width, options.features or 4 * width) for states in sizes)

    @classmethod
    def count(cls, wiring: Wiring, options: AggregationOptions) -> Count:
        """An addition for each layer; two maps and a norm for each node, and an addition for each state it joins."""
        width, features = wiring.width, options.features or 4 * wiring.width
        whole = Count(elementwise=len(wiring.sites) * width)
        for states in _sizes(wiring, options):
            whole += linear(states * width, features) + linear(features, width) + Count(2 * width)
            whole += Count(elementwise=states * width)
        return whole

    def open(self, *parts: Tensor) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Start from x_0, the sum of the embeddings, with nothing to join."""
        return total(parts), (), ()

    def read(self, t: int, state: Any) -> tuple[tuple[Tensor, ...], Any]:
        """Give the stream to all ports."""
        return (state[0],), state

    def write(self, t: int, state: Any, y: Tensor) -> Any:
        """Add the layer's output, and where a node stands behind it, join and go on from there."""
        stream, blocks, before = state
        stream = stream + y
        if self.closes_block[t]:
            blocks = (*blocks, stream)
        number = self.node[t]
        if number is None:
            return stream, blocks, before
        joined = self.nodes[number](*blocks, *before)
        return joined, (), (joined,)

    def close(self, state: Any) -> Tensor:
        """Return the last node."""
        stream: Tensor = state[0]
        return stream


def _ends(wiring: Wiring) -> list[bool]:
    """Whether each layer is the last of its block."""
    return [*(site.opens_block for site in wiring.sites[1:]), True]


def _sizes(wiring: Wiring, options: AggregationOptions) -> list[int]:
    """How many states each node joins: its blocks, and the node before it."""
    blocks = sum(_ends(wiring))
    return [min(options.every, blocks - start) + (start > 0) for start in range(0, blocks, options.every)]
