"""A search space: a base architecture, the values its fields may take and, where they are searched, a recipe's."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import Any

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from search_spaces.spec import Axes, Scalar, Spec, format_scalar
from search_spaces.topologies.registry import refusal

Point = dict[str, Scalar]
"""Where a candidate stands in a space: a value for each axis that applies to it."""

RECIPE = "recipe"
"""What stands before the dot in the name of an axis of the recipe: "recipe.lr"."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a search proposes: an architecture, and what the training's recipe is changed to for it.

    Attributes:
        architecture: The network.
        settings: Fields of the recipe and their values, in alphabetical order; none where no recipe is searched.
    """

    architecture: Architecture
    settings: tuple[tuple[str, Scalar], ...] = ()

    @property
    def key(self) -> str:
        """Ten hex digits, equal for equal candidates everywhere; the architecture's own where there are no settings."""
        if not self.settings:
            return self.architecture.key
        text = json.dumps([self.architecture.key, self.settings], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def __str__(self) -> str:
        settings = (f"{RECIPE}.{name}={format_scalar(value)}" for name, value in self.settings)
        return ",".join((str(self.architecture), *settings))


def option_of(axis: str) -> tuple[str, str] | None:
    """The topology and the option that an axis is of: "dca.k" -> ("dca", "k"). None of a field's or a recipe's axis."""
    owner, _, option = axis.rpartition(".")
    return (owner, option) if owner and owner != RECIPE else None


@dataclass(frozen=True)
class SearchSpace:
    """Every architecture made of `base` and one value of each axis that can be built, with every recipe.

    An axis is a field of Architecture ("depth", "topology"), an option of one topology ("dca.k"), which exists only
    where that topology is chosen, or a field of the training's recipe ("recipe.lr"). Whether the recipe has that
    field is not asked here: a space knows no task.

    Attributes:
        name: What the space is called in rows.
        base: The architecture that is always tried first; one of the space's.
        axes: Axis -> its values, without repetition, numbers in increasing order.

    Raises:
        UserError: An axis that is none of these, a repeated value, or a base outside the space.
    """

    name: str
    base: Architecture
    axes: Axes

    def __post_init__(self) -> None:
        known = {field.name for field in fields(Architecture)}
        names = {_topology_of({"topology": text}) for text in self.axes.get("topology", (self.base.topology,))}
        for axis, values in self.axes.items():
            option = option_of(axis)
            exists = option[0] in names if option else axis in known or axis.rpartition(".")[0] == RECIPE
            if not exists or axis.endswith("."):
                rule = "is no architecture field, TOPOLOGY.OPTION of a topology in it or recipe.FIELD"
                fitting = ", ".join(sorted(known - {"model"}))
                raise UserError(f"axis {axis!r} of space {self.name!r} {rule}. Fields: {fitting}.")
            if not values or len(set(values)) < len(values):
                raise UserError(f"axis {axis!r} of space {self.name!r} must have distinct values, got {values}.")
        if self.base not in self.architectures:
            has = "; ".join(f"{axis} {', '.join(map(str, values))}" for axis, values in self.axes.items())
            raise UserError(f"{self.base} is not in space {self.name!r}, which has {has}. {self._remedy(known)}")

    def with_axes(self, axes: Axes) -> "SearchSpace":
        """The space with these axes added, or in place of its own; its name says so.

        Raises:
            UserError: As the class does.
        """
        if not axes:
            return self
        said = [f"{axis}={','.join(map(format_scalar, values))}" for axis, values in axes.items()]
        return SearchSpace(" ".join((self.name, *said)), self.base, {**self.axes, **axes})

    @cached_property
    def architectures(self) -> Mapping[Architecture, Point]:
        """Every architecture that can be built, with its point without the recipe's axes, in the axes' order."""
        points = {self.candidate(point).architecture: point for point in self._points()}
        return {architecture: point for architecture, point in points.items() if refusal(architecture) is None}

    @cached_property
    def members(self) -> Mapping[Candidate, Point]:
        """Every candidate with its point: each architecture in turn, with each of the recipes."""
        axes = {axis: values for axis, values in self.axes.items() if _is_recipe(axis)}
        recipes = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
        return {
            Candidate(architecture, _settings(recipe)): point | recipe
            for architecture, point in self.architectures.items()
            for recipe in recipes
        }

    @property
    def first(self) -> Candidate:
        """What is tried first: the base, with the middle one of numbers and the first one of words in its recipe."""
        recipe = {
            axis: values[0 if isinstance(values[0], str | bool) else (len(values) - 1) // 2]
            for axis, values in self.axes.items()
            if _is_recipe(axis)
        }
        return Candidate(self.base, _settings(recipe))

    def _remedy(self, known: set[str]) -> str:
        """What to do about a base outside the space."""
        off = [axis for axis, values in self.axes.items() if axis in known and getattr(self.base, axis) not in values]
        said = ", ".join(f"{axis}={getattr(self.base, axis)}" for axis in off)
        return f"The base has {said}: add it to that axis, or change the base." if off else "Choose from these."

    def __contains__(self, candidate: Candidate) -> bool:
        return candidate in self.members

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def candidate(self, point: Mapping[str, Scalar]) -> Candidate:
        """Build what stands at a point."""
        changes: dict[str, Any] = {axis: value for axis, value in point.items() if "." not in axis}
        topology = Spec.parse(changes.get("topology", self.base.topology))
        options = {option[1]: value for axis, value in point.items() if (option := option_of(axis))}
        changes["topology"] = str(Spec(topology.name, {**topology.options, **options}))
        return Candidate(replace(self.base, **changes), _settings(point))

    def options(self, point: Mapping[str, Scalar]) -> list[str]:
        """The axes that are options of the topology at a point, and so apply there."""
        topology = _topology_of({"topology": self.base.topology, **point})
        return [axis for axis in self.axes if (option := option_of(axis)) and option[0] == topology]

    def _points(self) -> Iterator[Point]:
        plain = {axis: values for axis, values in self.axes.items() if "." not in axis}
        for values in product(*plain.values()):
            point = dict(zip(plain, values, strict=True))
            options = self.options(point)
            for chosen in product(*(self.axes[axis] for axis in options)):
                yield point | dict(zip(options, chosen, strict=True))


def _topology_of(point: Mapping[str, Scalar]) -> str:
    return Spec.parse(str(point["topology"])).name


def _is_recipe(axis: str) -> bool:
    return axis.startswith(f"{RECIPE}.")


def _settings(point: Mapping[str, Scalar]) -> tuple[tuple[str, Scalar], ...]:
    return tuple(sorted((axis.removeprefix(f"{RECIPE}."), value) for axis, value in point.items() if _is_recipe(axis)))
