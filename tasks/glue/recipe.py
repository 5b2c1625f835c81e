"""The recipe of fine-tuning on GLUE's sets."""

from dataclasses import dataclass

from search_spaces.support.errors import UserError
from tasks.recipes.parametrization import STANDARD
from tasks.recipes.recipe import Recipe
from tasks.recipes.settings import BelowOne


@dataclass(frozen=True, slots=True, kw_only=True)
class GlueRecipe(Recipe):
    """A fine-tuning recipe, the same for every set.

    Attributes:
        sets: Sets to train and score; empty for all.
        dropout: Dropout in every layer and before the answer.
        pretraining: Preset of the pre-training's task, used if no start weights are given.
    """

    sets: tuple[str, ...] = ()
    dropout: BelowOne = 0.1
    pretraining: str

    def __post_init__(self) -> None:
        Recipe.__post_init__(self)
        object.__setattr__(self, "sets", tuple(sorted({*self.sets})))  # the order of the sets does not matter
        if self.parametrization != STANDARD:
            raise UserError(
                "unsupported",
                f"parametrization must be standard with pre-trained weights, got {self.parametrization}.",
                option="parametrization",
                value=str(self.parametrization),
            )
        if self.hours:
            raise UserError(
                "unsupported",
                f"fine-tuning needs epochs or steps, got {self.hours} hours. Set epochs, and hours to 0.",
                option="hours",
                value=self.hours,
            )
