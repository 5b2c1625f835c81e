"""Which parametrisation a recipe names: "standard", or "mup(base=64)". Loads no torch."""

from dataclasses import dataclass
from typing import Final

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError, unknown
from search_spaces.support.spec import Spec
from tasks.recipes.settings import AtLeastOne, override

STANDARD: Final = "standard"


@dataclass(frozen=True, slots=True)
class Mup:
    """The maximal update parametrisation (Yang et al., 2022), in which a recipe that suits one width suits all.

    Attributes:
        base: The width at which it is the standard one: that of the networks for which the recipe was found.
    """

    base: AtLeastOne = 64


def read_parametrization(text: str) -> Mup | None:
    """Read "mup(base=WIDTH)"; None of "standard".

    Raises:
        UserError: It is neither, or there is no such option, or not with that value.
    """
    spec = Spec.parse(text)
    if spec.name == STANDARD and not spec.options:
        return None
    if spec.name != "mup":
        raise unknown("parametrization", spec.name, (STANDARD, "mup"))
    return override(Mup(), spec.options, "parametrization mup")


def at_width(architecture: Architecture, width: int) -> Architecture:
    """The architecture of that width: hidden features and heads are as many times more or fewer, to the nearest number.

    Heads keep their size.

    Raises:
        UserError: Its blocks differ, or it is a model of timm's, whose width is its own.
    """
    if architecture.model or architecture.blocks:
        message = f"muP is of blocks that are alike, in networks that have any width, got {architecture}."
        raise UserError("unsupported", message, option="parametrization", value="mup", architecture=str(architecture))
    share = width / architecture.width
    hidden, heads = (max(1, round(number * share)) for number in (architecture.hidden, architecture.heads))
    return architecture.with_fields({"width": width, "hidden": hidden, "heads": heads if architecture.heads else 0})
