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
    topology, options = _with_granularity(text)
    return topology(wiring, options)


def count(text: str, wiring: Wiring) -> Count:
    """Closed form of what `build` makes: its parameters and, at one position, its work. Raises as `build` does."""
    topology, options = _with_granularity(text)
    return topology.count(wiring, options)


def _with_granularity(text: str) -> tuple[type[Topology], Any]:
    topology, options = load(text)
    return (PerBlock, Inner(topology, options)) if topology.granularity == "block" else (topology, options)
