"""Manifold-constrained hyper-connections, stream by stream and entry by entry."""

import math
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grouped import grouped
from search_spaces.layers.stack import Stack
from search_spaces.testing.small_networks import without_epsilon
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import count_topology
from search_spaces.topologies.mhc import ManifoldConnection, sinkhorn
from search_spaces.topologies.registry import resolve_topology

Build = Callable[..., Stack]


def normalize(matrix: Tensor, rounds: int) -> Tensor:
    """Normalize columns, then rows, entry by entry."""
    n = len(matrix)
    entries = [[float(matrix[i, j].detach().exp()) for j in range(n)] for i in range(n)]
    for _ in range(rounds):
        for j in range(n):
            whole = sum(entries[i][j] for i in range(n))
            for i in range(n):
                entries[i][j] /= whole
        for i in range(n):
            whole = sum(entries[i])
            entries[i] = [entry / whole for entry in entries[i]]
    return torch.tensor(entries, dtype=matrix.dtype)


def mean_of_permutations(logits: Tensor, n: int) -> Tensor:
    """The weighted mean of all permutation matrices."""
    weights = [float(logit.detach().exp()) for logit in logits]
    mixing = torch.zeros(n, n).double()
    for weight, order in zip(weights, permutations(range(n)), strict=True):
        for i, j in enumerate(order):
            mixing[i, j] += weight / sum(weights)
    return mixing


def at_one_position(connection: ManifoldConnection, x: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """H_pre, H_post and H_res for the streams [n, D] of one position."""
    vector = x.reshape(-1) / torch.sqrt((x**2).mean())
    m = connection.b.clone()
    if connection.map is not None:
        parts = zip(connection.alpha, (connection.map.weight @ vector).split(connection.slices), strict=True)
        m = m + torch.cat([alpha * part for alpha, part in parts])
    pre, post, *res = m.split(connection.slices)
    mixing = torch.eye(n).double()
    if res and connection.mixing == "sinkhorn":
        mixing = normalize(res[0].reshape(n, n), connection.rounds)
    elif res:
        mixing = mean_of_permutations(res[0], n)
    return 1 / (1 + torch.exp(-pre)), 2 / (1 + torch.exp(-post)), mixing


def each(do: Callable[..., Tensor], *batches: Sequence[Any]) -> Tensor:
    """Apply a function at each position of each example."""
    return torch.stack(
        [torch.stack([do(*at) for at in zip(*example, strict=True)]) for example in zip(*batches, strict=True)]
    )


def reference(stack: Stack, x: Tensor, n: int) -> Tensor:
    """The published network up to the sum of its streams, position by position."""
    streams = torch.stack([x] * n, dim=-2)
    for connection, layer in zip(stack.topology.connections, stack.layers, strict=True):
        weights = [[at_one_position(connection, streams[b, p], n) for p in range(x.shape[1])] for b in range(len(x))]
        y = layer(each(lambda w, s: (w[0][:, None] * s).sum(0), weights, streams))
        streams = each(lambda w, s, out: w[2] @ s + w[1][:, None] * out, weights, streams, y)
    return streams.sum(-2)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_is_the_published_network_over_the_number_of_streams(
    n: int, transformer: Build, draw: Callable[[nn.Module], None]
) -> None:
    static = ",dynamic=false"
    with grouped() as case:
        for more in ("", static, ",mixing=none", ",rounds=1", ",mixing=permutations", f",mixing=permutations{static}"):
            with case(f"streams={n}{more}"):
                stack = transformer(f"mhc(streams={n}{more})", depth=2)
                draw(stack)
                x = torch.randn(2, 3, 16).double()
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), reference(stack, x, n) / n)


def test_sinkhorn_mixing_is_positive_and_doubly_stochastic() -> None:
    logits = torch.randn(7, 4, 4, generator=torch.Generator().manual_seed(0)).double()
    mixing = sinkhorn(logits, 20)
    assert (mixing > 0).all()
    torch.testing.assert_close(mixing.sum(-1), torch.ones(7, 4).double())
    torch.testing.assert_close(mixing.sum(-2), torch.ones(7, 4).double(), atol=1e-4, rtol=0)


def test_streams_differ_after_training(transformer: Build) -> None:
    stack = transformer("mhc(rounds=3,streams=4)")
    optimizer = torch.optim.Adam(stack.parameters(), lr=0.01)
    x = torch.randn(4, 5, 16).double()
    target = torch.randn_like(x)
    for _ in range(20):
        optimizer.zero_grad()
        (stack(x, torch.zeros_like(x)) - target).square().mean().backward()
        optimizer.step()
    state = stack.topology.open(x)
    for t, layer in enumerate(stack.layers):
        inputs, state = stack.topology.read(t, state)
        state = stack.topology.write(t, state, layer(*inputs))
    assert state.std(dim=-2).mean() > 0.01 * state.std()


def test_a_layer_starts_from_the_published_biases() -> None:
    """H_pre: 3 at its own stream, else -3; H_post: 0; H_res: 6 I - 3; phi = 0."""
    options = resolve_topology("mhc")[1]
    assert (options.streams, options.rounds) == (4, 20)
    for t in range(1, 9):
        connection = ManifoldConnection(t, 8, options)
        read, write, mix = connection.b.detach().split(connection.slices)
        assert read.tolist() == [3.0 if stream == t % 4 else -3.0 for stream in range(4)]
        assert write.tolist() == [0.0] * 4
        assert mix.reshape(4, 4).tolist() == [[3.0 if i == j else -3.0 for j in range(4)] for i in range(4)]
        assert connection.map is not None
        assert not connection.map.weight.any()
        assert connection.alpha.tolist() == pytest.approx([0.01] * 3)


def test_behind_norms_it_starts_as_the_residual_network(transformer: Build) -> None:
    x = torch.randn(2, 5, 16).double()
    stacks = [transformer(name, depth=8) for name in ("resnet", "mhc(streams=4)")]
    for stack in stacks:
        without_epsilon(stack)
    resnet, mhc = (F.layer_norm(stack(x, torch.zeros_like(x)), (16,)) for stack in stacks)
    torch.testing.assert_close(mhc, resnet)


def test_a_layer_has_the_published_number_of_weights() -> None:
    """n d (n^2 + 2 n) + n^2 + 2 n + 3 at four streams, except in the first layer."""
    for width, params in ((512, 49_179), (768, 73_755)):
        sites = (Site(("q", "k", "v"), width, True), Site(("x",), width, False))
        two, four = (
            count_topology(*resolve_topology("mhc(streams=4)"), StackSpec(sites * blocks, width, 64)).params
            for blocks in (1, 2)
        )
        assert four - two == 2 * params


def test_every_mean_of_permutations_is_doubly_stochastic(draw: Callable[[nn.Module], None]) -> None:
    connection = ManifoldConnection(1, 8, resolve_topology("mhc(mixing=permutations)")[1])
    draw(connection)
    mixing = connection(torch.randn(5, 4, 8))[2].detach()
    assert mixing.std(0).max() > 1e-3  # it depends on the input
    for axis in (-1, -2):
        torch.testing.assert_close(mixing.sum(axis), torch.ones(5, 4))


def test_permutations_start_near_the_identity() -> None:
    """The identity has weight 1 and all others e^-8; (n - 1)! - 1 of these fix a given stream."""
    for n, count in ((2, 1), (3, 5), (4, 23), (5, 119), (6, 719)):
        connection = ManifoldConnection(1, 8, resolve_topology(f"mhc(streams={n},mixing=permutations)")[1])
        mixing = connection(torch.randn(5, n, 8))[2].detach()
        staying = (count + 1) // n - 1
        expected = (1 + staying * math.exp(-8)) / (1 + count * math.exp(-8))
        torch.testing.assert_close(mixing.diagonal(dim1=-2, dim2=-1), torch.full((5, n), expected))
