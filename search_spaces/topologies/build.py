"""Build or count the topology of a network from its text."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count
from search_spaces.topologies.base import Site, StackSpec, Topology
from search_spaces.topologies.per_block import BlockTopology, PerBlock, block_spec
from search_spaces.topologies.registry import resolve_topology
from search_spaces.topologies.segments import LayerSegment, Segments, segment_specs


def topology_for(architecture: Architecture, sites: Sequence[Site], num_embeddings: int) -> Topology:
    """Build the topology of an architecture for the sites of its layers.

    Raises:
        UserError: An unknown topology or option, an invalid value, or a network that the topology cannot connect.
    """
    topology, options = _topology(architecture, sites)
    return topology(_stack_spec(architecture, sites, num_embeddings), options)


def count(architecture: Architecture, sites: Sequence[Site], num_embeddings: int) -> Count:
    """Count parameters, and the work at one position, of what `topology_for` builds. Raises as it does."""
    topology, options = _topology(architecture, sites)
    return topology.count(_stack_spec(architecture, sites, num_embeddings), options)


def projects_values(architecture: Architecture, sites: Sequence[Site]) -> list[bool]:
    """Return for each layer whether it projects its own values, if it attends. Raises as `topology_for` does."""
    topology, options = _topology(architecture, sites)
    spec = _stack_spec(architecture, sites, 1)
    if topology is not Segments:
        return [_projects_values(topology, options, spec, t) for t in range(len(sites))]
    return [
        _projects_values(segment.topology, segment.options, part, t)
        for segment, part in zip(options, segment_specs(spec, options), strict=True)
        for t in range(segment.layers)
    ]


def build_topology(topology: type[Topology], options: Any, spec: StackSpec) -> Topology:
    """Build a topology from its class and options, for whole blocks if that is its granularity."""
    topology, options = _with_granularity(topology, options)
    return topology(spec, options)


def count_topology(topology: type[Topology], options: Any, spec: StackSpec) -> Count:
    """Count what `build_topology` builds, in closed form."""
    topology, options = _with_granularity(topology, options)
    return topology.count(spec, options)


def _projects_values(topology: type[Topology], options: Any, spec: StackSpec, t: int) -> bool:
    if topology is not PerBlock:
        return topology.projects_values(spec, options, t)
    block = sum(site.starts_block for site in spec.sites[: t + 1]) - 1
    return options.topology.projects_values(block_spec(spec), options.options, block)  # type: ignore[no-any-return]


def _topology(architecture: Architecture, sites: Sequence[Site]) -> tuple[type[Topology], Any]:
    segments = architecture.segments
    if len(segments) == 1:
        return _with_granularity(*resolve_topology(architecture.topology))
    block = list(accumulate(site.starts_block for site in sites))  # each layer's block, from 1
    ends = accumulate(segment.depth for segment in segments)
    layers = [
        sum(end - segment.depth < number <= end for number in block)
        for segment, end in zip(segments, ends, strict=True)
    ]
    return Segments, tuple(
        LayerSegment(*_with_granularity(*resolve_topology(segment.topology)), number, segment.head_dim)
        for segment, number in zip(segments, layers, strict=True)
    )


def _stack_spec(architecture: Architecture, sites: Sequence[Site], num_embeddings: int) -> StackSpec:
    return StackSpec(
        tuple(sites), architecture.width, architecture.head_dim, num_embeddings, architecture.by_block("hidden")
    )


def _with_granularity(topology: type[Topology], options: Any) -> tuple[type[Topology], Any]:
    return (PerBlock, BlockTopology(topology, options)) if topology.granularity == "block" else (topology, options)
