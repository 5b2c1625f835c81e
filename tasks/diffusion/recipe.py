"""What trains and draws: the settings of diffusion tasks."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tasks.diffusion.noise import STEPS
from tasks.recipes.recipe import Recipe
from tasks.recipes.settings import Between, NonNegativeInt, NotNegative, ShareOfOne


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionRecipe(Recipe):
    """Training of a network that takes noise out, and how pictures are drawn with it.

    Attributes:
        class_dropout: Share of the pictures whose class is not told while training, so that it can draw without.
        guidance: By how much the class counts while drawing: noise without it + guidance * (with it - without it)
            (Ho and Salimans, 2022). 1 draws by the class alone.
        guided: So many of the first channels are guided, and 0 is all of them. DiT's code guides three of four.
        sampler: "ddpm" draws at random in each step (Ho et al., 2020), with the network's own variance; "ddim" only at
            the start (Song et al., 2021), and does with fewer steps.
        sample_steps: Steps back from noise to a picture, of 1,000.
        samples: How many pictures are drawn to be measured, 10 at least. 0 draws none.
    """

    class_dropout: ShareOfOne = 0.1
    guidance: NotNegative = 1.5
    guided: NonNegativeInt = 0
    sampler: Literal["ddim", "ddpm"] = "ddim"
    sample_steps: Annotated[int, Between(2, STEPS)] = 50
    samples: Literal[0] | Annotated[int, Between(10)] = 0
