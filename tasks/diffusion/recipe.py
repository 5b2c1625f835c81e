"""Recipes of diffusion tasks: training and sampling."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tasks.diffusion.noise import STEPS
from tasks.recipes.recipe import Recipe
from tasks.recipes.settings import Between, NonNegativeInt, NotNegative, UnitInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionRecipe(Recipe):
    """A recipe for training a diffusion network and sampling from it.

    Attributes:
        class_dropout: Fraction of training pictures without their class, for classifier-free guidance.
        guidance: Guidance scale: noise without class + guidance * (noise with class - noise without) (Ho and Salimans,
            2022). 1 uses the class alone.
        guided: Number of leading channels to guide; 0 for all. DiT's code guides three of four.
        sampler: "ddpm" adds noise in each step (Ho et al., 2020), with the network's variance; "ddim" only at the start
            (Song et al., 2021), and needs fewer steps.
        sample_steps: Sampling steps, at most 1,000.
        samples: Number of pictures to generate for evaluation, at least 10; 0 for none.
    """

    class_dropout: UnitInterval = 0.1
    guidance: NotNegative = 1.5
    guided: NonNegativeInt = 0
    sampler: Literal["ddim", "ddpm"] = "ddim"
    sample_steps: Annotated[int, Between(2, STEPS)] = 50
    samples: Literal[0] | Annotated[int, Between(10)] = 0
