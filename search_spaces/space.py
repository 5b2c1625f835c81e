"""A search space: a base architecture and the values its fields may take."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import Any

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from search_spaces.spec import Scalar, Spec
from search_spaces.topologies.registry import refusal

Point = dict[str, Scalar]
"""Where an architecture stands in a space: a value for each axis that applies to it."""


@dataclass(frozen=True)
class SearchSpace:
    """Every architecture made of `base` and one value of each axis that can be built.

    An axis is a field of Architecture ("depth", "topology"), or an option of one topology
    ("dca.k"), which exists only where that topology is chosen.

    Attributes:
        name: What the space is called in rows.
        base: The architecture that is always tried first; a member of the space.
        axes: Axis -> its values, without repetition, numbers in increasing order.

    Raises:
        UserError: An axis that is no field or option, a repeated value, or a base outside the space.
    """

    name: str
    base: Architecture
    axes: Mapping[str, tuple[Scalar, ...]]

    def __post_init__(self) -> None:
        known = {field.name for field in fields(Architecture)}
        names = set(map(str, self.axes.get("topology", (self.base.topology,))))
        for axis, values in self.axes.items():
            if axis not in known and axis.partition(".")[0] not in names:
                raise UserError(f"axis {axis!r} of space {self.name!r} is no architecture field or TOPOLOGY.OPTION.")
            if not values or len(set(values)) < len(values):
                raise UserError(f"axis {axis!r} of space {self.name!r} must have distinct values, got {values}.")
        if self.base not in self:
            has = "; ".join(f"{axis} {', '.join(map(str, values))}" for axis, values in self.axes.items())
            raise UserError(f"{self.base} is not in space {self.name!r}, which has {has}. Choose from these.")

    @cached_property
    def members(self) -> Mapping[Architecture, Point]:
        """Every architecture that can be built, with its point, in the axes' order."""
        found = {self.architecture(point): point for point in self._points()}
        return {architecture: point for architecture, point in found.items() if refusal(architecture) is None}

    def __contains__(self, architecture: Architecture) -> bool:
        return architecture in self.members

    def __iter__(self) -> Iterator[Architecture]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def architecture(self, point: Mapping[str, Scalar]) -> Architecture:
        """Build the record of a point."""
        changes: dict[str, Any] = {axis: value for axis, value in point.items() if "." not in axis}
        topology = Spec.parse(changes.get("topology", self.base.topology))
        options = {axis.partition(".")[2]: value for axis, value in point.items() if "." in axis}
        changes["topology"] = str(Spec(topology.name, {**topology.options, **options}))
        return replace(self.base, **changes)

    def _points(self) -> Iterator[Point]:
        plain = {axis: values for axis, values in self.axes.items() if "." not in axis}
        for values in product(*plain.values()):
            point = dict(zip(plain, values, strict=True))
            topology = str(point.get("topology", self.base.topology))
            options = {axis: choices for axis, choices in self.axes.items() if axis.startswith(f"{topology}.")}
            for chosen in product(*options.values()):
                yield point | dict(zip(options, chosen, strict=True))
