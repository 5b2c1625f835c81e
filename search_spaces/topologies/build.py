"""From a topology's text to the wiring of a network, and to its closed form."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count
from search_spaces.topologies.base import Site, Topology, Wiring
from search_spaces.topologies.per_block import Inner, PerBlock, openings
from search_spaces.topologies.registry import load
from search_spaces.topologies.runs import LayerRun, Runs, wirings


def build(architecture: Architecture, sites: Sequence[Site], parts: int) -> Topology:
    """Wire a network's layers, which make as many blocks as it is deep, as its topology says.

    Raises:
        UserError: An unknown topology or option, a value that the option cannot have, or a network that this
            topology cannot wire.
    """
    topology, options = _topology(architecture, sites)
    return topology(_wiring(architecture, sites, parts), options)


def count(architecture: Architecture, sites: Sequence[Site], parts: int) -> Count:
    """Closed form of what `build` makes: its parameters and, at one position, its work. Raises as `build` does."""
    topology, options = _topology(architecture, sites)
    return topology.count(_wiring(architecture, sites, parts), options)


def projects_values(architecture: Architecture, sites: Sequence[Site]) -> list[bool]:
    """Of each layer whether it projects values of its own, where it attends. Raises as `build` does."""
    topology, options = _topology(architecture, sites)
    wiring = _wiring(architecture, sites, 1)
    if topology is not Runs:
        return [_projects_values(topology, options, wiring, t) for t in range(len(sites))]
    return [
        _projects_values(run.topology, run.options, part, t)
        for run, part in zip(options, wirings(wiring, options), strict=True)
        for t in range(run.layers)
    ]


def wire(topology: type[Topology], options: Any, wiring: Wiring) -> Topology:
    """Wire a network by a topology's class and options, whole blocks where that is its granularity."""
    topology, options = _with_granularity(topology, options)
    return topology(wiring, options)


def wire_count(topology: type[Topology], options: Any, wiring: Wiring) -> Count:
    """Closed form of what `wire` makes."""
    topology, options = _with_granularity(topology, options)
    return topology.count(wiring, options)


def _projects_values(topology: type[Topology], options: Any, wiring: Wiring, t: int) -> bool:
    if topology is not PerBlock:
        return topology.projects_values(wiring, options, t)
    block = sum(site.starts_block for site in wiring.sites[: t + 1]) - 1
    return options.topology.projects_values(openings(wiring), options.options, block)  # type: ignore[no-any-return]


def _topology(architecture: Architecture, sites: Sequence[Site]) -> tuple[type[Topology], Any]:
    runs = architecture.runs
    if len(runs) == 1:
        return _with_granularity(*load(architecture.topology))
    block = list(accumulate(site.starts_block for site in sites))  # the number of each layer's, from 1
    ends = accumulate(run.depth for run in runs)
    layers = [sum(end - run.depth < number <= end for number in block) for run, end in zip(runs, ends, strict=True)]
    return Runs, tuple(
        LayerRun(*_with_granularity(*load(run.topology)), number, run.head_dim)
        for run, number in zip(runs, layers, strict=True)
    )


def _wiring(architecture: Architecture, sites: Sequence[Site], parts: int) -> Wiring:
    return Wiring(tuple(sites), architecture.width, architecture.head_dim, parts, architecture.by_block("hidden"))


def _with_granularity(topology: type[Topology], options: Any) -> tuple[type[Topology], Any]:
    return (PerBlock, Inner(topology, options)) if topology.granularity == "block" else (topology, options)
