"""The parametrization of a recipe: "standard" or "mup(base=64)". Loads no torch."""

from dataclasses import dataclass
from typing import Final

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError, unknown_name_error
from search_spaces.support.spec import Spec
from tasks.recipes.settings import AtLeastOne, override

STANDARD: Final = "standard"


@dataclass(frozen=True, slots=True)
class Mup:
    """The maximal update parametrization (muP; Yang et al., 2022), which transfers a recipe between widths.

    Attributes:
        base: The width at which it equals the standard parametrization: the width that the recipe was tuned for.
    """

    base: AtLeastOne = 64


def read_parametrization(text: str) -> Mup | None:
    """Parse "mup(base=WIDTH)"; return None for "standard".

    Raises:
        UserError: The text is neither, the option does not exist, or its value is invalid.
    """
    spec = Spec.parse(text)
    if spec.name == STANDARD and not spec.options:
        return None
    if spec.name != "mup":
        raise unknown_name_error("parametrization", spec.name, (STANDARD, "mup"))
    return override(Mup(), spec.options, "parametrization mup")


def at_width(architecture: Architecture, width: int) -> Architecture:
    """Return the architecture at another width.

    Hidden features and the number of heads scale with the width, rounded to the nearest integer. Heads keep their size.

    Raises:
        UserError: The blocks differ, or it is a timm model, whose width is fixed.
    """
    if architecture.model or architecture.blocks:
        message = f"muP needs equal blocks and a network of variable width, got {architecture}."
        raise UserError("unsupported", message, option="parametrization", value="mup", architecture=str(architecture))
    share = width / architecture.width
    hidden, heads = (max(1, round(number * share)) for number in (architecture.hidden, architecture.heads))
    return architecture.with_fields({"width": width, "hidden": hidden, "heads": heads if architecture.heads else 0})
