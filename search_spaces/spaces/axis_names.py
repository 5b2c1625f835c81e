"""Which axis is what: a field ("depth"), a run's ("heads:3"), an option ("dca.k"), the recipe's ("recipe.lr")"""

from collections.abc import Mapping

from search_spaces.architecture.architecture import BY_BLOCK
from search_spaces.support.spec import Scalar

RECIPE = "recipe"
"""What stands before the dot in the name of an axis of the recipe: "recipe.lr"."""


def option_of(axis: str) -> tuple[str, str] | None:
    """The topology and the option that an axis is of: "dca.k" -> ("dca", "k"). None of a field's or a recipe's axis."""
    owner, _, option = axis.rpartition(".")
    return (owner, option) if owner and owner != RECIPE else None


def run_of(axis: str) -> tuple[str, int] | None:
    """The field and the run of blocks that an axis is of: "heads:3" -> ("heads", 3). None of any other axis."""
    field, colon, number = axis.partition(":")
    return (field, int(number)) if colon and field in (*BY_BLOCK, "topology") and number.isdecimal() else None


def is_recipe(axis: str) -> bool:
    """Whether an axis is of the training's recipe."""
    return axis.startswith(f"{RECIPE}.")


def settings_of(point: Mapping[str, Scalar]) -> tuple[tuple[str, Scalar], ...]:
    """Fields of the recipe and their values at a point, in alphabetical order."""
    return tuple(sorted((axis.removeprefix(f"{RECIPE}."), value) for axis, value in point.items() if is_recipe(axis)))


def replaces(new: str, axis: str) -> bool:
    """Whether a field's axis and one of its runs' stand for the same."""
    return axis != new and axis.partition(":")[0] == new.partition(":")[0] and (":" in axis) != (":" in new)
