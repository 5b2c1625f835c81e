"""A space that lists its members: some architectures and no others, as a table of recorded ones has them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.block_segments import is_one_run
from search_spaces.architecture.canonical_text import shortest, whole
from search_spaces.spaces.space import Point, SearchSpace
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Axes, Scalar, Spec

_PLAIN = tuple(field.name for field in fields(Architecture) if field.name != "topology")


def enumerated_space(name: str, architectures: Sequence[Architecture]) -> SearchSpace:
    """The space of these architectures; its axes are what they differ in, and its base is `first_of` them.

    Options of a topology are axes of their own, as in the installed spaces, where all architectures that it wires say
    the same ones; otherwise, and where runs of blocks have topologies of their own, the whole text is a word.

    Raises:
        UserError: There are none.
    """
    if not architectures:
        raise UserError("missing-value", f"space {name!r} must list an architecture, got none.", space=name)
    every = dict.fromkeys(architectures)
    searched = _searched_options(every)
    places = {one: {field: getattr(one, field) for field in _PLAIN} | _wiring(one, searched) for one in every}
    axes = _axes(places.values())
    points = {one: {axis: value for axis, value in point.items() if axis in axes} for one, point in places.items()}
    return SearchSpace(name, first_of(architectures), axes, points)


def first_of(architectures: Iterable[Architecture]) -> Architecture:
    """Where a search begins: at the least key, for the first that stands in a file may be the best that is in it."""
    return min(architectures, key=lambda one: one.key)


def _searched_options(architectures: Iterable[Architecture]) -> dict[str, tuple[str, ...]]:
    said: dict[str, list[Mapping[str, Scalar]]] = {}
    for text in {one.topology: None for one in architectures if is_one_run(one.topology)}:
        spec = whole(Spec.parse(text))
        said.setdefault(spec.name, []).append(spec.options)
    alike = {name: every for name, every in said.items() if all(one.keys() == every[0].keys() for one in every)}
    return {
        name: tuple(option for option in every[0] if len({one[option] for one in every}) > 1)
        for name, every in alike.items()
    }


def _wiring(architecture: Architecture, searched: Mapping[str, Sequence[str]]) -> Point:
    """Where an architecture stands on the axis of topologies, and on those of its topology's options."""
    if not is_one_run(architecture.topology):
        return {"topology": architecture.topology}
    spec = whole(Spec.parse(architecture.topology))
    apart = searched.get(spec.name, ())
    word = Spec(spec.name, {option: value for option, value in spec.options.items() if option not in apart})
    return {"topology": str(shortest(word)), **{f"{spec.name}.{option}": spec.options[option] for option in apart}}


def _axes(points: Iterable[Point]) -> Axes:
    """The axes on which points differ, and depth where they do on none; numbers in increasing order."""
    values: dict[str, dict[Scalar, None]] = {}
    for point in points:
        for axis, value in point.items():
            values.setdefault(axis, {})[value] = None
    differing = {axis: tuple(known) for axis, known in values.items() if len(known) > 1}
    return {axis: _ordered(known) for axis, known in (differing or {"depth": tuple(values["depth"])}).items()}


def _ordered(values: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return tuple(sorted(numbers)) if len(numbers) == len(values) else values
