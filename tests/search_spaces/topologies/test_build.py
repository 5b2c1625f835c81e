"""From an architecture to the wiring of its network."""

from itertools import product

from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.topologies.base import Site
from search_spaces.topologies.build import count, topology_for
from search_spaces.topologies.grn import DCA
from search_spaces.topologies.per_block import PerBlock
from search_spaces.topologies.single_stream import ResNet

SITES = (Site(("q", "k", "v"), 8, True), Site(("x",), 8, False)) * 2


def of(topology: str) -> Architecture:
    return Architecture(depth=2, width=8, heads=2, head_dim=4, hidden=8, topology=topology)


def test_a_topology_of_layers_wires_layers() -> None:
    assert isinstance(topology_for(of("resnet"), SITES, 1), ResNet)


def test_a_topology_of_blocks_is_wrapped_per_block() -> None:
    topology = topology_for(of("dca(k=1)"), SITES, 1)
    assert isinstance(topology, PerBlock)
    assert isinstance(topology.inner, DCA)
    assert topology.input_mode == "per-port"


def test_an_unknown_topology_is_refused_with_the_nearest_name() -> None:
    for make, topology in product((topology_for, count), ("resent", "dca/resent")):
        with raises("unknown-name", option="topology", value="resent", nearest="resnet"):
            make(of(topology), SITES, 1)
