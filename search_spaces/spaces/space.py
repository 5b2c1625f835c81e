"""Search spaces: a base architecture and the values of its axes, optionally with axes of the recipe."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.block_segments import has_one_topology, normalize_axes, topologies_of
from search_spaces.architecture.canonical_text import with_defaults
from search_spaces.spaces.axis_names import RECIPE, is_recipe, option_of, replaces, segment_of, settings_of
from search_spaces.support.errors import Kind, UserError
from search_spaces.support.spec import Axes, Scalar, Spec, format_scalar
from search_spaces.topologies.registry import incompatibility_reason, resolve_topology

Point = dict[str, Scalar]
"""The coordinates of a candidate: a value for each axis that applies to it."""

MAX_MEMBERS = 200_000
"""Maximum number of combinations of a space that can be enumerated."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposal of a search: an architecture and changes to the recipe.

    Attributes:
        architecture: The network.
        settings: Changed fields of the recipe and their values, in alphabetical order; empty if no recipe is searched.
    """

    architecture: Architecture
    settings: tuple[tuple[str, Scalar], ...] = ()

    @property
    def key(self) -> str:
        """Ten hex digits, equal for equal candidates everywhere; the architecture's key if there are no settings."""
        if not self.settings:
            return self.architecture.key
        text = json.dumps([self.architecture.key, self.settings], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def __str__(self) -> str:
        settings = (f"{RECIPE}.{name}={format_scalar(value)}" for name, value in self.settings)
        return ",".join((str(self.architecture), *settings))


@dataclass(frozen=True)
class SearchSpace:
    """All valid architectures with one value of each axis and `base` elsewhere, combined with all recipes.

    An axis is a field of Architecture ("depth", "topology"), a field of one of equal segments of blocks ("heads:3",
    counted from 1; every segment needs one), an option of a topology ("dca.k"), or a field of the recipe ("recipe.lr").
    An option's axis applies only where its topology is chosen. Fields of the recipe are not checked, since a space
    knows no task. Members are enumerated on demand, and only with at most MAX_MEMBERS combinations.

    Attributes:
        name: Name of the space in rows.
        base: The architecture that is always tried first; a member of the space.
        axes: Axis -> its values, without repetition, numbers in increasing order.
        point_table: The members and their points, from `spaces.enumerated`; None if all valid combinations are members.

    Raises:
        UserError: An unknown axis, segments that are incomplete or do not divide the depth, a duplicate or invalid
            value, or a base outside the space.
    """

    name: str
    base: Architecture
    axes: Axes
    point_table: Mapping[Architecture, Point] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", normalize_axes(self.axes))
        if self.point_table is None:
            self._check_axes()
            self._check_segments()
            self._check_values()
        if Candidate(self.base, self.first.settings) not in self:
            raise self._without_base()

    def _check_axes(self) -> None:
        field_names = {field.name for field in fields(Architecture)} - {"blocks"}
        names = {_topology_of({"topology": text}) for text in self.axes.get("topology", (self.base.topology,))}
        for axis, values in self.axes.items():
            option = option_of(axis)
            exists = option[0] in names if option else axis in field_names or axis.rpartition(".")[0] == RECIPE
            if not (exists or segment_of(axis)) or axis.endswith("."):
                rule = "must be an architecture field, FIELD:NUMBER, TOPOLOGY.OPTION of its topologies or recipe.FIELD"
                choices = tuple(sorted(field_names - {"model"}))
                message = f"axis {axis!r} of space {self.name!r} {rule}. Fields: {', '.join(choices)}."
                raise UserError("unknown-name", message, option="axis", value=axis, choices=choices, space=self.name)
            if not values or len(set(values)) < len(values):
                message = f"axis {axis!r} of space {self.name!r} must have distinct values, got {values}."
                kind: Kind = "duplicate" if values else "missing-value"
                twice = next((value for value in values if values.count(value) > 1), None)
                raise UserError(kind, message, option=axis, value=twice, space=self.name)

    def with_axes(self, axes: Axes) -> "SearchSpace":
        """Return the space with these axes added or replaced, and with a name that lists them.

        A field's axis replaces those of its segments, and vice versa. Options of topologies that are no longer in the
        space are dropped.

        Raises:
            UserError: As for the class, or the space is enumerated.
        """
        if not axes:
            return self
        if self.point_table is not None:
            axis, *_ = axes
            message = f"space {self.name!r} lists its architectures and takes no axes, got axis {axis!r}."
            raise UserError("unsupported", message, option="axis", value=axis, space=self.name)
        texts = [f"{axis}={','.join(map(format_scalar, values))}" for axis, values in normalize_axes(axes).items()]
        topologies = {_topology_of({"topology": text}) for text in axes.get("topology", ())}
        replaced_axes = {
            axis for axis in self.axes if topologies and (option := option_of(axis)) and option[0] not in topologies
        }
        replaced_axes |= {axis for axis in self.axes if any(replaces(new, axis) for new in axes)}
        remaining = {axis: values for axis, values in self.axes.items() if axis not in replaced_axes}
        return SearchSpace(" ".join((self.name, *texts)), self.base, {**remaining, **axes})

    @cached_property
    def combinations(self) -> int:
        """The number of combinations of values; the valid ones are members."""
        plain = {axis: values for axis, values in self.axes.items() if option_of(axis) is None and axis != "topology"}
        topologies = self.axes.get("topology", (self.base.topology,))
        topology_combinations = sum(
            prod(len(self.axes[axis]) for axis in self.options({"topology": text})) for text in topologies
        )
        return topology_combinations * prod(map(len, plain.values()))

    @property
    def is_enumerable(self) -> bool:
        """Whether the members can be enumerated."""
        return self.point_table is not None or self.combinations <= MAX_MEMBERS

    @cached_property
    def segments(self) -> Mapping[str, tuple[str, ...]]:
        """Field -> its axes in order, for fields with an axis per segment of blocks."""
        axes_by_segment: dict[str, dict[int, str]] = {}
        for axis in self.axes:
            if segment := segment_of(axis):
                axes_by_segment.setdefault(segment[0], {})[segment[1]] = axis
        return {
            field: tuple(by_number[number] for number in sorted(by_number))
            for field, by_number in axes_by_segment.items()
        }

    @cached_property
    def architectures(self) -> Mapping[Architecture, Point]:
        """Every valid architecture -> its point without the recipe's axes."""
        if not self.is_enumerable:
            many, remedy = f"{Decimal(self.combinations):.1e} combinations", "Give fewer values with --axis."
            message = f"space {self.name!r} has {many}; at most {MAX_MEMBERS:,} can be listed. {remedy}"
            raise UserError("too-large", message, space=self.name, value=self.combinations, most=MAX_MEMBERS)
        if self.point_table is not None:
            return self.point_table
        points = {self.candidate(point).architecture: point for point in self._points()}
        return {
            architecture: point
            for architecture, point in points.items()
            if incompatibility_reason(architecture) is None
        }

    @cached_property
    def members(self) -> Mapping[Candidate, Point]:
        """Every candidate -> its point: each architecture with each recipe. Raises as `architectures` does."""
        axes = {axis: values for axis, values in self.axes.items() if is_recipe(axis)}
        recipes = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
        return {
            Candidate(architecture, settings_of(recipe)): point | recipe
            for architecture, point in self.architectures.items()
            for recipe in recipes
        }

    @property
    def first(self) -> Candidate:
        """The candidate tried first: the base, with the middle number or the first word of each recipe axis."""
        recipe = {
            axis: values[0 if isinstance(values[0], str | bool) else (len(values) - 1) // 2]
            for axis, values in self.axes.items()
            if is_recipe(axis)
        }
        return Candidate(self.base, settings_of(recipe))

    def __contains__(self, candidate: Candidate) -> bool:
        if self.point(candidate) is None:
            return False
        return self.point_table is not None or incompatibility_reason(candidate.architecture) is None

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def candidate(self, point: Mapping[str, Scalar]) -> Candidate:
        """Build the candidate at a point."""
        changes: dict[str, Any] = {axis: value for axis, value in point.items() if axis.isidentifier()}
        changes |= {field: tuple(point[axis] for axis in axes) for field, axes in self.segments.items()}
        if "topology" in self.segments:
            changes["topology"] = "/".join(changes["topology"])
        options = {option[1]: value for axis, value in point.items() if (option := option_of(axis))}
        if options:
            topology = Spec.parse(changes.get("topology", self.base.topology))
            changes["topology"] = str(Spec(topology.name, {**topology.options, **options}))
        return Candidate(self.base.with_fields(changes), settings_of(point))

    def point(self, candidate: Candidate) -> Point | None:
        """Return the point of a candidate, or None; whether it is valid is not checked."""
        architecture = candidate.architecture
        if self.point_table is not None:
            return None if candidate.settings else self.point_table.get(architecture)
        if any(architecture.depth % len(axes) for axes in self.segments.values()):
            return None
        coordinates = self._fields(architecture) | {f"{RECIPE}.{name}": value for name, value in candidate.settings}
        if set(filter(is_recipe, coordinates)) != set(filter(is_recipe, self.axes)):
            return None
        options = (
            with_defaults(Spec.parse(architecture.topology)).options if has_one_topology(architecture.topology) else {}
        )
        for topology in reversed(self.axes.get("topology", (self.base.topology,))):
            point = coordinates | ({"topology": topology} if "topology" in self.axes else {})
            point |= {axis: options.get(axis.rpartition(".")[2], "") for axis in self.options(point)}
            inside = all(value in self.axes.get(axis, ()) for axis, value in point.items())
            if inside and self.candidate(point) == candidate:
                return point
        return None

    def options(self, point: Mapping[str, Scalar]) -> list[str]:
        """Return the axes of options that apply at a point: those of its topology."""
        topology = _topology_of({"topology": self.base.topology, **point})
        return [axis for axis in self.axes if (option := option_of(axis)) and option[0] == topology]

    def shapes(self) -> Iterator[Point]:
        """Yield every combination of the axes that hold for all blocks: fields and options of topologies."""
        plain = {axis: values for axis, values in self.axes.items() if axis.isidentifier()}
        for values in product(*plain.values()):
            point = dict(zip(plain, values, strict=True))
            options = self.options(point)
            for option_values in product(*(self.axes[axis] for axis in options)):
                yield point | dict(zip(options, option_values, strict=True))

    def _fields(self, architecture: Architecture) -> Point:
        coordinates: Point = {axis: getattr(architecture, axis) for axis in self.axes if axis.isidentifier()}
        for field, axes in self.segments.items():
            segments = [architecture.at_block(r * architecture.depth // len(axes)) for r in range(len(axes))]
            coordinates |= {axis: getattr(segment, field) for axis, segment in zip(axes, segments, strict=True)}
        return coordinates

    def _points(self) -> Iterator[Point]:
        segments = {axis: self.axes[axis] for axes in self.segments.values() for axis in axes}
        for point in self.shapes():
            for values in product(*segments.values()):
                yield point | dict(zip(segments, values, strict=True))

    def _check_segments(self) -> None:
        """Raise UserError if a field lacks the axis of a segment, or its segments do not divide the depth."""
        for field, axes in self.segments.items():
            needs = [f"{field}:{number}" for number in range(1, len(axes) + 1)]
            suffix = f"of space {self.name!r}"
            if list(axes) != needs:
                message = f"runs of blocks {suffix} must be {', '.join(needs)}, got {', '.join(axes)}. Name them all."
                raise UserError("missing-value", message, option=field, value=axes, needs=tuple(needs))
            for depth in self.axes.get("depth", (self.base.depth,)):
                if int(depth) % len(axes):
                    message = f"{len(axes)} runs with axes {axes[0]} ... {suffix} must divide the depth, got {depth}."
                    raise UserError("mismatch", message, option=field, value=axes, depth=depth)
            if field in self.axes:
                message = f"axes {field!r} and {axes[0]!r} {suffix} set the same field. Remove one."
                raise UserError("duplicate", message, option=field, value=axes[0])
            if field == "topology" and (option := next(filter(option_of, self.axes), None)):
                message = f"axis {option!r} {suffix} belongs to no run. Write {axes[0]}=NAME(OPTION=VALUE),... instead."
                raise UserError("conflict", message, option=option, value=axes[0])

    def _check_values(self) -> None:
        for axis, values in self.axes.items():
            field, option = axis.partition(":")[0], option_of(axis)
            for value in () if is_recipe(axis) else values:
                if option:
                    resolve_topology(str(Spec(option[0], {option[1]: value})))
                    continue
                if segment_of(axis) and not has_one_topology(str(value)):
                    message = f"each value of axis {axis!r} of space {self.name!r} must be one topology, got {value}."
                    raise UserError("unsupported", message, option=axis, value=value, space=self.name)
                architecture = self.base.with_fields({field: value})
                for segment in topologies_of(architecture.topology) if field == "topology" else ():
                    resolve_topology(segment)

    def _without_base(self) -> UserError:
        """Return the error for a base outside the space, with the axes that lack its value and a remedy."""
        differing = {axis: value for axis, value in self._fields(self.base).items() if value not in self.axes[axis]}
        has = "; ".join(f"{axis} {', '.join(map(str, values))}" for axis, values in self.axes.items())
        differences = ", ".join(f"{axis}={value}" for axis, value in differing.items())
        remedy = f"Add {differences} to the axes, or change the base." if differing else "Choose from these."
        message = f"{self.base} is not in space {self.name!r}, which has {has}. {remedy}"
        return UserError(
            "mismatch", message, option="base", value=str(self.base), space=self.name, axes=tuple(differing)
        )


def _topology_of(point: Mapping[str, Scalar]) -> str:
    """Return the name of the topology at a point; "" if segments have their own."""
    text = str(point["topology"])
    return Spec.parse(text).name if has_one_topology(text) else ""
