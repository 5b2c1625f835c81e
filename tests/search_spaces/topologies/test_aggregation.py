"""Hierarchical aggregation, block by block."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from grouped import grouped
from search_spaces.layers.stack import Stack
from search_spaces.topologies.aggregation import Node
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import count_topology
from search_spaces.topologies.registry import resolve_topology

Build = Callable[..., Stack]


def join(node: Node, states: list[Tensor]) -> Tensor:
    """LN(FF([x; y; z]) + x + y + z), FF by a matrix for each state."""
    width = states[0].shape[-1]
    inside = node.up.bias
    for n, state in enumerate(states):
        inside = inside + state @ node.up.weight[:, n * width : (n + 1) * width].T
    whole = 1 / (1 + torch.exp(-inside)) @ node.down.weight.T + node.down.bias
    for state in states:
        whole = whole + state
    deviation = whole - whole.mean(-1, keepdim=True)
    return node.norm.weight * deviation / (deviation.square().mean(-1, keepdim=True) + 1e-6).sqrt() + node.norm.bias


STAGES = [
    (1, 1, [[1]]),
    (1, 4, [[1, 2], [3, 4]]),
    (1, 5, [[1, 2], [3, 4], [5]]),
    (2, 4, [[2, 4]]),
    (2, 5, [[2, 4], [5]]),
    (2, 7, [[2, 4], [6, 7]]),
    (3, 5, [[3, 5]]),
    (9, 2, [[2]]),
]
"""`every`, the number of blocks, and the last block of each stage of each node."""


def by_hand(stack: Stack, x: Tensor, nodes_join: list[list[int]]) -> Tensor:
    """Residual blocks, and nodes over two stages and the previous node."""
    layers, nodes = iter(stack.layers), iter(stack.topology.nodes)
    before, block = list[Tensor](), 0
    for ends in nodes_join:
        states = []
        for end in ends:
            for _ in range(end - block):
                x = x + next(layers)(x)
                x = x + next(layers)(x)
            states.append(x)
            block = end
        x = join(next(nodes), [*states, *before])
        before = [x]
    assert not [*layers, *nodes]
    return x


def test_nodes_join_two_stages_and_the_node_before(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for every, blocks, nodes_join in STAGES:
            with case(f"every={every}, {blocks} blocks"):
                stack = transformer(f"aggregation(every={every},features=7)", depth=blocks)
                draw(stack)
                tokens, positions = torch.randn(2, 2, 5, 16).double()
                expected = by_hand(stack, tokens + positions, nodes_join)
                torch.testing.assert_close(stack(tokens, positions), expected)


def test_a_layer_without_tokens_is_a_block_of_its_own(mlp: Build, draw: Callable[[nn.Module], None]) -> None:
    stack = mlp("aggregation(features=3)", depth=3)
    draw(stack)
    x = torch.randn(4, 16).double()
    first = x + stack.layers[0](x)
    second = first + stack.layers[1](first)
    node = join(stack.topology.nodes[0], [first, second])
    last = join(stack.topology.nodes[1], [node + stack.layers[2](node), node])
    torch.testing.assert_close(stack(x), last)


def test_maps_start_by_xaviers_rule(transformer: Build) -> None:
    stack = transformer("aggregation", depth=2)
    (node,) = stack.topology.nodes
    assert 0.9 * (6 / 96) ** 0.5 < node.up.weight.abs().max().item() <= (6 / 96) ** 0.5
    assert node.up.bias.eq(0).all()
    assert node.down.bias.eq(0).all()


def test_parameters_of_twelve_blocks_are_those_of_their_nodes() -> None:
    spec = StackSpec((Site(("q", "k", "v"), 64, True), Site(("x",), 64, False)) * 12, 64, 16)
    for options, joins in (("", [2, 3, 3, 3, 3, 3]), ("(every=3)", [2, 3]), ("(every=5)", [2, 2]), ("(every=6)", [2])):
        inside = sum((states + 1) * 64 * 256 + 256 + 3 * 64 for states in joins)
        assert count_topology(*resolve_topology(f"aggregation{options}"), spec).params == inside
