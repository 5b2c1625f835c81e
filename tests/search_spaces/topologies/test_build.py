"""From text to wiring."""

import pytest

from search_spaces.errors import UserError
from search_spaces.topologies.base import Site, Wiring
from search_spaces.topologies.build import build, count
from search_spaces.topologies.chain import ResNet
from search_spaces.topologies.grn import DCA
from search_spaces.topologies.per_block import PerBlock

WIRING = Wiring((Site(("q", "k", "v"), 8, True), Site(("x",), 8, False)) * 2, 8, 4)


def test_layers_are_wired_directly() -> None:
    assert isinstance(build("resnet", WIRING), ResNet)


def test_blocks_are_wired_by_the_topology_inside() -> None:
    topology = build("dca(k=1)", WIRING)
    assert isinstance(topology, PerBlock)
    assert isinstance(topology.inner, DCA)
    assert topology.delivers == "per-port"


@pytest.mark.parametrize("make", [build, count])
def test_what_is_not_installed_is_a_mistake(make: object) -> None:
    with pytest.raises(UserError, match="Did you mean 'resnet'"):
        make("resent", WIRING)  # type: ignore[operator]
