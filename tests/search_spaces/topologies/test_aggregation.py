"""Hierarchical aggregation, block by block."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from grouped import grouped
from search_spaces.layers.stack import Stack
from search_spaces.topologies.aggregation import Node
from search_spaces.topologies.base import Site, Wiring
from search_spaces.topologies.build import wire_count
from search_spaces.topologies.decay import split_by_decay
from search_spaces.topologies.registry import load

Build = Callable[..., Stack]


def joined(node: Node, states: list[Tensor]) -> Tensor:
    """LN(FF([x; y; z]) + x + y + z), FF by a matrix for each state."""
    width = states[0].shape[-1]
    inside = node.up.bias
    for n, state in enumerate(states):
        inside = inside + state @ node.up.weight[:, n * width : (n + 1) * width].T
    whole = 1 / (1 + torch.exp(-inside)) @ node.down.weight.T + node.down.bias
    for state in states:
        whole = whole + state
    centred = whole - whole.mean(-1, keepdim=True)
    return node.norm.weight * centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt() + node.norm.bias


JOINED = [
    (1, 1, [[1]]),
    (1, 4, [[1, 2], [3, 4]]),
    (1, 5, [[1, 2], [3, 4], [5]]),
    (2, 4, [[2, 4]]),
    (2, 5, [[2, 4], [5]]),
    (2, 7, [[2, 4], [6, 7]]),
    (3, 5, [[3, 5]]),
    (9, 2, [[2]]),
]
"""`every`, how many blocks there are, and the last block of each stage that each node joins."""


def aggregated(stack: Stack, x: Tensor, nodes_join: list[list[int]]) -> Tensor:
    """Blocks with their skips, and each node of its two stages and the node before."""
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
        x = joined(next(nodes), [*states, *before])
        before = [x]
    assert not [*layers, *nodes]
    return x


def test_nodes_join_two_stages_and_the_node_before(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for every, blocks, nodes_join in JOINED:
            with case(f"every={every}, {blocks} blocks"):
                stack = transformer(f"aggregation(every={every},features=7)", depth=blocks)
                draw(stack)
                tokens, positions = torch.randn(2, 2, 5, 16).double()
                expected = aggregated(stack, tokens + positions, nodes_join)
                torch.testing.assert_close(stack(tokens, positions), expected)


def test_a_layer_without_tokens_is_a_block_of_its_own(mlp: Build, draw: Callable[[nn.Module], None]) -> None:
    stack = mlp("aggregation(features=3)", depth=3)
    draw(stack)
    x = torch.randn(4, 16).double()
    first = x + stack.layers[0](x)
    second = first + stack.layers[1](first)
    node = joined(stack.topology.nodes[0], [first, second])
    last = joined(stack.topology.nodes[1], [node + stack.layers[2](node), node])
    torch.testing.assert_close(stack(x), last)


def test_maps_start_by_xaviers_rule_and_are_decayed(transformer: Build) -> None:
    stack = transformer("aggregation", depth=2)
    (node,) = stack.topology.nodes
    assert 0.9 * (6 / 96) ** 0.5 < node.up.weight.abs().max().item() <= (6 / 96) ** 0.5
    assert node.up.bias.eq(0).all()
    assert node.down.bias.eq(0).all()
    decayed = {id(parameter) for parameter in split_by_decay(stack)[0]}
    wiring = {name for name, parameter in stack.topology.named_parameters() if id(parameter) in decayed}
    assert wiring == {"nodes.0.up.weight", "nodes.0.down.weight"}


def test_64_blocks_are_finite_in_bf16(transformer: Build) -> None:
    stack = transformer("aggregation", depth=64).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = stack(10 * torch.randn(2, 5, 16), torch.randn(5, 16))
    features.float().square().mean().backward()
    assert features.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in stack.parameters())


def test_parameters_of_twelve_blocks_are_those_of_their_nodes() -> None:
    wiring = Wiring((Site(("q", "k", "v"), 64, True), Site(("x",), 64, False)) * 12, 64, 16)
    for said, joins in (("", [2, 3, 3, 3, 3, 3]), ("(every=3)", [2, 3]), ("(every=5)", [2, 2]), ("(every=6)", [2])):
        inside = sum((states + 1) * 64 * 256 + 256 + 3 * 64 for states in joins)
        assert wire_count(*load(f"aggregation{said}"), wiring).params == inside
