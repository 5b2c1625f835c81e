"""Names of axes: a field ("depth"), a segment's field ("heads:3"), an option ("dca.k"), a recipe's ("recipe.lr")."""

from collections.abc import Mapping

from search_spaces.architecture.architecture import PER_BLOCK_FIELDS
from search_spaces.support.spec import Scalar

RECIPE = "recipe"
"""Prefix of a recipe's axis: "recipe.lr"."""


def option_of(axis: str) -> tuple[str, str] | None:
    """Return the topology and option of an axis: "dca.k" -> ("dca", "k"); None for other axes."""
    owner, _, option = axis.rpartition(".")
    return (owner, option) if owner and owner != RECIPE else None


def segment_of(axis: str) -> tuple[str, int] | None:
    """Return the field and segment number of an axis: "heads:3" -> ("heads", 3); None for other axes."""
    field, colon, number = axis.partition(":")
    return (field, int(number)) if colon and field in (*PER_BLOCK_FIELDS, "topology") and number.isdecimal() else None


def is_recipe(axis: str) -> bool:
    """Return whether an axis belongs to the recipe."""
    return axis.startswith(f"{RECIPE}.")


def settings_of(point: Mapping[str, Scalar]) -> tuple[tuple[str, Scalar], ...]:
    """Return the recipe's fields and their values at a point, in alphabetical order."""
    return tuple(sorted((axis.removeprefix(f"{RECIPE}."), value) for axis, value in point.items() if is_recipe(axis)))


def replaces(new: str, axis: str) -> bool:
    """Return whether one of two axes is a field's and the other one of the same field's segments."""
    return axis != new and axis.partition(":")[0] == new.partition(":")[0] and (":" in axis) != (":" in new)
