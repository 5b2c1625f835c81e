"""Small networks of any topology, in double precision."""

from collections.abc import Callable

import pytest
from torch import nn

from search_spaces.layers.stack import Stack
from search_spaces.testing import small_networks
from search_spaces.topologies.registry import resolve_topology


@pytest.fixture
def transformer() -> Callable[..., Stack]:
    """Build the stack of a small causal transformer from one seed, without a final norm."""

    def build(topology: str, *, depth: int = 3, heads: int = 4, head_dim: int = 4) -> Stack:
        return small_networks.transformer(*resolve_topology(topology), depth, heads, head_dim)

    return build


@pytest.fixture
def mlp() -> Callable[..., Stack]:
    """Build a small stack of dense layers from one seed, without heads and a final norm."""

    def build(topology: str, *, depth: int = 3) -> Stack:
        return small_networks.dense(*resolve_topology(topology), depth)

    return build


@pytest.fixture
def draw() -> Callable[[nn.Module], nn.Module]:
    """Perturb all parameters of a module."""
    return small_networks.perturb
