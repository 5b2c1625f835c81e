"""MUDDFormer, block by block, with each weight computed by itself."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import count_topology
from search_spaces.topologies.registry import resolve_topology

Build = Callable[..., Stack]


def rms(x: Tensor) -> Tensor:
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6)


def weights(module: nn.Module, x: Tensor, stream: int, source: int) -> Tensor:
    """One weight at each position, from its own column of W_2."""
    hidden = rms(x) @ module.first.weight.T
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
    column = module.second.weight[stream * module.a.shape[1] + source]
    return (hidden @ column + module.a[stream, source]).unsqueeze(-1)


@pytest.mark.parametrize("norm", ["none", "pre-post"])
def test_each_of_four_streams_is_a_mix_of_all_states(
    norm: str, transformer: Build, draw: Callable[[nn.Module], None]
) -> None:
    stack = transformer(f"muddformer(norm={norm})")
    draw(stack)
    topology = stack.topology
    x = torch.randn(2, 5, 16).double()
    states, (q, k, v, r) = [x], (x, x, x, x)
    for block in range(1, 4):
        inside = r + stack.layers[2 * block - 2](q, k, v)
        states.append(inside + stack.layers[2 * block - 1](inside))
        module, streams = topology.weights[block - 1], list[Tensor]()
        for c in range(4 if block < 3 else 1):
            sources = states
            if norm == "pre-post":
                sources = [rms(state) * topology.pre_norms[j].weight for j, state in enumerate(states)]
            mix = sum(weights(module, states[-1], c, j) * source for j, source in enumerate(sources))
            if norm == "pre-post":
                if c == 3 or block == 3:
                    mix = rms(mix) * topology.post_norms[block - 1].weight
                mix = states[-1] + mix
            streams.append(mix)
        q, k, v, r = streams if block < 3 else (x, x, x, streams[0])
    torch.testing.assert_close(stack(x, torch.zeros_like(x)), r)


def test_blocks_of_one_layer_have_one_stream(mlp: Build, draw: Callable[[nn.Module], None]) -> None:
    stack = mlp("muddformer", depth=2)
    draw(stack)
    f, g = stack.layers
    after, last = stack.topology.weights
    x = torch.randn(2, 16).double()
    states = [x, x + f(x)]
    r = sum(weights(after, states[1], 0, j) * states[j] for j in range(2))
    states.append(r + g(r))
    expected = sum(weights(last, states[2], 0, j) * states[j] for j in range(3))
    torch.testing.assert_close(stack(x), expected)


def test_counts_are_those_of_the_papers_formula() -> None:
    for width, blocks, options, params in (
        (512, 6, "", 57_019),
        (512, 6, "(rounded=true)", 202_263),
        (768, 12, "", 287_861),
        (768, 12, "(rounded=true)", 610_689),
    ):
        sites = (Site(("q", "k", "v"), width, True), Site(("x",), width, False)) * blocks
        assert count_topology(*resolve_topology(f"muddformer{options}"), StackSpec(sites, width, 64)).params == params


def test_weights_start_at_the_newest_state_and_gains_small(transformer: Build) -> None:
    """W_1 from N(0, 1 / D), W_2 = 0, a = the newest state; pre-post: a = 0 and gains 1e-3."""
    for norm, newest in (("none", 1.0), ("pre-post", 0.0)):
        topology = transformer(f"muddformer(norm={norm})", depth=6).topology
        weights_at_start = torch.cat([weights.first.weight.flatten() for weights in topology.weights])
        assert abs(weights_at_start.std().item() * 16**0.5 - 1) < 0.05
        for weights in topology.weights:
            assert not weights.second.weight.any()
            assert (weights.a[:, -1] == newest).all()
            assert not weights.a[:, :-1].any()
        behind = [gain.weight.tolist() for gain in topology.post_norms]
        assert behind == ([pytest.approx([1e-3] * 16)] * 6 if norm == "pre-post" else [])


def test_64_hidden_features_are_rounded_to_128() -> None:
    sites = (Site(("q", "k", "v"), 8, True), Site(("x",), 8, False)) * 16
    exact, multiple = (
        count_topology(*resolve_topology(name), StackSpec(sites, 8, 8)).params
        for name in ("muddformer", "muddformer(rounded=true)")
    )
    most = [64] * 14 + [128, 128]  # multiples of 4 s, s = 2 .. 16, and 4 * 17 = 68
    sizes = [*((4 * s, 4 * s) for s in range(2, 17)), (68, 17)]
    assert multiple - exact == sum((new - k) * (8 + outputs) for new, (k, outputs) in zip(most, sizes, strict=True))
