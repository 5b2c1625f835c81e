"""Frac-connections, part by part."""

import re
from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from expect import raises
from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import count_topology
from search_spaces.topologies.registry import incompatibility_reason, resolve_topology

Build = Callable[..., Stack]


def reference(stack: Stack, x: Tensor, m: int) -> Tensor:
    """The published network, part by part and entry by entry."""
    parts = list(x.chunk(m, dim=-1))
    for connection, layer in zip(stack.topology.connections, stack.layers, strict=True):
        entries = [[connection.static[i, j] for j in range(2 * m + 1)] for i in range(m)]
        if connection.dynamic is not None:
            dynamic = connection.dynamic
            for i in range(m):
                normal = parts[i] / torch.sqrt((parts[i] ** 2).mean(-1, keepdim=True) + 1e-6) * dynamic.norm.weight
                for j in range(2 * m + 1):
                    scale = dynamic.scale_write if j == 2 * m else dynamic.scale_mix
                    change = torch.tanh((normal * dynamic.project.weight[j]).sum(-1, keepdim=True))
                    entries[i][j] = entries[i][j] + scale * change
        read = [sum(entries[i][j] * parts[i] for i in range(m)) for j in range(m)]
        carry = [sum(entries[i][m + j] * parts[i] for i in range(m)) for j in range(m)]
        outputs = layer(torch.cat(read, dim=-1)).chunk(m, dim=-1)
        parts = [carry[j] + entries[j][2 * m] * outputs[j] for j in range(m)]
    return torch.cat(parts, dim=-1)


def test_matches_the_equation(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for m, dynamic in product((1, 2, 4), ("true", "false")):
            with case(f"parts={m},dynamic={dynamic}"):
                stack = transformer(f"frac(parts={m},dynamic={dynamic})")
                draw(stack)
                x = torch.randn(2, 5, 16).double()
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), reference(stack, x, m))


def test_dynamic_weights_start_at_zero_with_small_scales(transformer: Build) -> None:
    for connection in transformer("frac").topology.connections:
        assert connection.static.tolist() == torch.cat((torch.eye(4), torch.eye(4), torch.ones(4, 1)), 1).tolist()
        dynamic = connection.dynamic
        assert not dynamic.project.weight.any()
        assert dynamic.scale_mix.item() == dynamic.scale_write.item() == pytest.approx(0.01)


def test_counts_are_the_published_ones() -> None:
    spec = StackSpec((Site(("q", "k", "v"), 2048, True), Site(("x",), 2048, False)) * 16, 2048, 128)
    for options, params in {"parts=4": 165_056, "parts=4,dynamic=false": 1_152}.items():
        assert count_topology(*resolve_topology(f"frac({options})"), spec).params == params


def test_parts_that_do_not_divide_the_width_are_refused(transformer: Build) -> None:
    with raises("mismatch", option="parts", value=3, width=16):
        transformer("frac(parts=3)")
    reason = incompatibility_reason(Architecture(depth=2, width=16, hidden=8, topology="frac(parts=3)")) or ""
    assert re.findall(r"\w+=\w+", reason) == ["parts=3", "width=16", "parts=2"]
