"""From a topology's text to the wiring of a network, and to its closed form."""

from typing import Any

from search_spaces.count import Count
from search_spaces.topologies.base import Topology, Wiring
from search_spaces.topologies.per_block import Inner, PerBlock
from search_spaces.topologies.registry import load


def build(text: str, wiring: Wiring) -> Topology:
    """Wire a network as "dca(k=2)" or another topology's text says.

    Raises:
        UserError: An unknown topology or option, a value that the option cannot have, or a network that this
            topology cannot wire.
    """
    return wire(*load(text), wiring)


def count(text: str, wiring: Wiring) -> Count:
    """Closed form of what `build` makes: its parameters and, at one position, its work. Raises as `build` does."""
    return wire_count(*load(text), wiring)


def wire(topology: type[Topology], options: Any, wiring: Wiring) -> Topology:
    """Wire a network by a topology's class and options, whole blocks where that is its granularity."""
    topology, options = _with_granularity(topology, options)
    return topology(wiring, options)


def wire_count(topology: type[Topology], options: Any, wiring: Wiring) -> Count:
    """Closed form of what `wire` makes."""
    topology, options = _with_granularity(topology, options)
    return topology.count(wiring, options)


def _with_granularity(topology: type[Topology], options: Any) -> tuple[type[Topology], Any]:
    return (PerBlock, Inner(topology, options)) if topology.granularity == "block" else (topology, options)
