"""Enumerated spaces: a given list of architectures, such as those of a recorded table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.block_segments import has_one_topology
from search_spaces.architecture.canonical_text import with_defaults, without_defaults
from search_spaces.spaces.space import Point, SearchSpace
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Axes, Scalar, Spec

_PLAIN = tuple(field.name for field in fields(Architecture) if field.name != "topology")


def enumerated_space(name: str, architectures: Sequence[Architecture]) -> SearchSpace:
    """Return the space of these architectures. Its axes are the fields in which they differ; its base is the
    `initial_architecture`.

    Options of a topology are axes if all its architectures set the same options. Otherwise, and for segments of blocks,
    the whole topology text is one value.

    Raises:
        UserError: There are no architectures.
    """
    if not architectures:
        raise UserError("missing-value", f"space {name!r} must list at least one architecture, got none.", space=name)
    unique = dict.fromkeys(architectures)
    option_axes = _option_axes(unique)
    coordinates = {
        architecture: {field: getattr(architecture, field) for field in _PLAIN}
        | _topology_coordinates(architecture, option_axes)
        for architecture in unique
    }
    axes = _axes(coordinates.values())
    points = {
        architecture: {axis: value for axis, value in point.items() if axis in axes}
        for architecture, point in coordinates.items()
    }
    return SearchSpace(name, initial_architecture(architectures), axes, points)


def initial_architecture(architectures: Iterable[Architecture]) -> Architecture:
    """Return the architecture with the least key, where a search starts. The first in a file may be the best one."""
    return min(architectures, key=lambda architecture: architecture.key)


def _option_axes(architectures: Iterable[Architecture]) -> dict[str, tuple[str, ...]]:
    options_by_name: dict[str, list[Mapping[str, Scalar]]] = {}
    for text in {options.topology: None for options in architectures if has_one_topology(options.topology)}:
        spec = with_defaults(Spec.parse(text))
        options_by_name.setdefault(spec.name, []).append(spec.options)
    shared_options = {
        name: points
        for name, points in options_by_name.items()
        if all(options.keys() == points[0].keys() for options in points)
    }
    return {
        name: tuple(option for option in points[0] if len({options[option] for options in points}) > 1)
        for name, points in shared_options.items()
    }


def _topology_coordinates(architecture: Architecture, option_axes: Mapping[str, Sequence[str]]) -> Point:
    """Return an architecture's values on the axes of the topology and its options."""
    if not has_one_topology(architecture.topology):
        return {"topology": architecture.topology}
    spec = with_defaults(Spec.parse(architecture.topology))
    axis_options = option_axes.get(spec.name, ())
    word = Spec(spec.name, {option: value for option, value in spec.options.items() if option not in axis_options})
    return {
        "topology": str(without_defaults(word)),
        **{f"{spec.name}.{option}": spec.options[option] for option in axis_options},
    }


def _axes(points: Iterable[Point]) -> Axes:
    """Return the axes on which points differ, or depth if there are none; numbers in increasing order."""
    values: dict[str, dict[Scalar, None]] = {}
    for point in points:
        for axis, value in point.items():
            values.setdefault(axis, {})[value] = None
    differing = {axis: tuple(distinct) for axis, distinct in values.items() if len(distinct) > 1}
    return {
        axis: _sort_numbers(distinct) for axis, distinct in (differing or {"depth": tuple(values["depth"])}).items()
    }


def _sort_numbers(values: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return tuple(sorted(numbers)) if len(numbers) == len(values) else values
