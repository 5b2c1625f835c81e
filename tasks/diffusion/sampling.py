"""Sampling of pictures from noise, by diffusers' schedulers with classifier-free guidance.

Shapes: B = batch, C = channels, ... = height and width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from search_spaces.models.dit import ImageSpec
from search_spaces.support.errors import UserError
from tasks.diffusion.noise import FIRST, LAST, STEPS
from tasks.diffusion.recipe import DiffusionRecipe

Network = Callable[[tuple[Tensor, Tensor, Tensor]], Tensor]
"""Noisy pictures [B, C, ...], times [B] and classes [B] -> noise and variance, [B, 2 C, ...]."""

_CHUNK = 256
"""Pictures per batch."""


def draw(
    network: Network, pictures: ImageSpec, classes: Tensor, recipe: DiffusionRecipe, seed: int, *, clip: bool
) -> Tensor:
    """Generate a picture of each class [B], [B, C, ...]; the noise depends only on the seed, not on the device.

    `clip` clamps each prediction of the clean picture to [-1, 1], for pictures that are pixels.

    Raises:
        UserError: diffusers is not installed.
    """
    generator = Generator().manual_seed(seed)  # on the CPU for every device
    parts = [_draw_chunk(network, pictures, part, recipe, generator, clip) for part in classes.split(_CHUNK)]
    return torch.cat(parts)


def _draw_chunk(
    network: Network, pictures: ImageSpec, classes: Tensor, recipe: DiffusionRecipe, generator: Generator, clip: bool
) -> Tensor:
    scheduler = scheduler_for(recipe, clip=clip)
    x = torch.randn(len(classes), *pictures.shape, generator=generator).to(classes.device)
    for time in scheduler.timesteps.tolist():
        outputs = _guide(network, x, time, classes, pictures.classes, recipe)
        if recipe.sampler == "ddim":
            outputs = outputs.chunk(2, dim=1)[0]  # DDIM has no variance
        x = scheduler.step(outputs, time, x, generator=generator).prev_sample
    return x


def _guide(network: Network, x: Tensor, time: int, classes: Tensor, null_class: int, recipe: DiffusionRecipe) -> Tensor:
    times = torch.full_like(classes, time)
    if recipe.guidance == 1:
        return network((x, times, classes)).float()
    labels = torch.cat((classes, torch.full_like(classes, null_class)))
    with_class, unconditional = network((torch.cat((x, x)), torch.cat((times, times)), labels)).float().chunk(2)
    channels = slice(recipe.guided or x.shape[1])
    outputs = with_class.clone()
    outputs[:, channels] = unconditional[:, channels] + recipe.guidance * (
        with_class[:, channels] - unconditional[:, channels]
    )
    return outputs


def scheduler_for(recipe: DiffusionRecipe, *, clip: bool) -> Any:
    """Return the scheduler of a recipe's sampler. Raises UserError if diffusers is not installed."""
    try:
        from diffusers.schedulers.scheduling_ddim import DDIMScheduler  # takes two seconds
        from diffusers.schedulers.scheduling_ddpm import DDPMScheduler
    except ImportError as error:
        raise UserError(
            "needs-extra",
            f'sampling needs diffusers ({error}). Install the extra "diffusion": pip install ".[diffusion]". '
            f"Or draw no samples: --set samples=0.",
            extra="diffusion",
        ) from error
    process: dict[str, Any] = {
        "num_train_timesteps": STEPS,
        "beta_start": FIRST,
        "beta_end": LAST,
        "clip_sample": clip,
    }
    scheduler: Any
    if recipe.sampler == "ddim":  # diffusers steps to the next time only with this spacing and "leading"
        scheduler = DDIMScheduler(**process, timestep_spacing="trailing")
    else:  # from the last time to the first, as in DiT's code
        scheduler = DDPMScheduler(**process, timestep_spacing="linspace", variance_type="learned_range")
    scheduler.set_timesteps(recipe.sample_steps)
    return scheduler


def balanced_classes(classes: int, samples: int) -> Tensor:
    """Return balanced classes for this number of pictures, [samples]."""
    return torch.arange(samples) * classes // max(1, samples)
