"""The base class of diffusion tasks: a DiT, its noise and its evaluation.

Shapes: B = batch, C = channels, H and W = height and width of a picture.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.dit import ImageSpec, build_dit, count_dit
from search_spaces.support.count import Count
from tasks.base import Metric
from tasks.data.batches import Batch, repeat
from tasks.diffusion.noise import STEPS, add_noise, bounds, squared_errors
from tasks.diffusion.recipe import DiffusionRecipe
from tasks.training.supervised import SupervisedTask

LOSS = Metric("loss", "squared error of the noise", "min")


class DiffusionTask(SupervisedTask):
    """A task that predicts the noise in a picture.

    Attributes:
        pictures: Shape, patch and classes of the network's pictures.
    """

    pictures: ClassVar[ImageSpec]
    metrics: ClassVar[tuple[Metric, ...]] = (LOSS,)

    def metrics_for(self, recipe: DiffusionRecipe) -> tuple[Metric, ...]:
        """Return all metrics, or only the loss for a recipe without samples."""
        return self.metrics if recipe.samples else (LOSS,)

    def build(self, architecture: Architecture) -> nn.Module:
        """Build a DiT: pictures [B, C, H, W], times [B] and classes [B] to noise and variance, [B, 2 C, H, W]."""
        return build_dit(architecture, self.pictures)

    def example(self) -> tuple[Tensor, ...]:
        """Return one picture, its time and its class."""
        return torch.zeros(1, *self.pictures.shape), *(torch.zeros(1, dtype=torch.long) for _ in range(2))

    def closed_form(self, architecture: Architecture) -> Count:
        """Return the parameters and MACs of one sampling step without guidance."""
        return count_dit(architecture, self.pictures)

    def loss(self, outputs: Tensor, targets: Mapping[str, Tensor], recipe: DiffusionRecipe) -> Tensor:
        """Return the squared error of the noise plus the variational bound, which trains the variance (see `noise`)."""
        prediction, noise = outputs.float(), targets["noise"]
        bound = bounds(prediction, targets["start"], noise, targets["times"])
        return (squared_errors(prediction, noise) + bound).mean()

    def measure(self, outputs: Tensor, targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return each example's squared error of the noise, [B], and the index of its picture."""
        return {"loss": squared_errors(outputs, targets["noise"]), "picture": targets["picture"]}

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """Return the mean over pictures, each at several times, and its standard error over pictures."""
        error = measures["loss"].double()
        deviations = error - error.mean()
        sums = torch.zeros(int(measures["picture"].max()) + 1, dtype=deviations.dtype).index_add_(
            0, measures["picture"], deviations
        )
        return {"loss": error.mean().item(), "loss_se": sums.square().sum().sqrt().item() / len(error)}


def with_noise(classes: int) -> Callable[[Batch, Any, Generator], Batch]:
    """Return the augmentation that adds noise at random times to pictures and drops some of their classes."""

    def noisy(batch: Batch, recipe: DiffusionRecipe, generator: Generator) -> Batch:
        start, labels = batch
        device, size = start.device, len(start)
        times = torch.randint(STEPS, (size,), generator=generator, device=device)
        noise = torch.randn(start.shape, generator=generator, device=device)
        drop_class = torch.rand(size, generator=generator, device=device) < recipe.class_dropout
        labels = torch.where(drop_class, classes, labels)
        return (add_noise(start, noise, times), times, labels), {"start": start, "noise": noise, "times": times}

    return noisy


def fixed_times_batch(start: Tensor, labels: Tensor, times: int, seed: int) -> Batch:
    """Return evaluation examples: every picture [B, C, H, W] at `times` evenly spread times, each with its own noise.

    No class [B] is dropped. All pictures come at their first time, then all at their second, and so on.
    """
    generator = Generator().manual_seed(seed)
    size = len(start) * times
    parts = torch.arange(times).repeat_interleave(len(start))
    sample_times = ((parts + torch.rand(size, generator=generator)) * STEPS / times).long()
    start, labels, picture = repeat((start, labels, torch.arange(len(start))), times)
    noise = torch.randn(start.shape, generator=generator)
    return (add_noise(start, noise, sample_times), sample_times, labels), {"noise": noise, "picture": picture}
