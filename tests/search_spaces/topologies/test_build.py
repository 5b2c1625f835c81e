"""From an architecture to the wiring of its network."""

from collections.abc import Callable
from typing import Any

import pytest

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from search_spaces.topologies.base import Site
from search_spaces.topologies.build import build, count
from search_spaces.topologies.chain import ResNet
from search_spaces.topologies.grn import DCA
from search_spaces.topologies.per_block import PerBlock

SITES = (Site(("q", "k", "v"), 8, True), Site(("x",), 8, False)) * 2


def of(topology: str) -> Architecture:
    return Architecture(depth=2, width=8, heads=2, head_dim=4, hidden=8, topology=topology)


def test_layers_are_wired_directly() -> None:
    assert isinstance(build(of("resnet"), SITES, 1), ResNet)


def test_blocks_are_wired_by_the_topology_inside() -> None:
    topology = build(of("dca(k=1)"), SITES, 1)
    assert isinstance(topology, PerBlock)
    assert isinstance(topology.inner, DCA)
    assert topology.delivers == "per-port"


@pytest.mark.parametrize("make", [build, count])
@pytest.mark.parametrize("topology", ["resent", "dca/resent"])
def test_what_is_not_installed_is_a_mistake(make: Callable[..., Any], topology: str) -> None:
    with pytest.raises(UserError, match="Did you mean 'resnet'"):
        make(of(topology), SITES, 1)
