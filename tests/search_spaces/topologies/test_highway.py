"""The highway transformer's forms, layer by layer."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from grouped import grouped
from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import count_topology
from search_spaces.topologies.registry import resolve_topology

Build = Callable[..., Stack]
FORMS = ["tanh", "sigmoid", "highway"]


def affine(module: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    return torch.einsum("ij,bnj->bni", module.weight, x) + module.bias


def skip(form: str, gate: torch.Tensor, value: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    logistic = 1 / (1 + torch.exp(-gate))
    if form == "highway":
        return (1 - logistic) * x + logistic * value
    return x + (logistic if form == "sigmoid" else 2 / (1 + torch.exp(-2 * gate)) - 1) * value


def test_the_stream_is_gated_by_itself(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for form in FORMS:
            with case(form):
                stack = transformer(f"highway(form={form})")
                draw(stack)
                tokens, positions = torch.randn(2, 2, 5, 16).double()
                x = tokens + positions
                for layer, gates in zip(stack.layers, stack.topology.gates, strict=True):
                    x = layer(x) + skip(form, affine(gates.gate, x), affine(gates.value, x), x)
                torch.testing.assert_close(stack(tokens, positions), x)


def test_gates_start_as_in_the_official_code(transformer: Build) -> None:
    for form in FORMS:
        for gates in transformer(f"highway(form={form})", depth=8).topology.gates:
            for module in (gates.gate, gates.value):
                assert module.weight.std().item() == pytest.approx(0.02, rel=0.2), form
                assert module.bias.eq(0).all(), form


def test_each_layer_has_two_square_maps() -> None:
    spec = StackSpec((Site(("q", "k", "v"), 768, True), Site(("x",), 768, False)) * 12, 768, 64)
    assert count_topology(*resolve_topology("highway"), spec).params == 12 * (4 * 768**2 + 4 * 768)
