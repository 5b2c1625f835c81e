"""Hyper-connections against algorithm 2, stream by stream."""

from collections.abc import Callable
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grouped import grouped
from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import count_topology
from search_spaces.topologies.hyper import Connection
from search_spaces.topologies.registry import resolve_topology

Build = Callable[..., Stack]


def matrices(connection: Connection, h: list[Tensor], n: int) -> tuple[list[list[Tensor]], list[Tensor]]:
    """A [n][n + 1] and B [n] at each position, equations 10 to 13."""
    static = connection.static
    a = [[static[i, j] for j in range(n + 1)] for i in range(n)]
    b = [static[i, n + 1] for i in range(n)]
    if connection.dynamic is not None:
        w = connection.dynamic.project.weight
        for i in range(n):
            mean, variance = h[i].mean(-1, keepdim=True), h[i].var(-1, correction=0, keepdim=True)
            z = (h[i] - mean) / torch.sqrt(variance + 1e-5)
            for j in range(n + 1):
                change = torch.tanh((z * w[j]).sum(-1, keepdim=True))
                a[i][j] = a[i][j] + connection.dynamic.scale_a * change
            b[i] = b[i] + connection.dynamic.scale_b * torch.tanh((z * w[n + 1]).sum(-1, keepdim=True))
    return a, b


def algorithm_two(stack: Stack, x: Tensor, n: int) -> Tensor:
    """The sum of the streams before the final norm."""
    h = [x] * n
    for connection, layer in zip(stack.topology.connections, stack.layers, strict=True):
        a, b = matrices(connection, h, n)
        mixes = [sum(a[i][j] * h[i] for i in range(n)) for j in range(n + 1)]
        y = layer(mixes[0])
        h = [mixes[i + 1] + b[i] * y for i in range(n)]
    return sum(h)


def test_is_algorithm_two_over_the_number_of_streams(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for n, dynamic in product((1, 2, 4), ("true", "false")):
            with case(f"streams={n},dynamic={dynamic}"):
                stack = transformer(f"hyper(streams={n},dynamic={dynamic})")
                draw(stack)
                x = torch.randn(2, 5, 16).double()
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), algorithm_two(stack, x, n) / n)


def test_behind_a_norm_value_and_gradients_are_those_of_algorithm_two(
    transformer: Build, draw: Callable[[nn.Module], None]
) -> None:
    stack = transformer("hyper(streams=4)")
    draw(stack)
    x = torch.randn(2, 5, 16).double()
    target = torch.randn(2, 5, 16).double()
    results = []
    for end in (stack(x, torch.zeros_like(x)), algorithm_two(stack, x, 4)):
        stack.zero_grad()
        y = F.layer_norm(end, (16,), eps=1e-12)
        (y - target).square().mean().backward()
        results.append([y.detach(), *(parameter.grad.clone() for parameter in stack.parameters())])
    torch.testing.assert_close(results[0], results[1])


def test_starts_by_equation_14_and_reads_streams_in_turn() -> None:
    connections = [Connection(t, 8, resolve_topology("hyper(streams=3)")[1]) for t in range(5)]
    assert [connection.static[:, 0].tolist().index(1) for connection in connections] == [0, 1, 2, 0, 1]
    for connection in connections:
        read, carry, write = connection.static.split((1, 3, 1), dim=1)
        assert read.sum() == 1
        assert torch.equal(carry, torch.eye(3))
        assert torch.equal(write, torch.ones(3, 1))
        assert connection.dynamic is not None
        assert not connection.dynamic.project.weight.any()
        assert connection.dynamic.scale_a.item() == connection.dynamic.scale_b.item() == pytest.approx(0.01)


def test_counts_are_the_published_ones_of_olmo_1b() -> None:
    """16 blocks of width 2048: equation 26 and table 7 (0.0002625 billion for 2 streams)."""
    params = {"streams=4": 394_048, "streams=4,dynamic=false": 768, "streams=2": 262_464}
    spec = StackSpec((Site(("q", "k", "v"), 2048, True), Site(("x",), 2048, False)) * 16, 2048, 128)
    assert {
        options: count_topology(*resolve_topology(f"hyper({options})"), spec).params for options in params
    } == params


def test_the_input_of_a_layer_does_not_share_the_streams_memory(transformer: Build) -> None:
    topology = transformer("hyper(streams=4)").topology
    (x,), _ = topology.read(0, topology.open(torch.randn(2, 5, 16).double()))
    assert x.untyped_storage().nbytes() == x.nbytes
