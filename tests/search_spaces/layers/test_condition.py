"""Layers with a condition, such as a diffusion's time and class."""

import pytest
import torch
from torch import Tensor, nn

from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack, build_stack
from search_spaces.testing.small_networks import perturb
from search_spaces.topologies.base import Site
from search_spaces.topologies.registry import TOPOLOGIES

B, N, D, C = 2, 3, 8, 5


class ModulatedLayer(nn.Module):
    """A dense layer scaled by a condition: [B, N, D] and [B, C] to [B, N, D]."""

    def __init__(self, takes_condition: bool) -> None:
        super().__init__()
        self.site = Site(("x",), D, starts_block=True, takes_condition=takes_condition)
        self.map, self.scale = nn.Linear(D, D), nn.Linear(C, D)
        self.conditions: list[Tensor | None] = []

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        self.conditions.append(condition)
        y = torch.tanh(self.map(x))
        return y if condition is None else y * self.scale(condition)[:, None]


def stack(topology: str) -> Stack:
    torch.manual_seed(0)
    architecture = Architecture(depth=3, width=D, hidden=D, heads=2, head_dim=4, topology=topology)
    layers = [ModulatedLayer(takes_condition) for takes_condition in (True, False, True)]
    return build_stack(architecture, layers, Norm("layer", 1e-6), num_embeddings=1)


def check_condition(network: Stack) -> None:
    """Assert that only conditioned layers get the condition, each example its own."""
    x = torch.randn(B, N, D, generator=torch.Generator().manual_seed(1))
    condition = torch.randn(B, C, generator=torch.Generator().manual_seed(2), requires_grad=True)
    y = network(x, condition=condition)
    assert y.shape == x.shape
    first, second, third = (layer.conditions[0] for layer in network.layers)  # type: ignore[union-attr]
    assert first is condition
    assert second is None
    assert third is condition
    (gradient,) = torch.autograd.grad(y.square().sum() + y.sum(), condition)
    assert gradient.abs().sum(dim=1).min() > 0
    variant = condition.detach().clone()
    variant[0] += 1
    with torch.no_grad():
        other = network(x, condition=variant)
    assert not torch.allclose(other[0], y[0])
    torch.testing.assert_close(other[1], y[1])


@pytest.mark.parametrize("recompute", [False, True], ids=["kept", "recomputed"])
def test_only_conditioned_layers_get_the_condition(recompute: bool) -> None:
    with grouped() as case:
        for topology in TOPOLOGIES.names():
            with case(topology):
                network = perturb(stack(topology))  # ReZero starts at zero
                network.recompute = recompute
                check_condition(network)


def test_without_a_condition_no_layer_gets_one() -> None:
    with grouped() as case:
        for topology in TOPOLOGIES.names():
            with case(topology):
                network = stack(topology)
                network(torch.zeros(B, N, D))
                assert all(layer.conditions == [None] for layer in network.layers)
