"""Build or count the topology of a network from its text."""

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
    """Build the topology of an architecture for the sites of its layers.

    Raises:
        UserError: An unknown topology or option, an invalid value, or a network that the topology cannot connect.
    """
    topology, options = _topology(architecture, sites)
    return topology(_wiring(architecture, sites, parts), options)


def count(architecture: Architecture, sites: Sequence[Site], parts: int) -> Count:
    """Count parameters and the work at one position of what `build` makes, in closed form. Raises as `build` does."""
    topology, options = _topology(architecture, sites)
    return topology.count(_wiring(architecture, sites, parts), options)


def projects_values(architecture: Architecture, sites: Sequence[Site]) -> list[bool]:
    """Return for each layer whether it projects its own values, if it attends. Raises as `build` does."""
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
    """Build a topology from its class and options, for whole blocks if that is its granularity."""
    topology, options = _with_granularity(topology, options)
    return topology(wiring, options)


def wire_count(topology: type[Topology], options: Any, wiring: Wiring) -> Count:
    """Count what `wire` builds, in closed form."""
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
    block = list(accumulate(site.starts_block for site in sites))  # each layer's block, from 1
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
