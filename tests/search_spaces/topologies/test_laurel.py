"""LAuReL's forms, layer by layer."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from grouped import grouped
from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import count_topology
from search_spaces.topologies.laurel import LowRank
from search_spaces.topologies.registry import resolve_topology

Build = Callable[..., Stack]


def multiply(module: LowRank, x: torch.Tensor) -> torch.Tensor:
    """B A x with one matrix of rank R."""
    return torch.einsum("ij,bnj->bni", module.up.weight @ module.down.weight, x)


def test_rw_weights_output_and_skip(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    for rank in (0, 3):
        stack = transformer(f"laurel-rw(rank={rank})")
        draw(stack)
        x = torch.randn(2, 5, 16).double()
        y = x
        for t, layer in enumerate(stack.layers):
            first, second = (math.exp(float(logit)) for logit in stack.topology.logits[t].detach())
            skip = y + multiply(stack.topology.maps[t], y) if rank else y
            y = 2 * first / (first + second) * layer(y) + 2 * second / (first + second) * skip
        torch.testing.assert_close(stack(x, torch.zeros_like(x)), y)


def test_low_rank_maps_read_the_latest_states(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for reach in (1, 2, 3, 20):
            with case(f"reach={reach}"):
                stack = transformer(f"laurel(rank=3,reach={reach})")
                draw(stack)
                topology = stack.topology
                x = torch.randn(2, 5, 16).double()
                states = [x]
                for t, layer in enumerate(stack.layers):
                    new = states[t] + layer(states[t])
                    for j in range(min(reach, t + 1)):
                        new = new + (topology.g[t][j] if reach > 1 else 1) * multiply(topology.maps[t], states[t - j])
                    states.append(new)
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), states[-1])


def test_parameters_are_two_maps_and_a_number_for_each_state() -> None:
    spec = StackSpec((Site(("q", "k", "v"), 64, True), Site(("x",), 64, False)) * 12, 64, 16)
    assert count_topology(*resolve_topology("laurel(rank=8,reach=3)"), spec).params == 24 * (2 * 8 * 64 + 3) - 3
    assert count_topology(*resolve_topology("laurel(rank=8)"), spec).params == 24 * 2 * 8 * 64
    assert count_topology(*resolve_topology("laurel-rw"), spec).params == 24 * 2


def test_maps_start_by_xaviers_rule_and_at_zero() -> None:
    options = resolve_topology("laurel")[1]
    assert (options.rank, options.reach) == (16, 1)
    low_rank = LowRank(300, 100)
    assert low_rank.down.weight.abs().max().item() == pytest.approx(math.sqrt(6 / 400), rel=0.01)
    assert low_rank.down.weight.std().item() == pytest.approx(math.sqrt(2 / 400), rel=0.02)
    assert not low_rank.up.weight.any()
