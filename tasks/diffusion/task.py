"""What all diffusion tasks share: a DiT, the noise it learns from, and how it is measured.

Shapes: B = batch, C = channels, H and W = height and width of a picture.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.dit import Pictures, build_dit, count_dit
from search_spaces.support.count import Count
from tasks.base import Metric
from tasks.data.batches import Batch
from tasks.diffusion.noise import STEPS, add_noise, bounds, squared_errors
from tasks.diffusion.recipe import DiffusionRecipe
from tasks.training.supervised import SupervisedTask

LOSS = Metric("loss", "squared error of the noise", "min")


class DiffusionTask(SupervisedTask):
    """Say what noise a picture holds.

    Attributes:
        pictures: What the network reads and writes.
    """

    pictures: ClassVar[Pictures]
    metrics: ClassVar[tuple[Metric, ...]] = (LOSS,)

    def metrics_for(self, recipe: DiffusionRecipe) -> tuple[Metric, ...]:
        """All metrics; of a recipe that draws no pictures the loss alone."""
        return self.metrics if recipe.samples else (LOSS,)

    def build(self, architecture: Architecture) -> nn.Module:
        """A DiT: pictures [B, C, H, W], times [B] and classes [B] to noise and variance, [B, 2 C, H, W]."""
        return build_dit(architecture, self.pictures)

    def example(self) -> tuple[Tensor, ...]:
        """One picture, its time and its class."""
        return torch.zeros(1, *self.pictures.shape), *(torch.zeros(1, dtype=torch.long) for _ in range(2))

    def closed_form(self, architecture: Architecture) -> Count:
        """That network's parameters and MACs: one step of drawing."""
        return count_dit(architecture, self.pictures)

    def loss(self, outputs: Tensor, targets: Mapping[str, Tensor], recipe: DiffusionRecipe) -> Tensor:
        """The squared error of the noise and the variational bound, from which the variance learns (see `noise`)."""
        prediction, noise = outputs.float(), targets["noise"]
        bound = bounds(prediction, targets["start"], noise, targets["times"])
        return (squared_errors(prediction, noise) + bound).mean()

    def measure(self, outputs: Tensor, targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The squared error of the noise of each, [B], and of which picture it is."""
        return {"loss": squared_errors(outputs, targets["noise"]), "picture": targets["picture"]}

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """The mean over pictures, each with noise of several times, and its standard error over pictures."""
        error = measures["loss"].double()
        deviations = error - error.mean()
        sums = torch.zeros(int(measures["picture"].max()) + 1, dtype=deviations.dtype).index_add_(
            0, measures["picture"], deviations
        )
        return {"loss": error.mean().item(), "loss_se": sums.square().sum().sqrt().item() / len(error)}


def with_noise(classes: int) -> Callable[[Batch, Any, Generator], Batch]:
    """What makes examples of pictures and their classes: noise of a time drawn, and some classes not told."""

    def noisy(batch: Batch, recipe: DiffusionRecipe, generator: Generator) -> Batch:
        start, labels = batch
        device, size = start.device, len(start)
        times = torch.randint(STEPS, (size,), generator=generator, device=device)
        noise = torch.randn(start.shape, generator=generator, device=device)
        untold = torch.rand(size, generator=generator, device=device) < recipe.class_dropout
        labels = torch.where(untold, classes, labels)
        return (add_noise(start, noise, times), times, labels), {"start": start, "noise": noise, "times": times}

    return noisy


def fixed_times_batch(start: Tensor, labels: Tensor, times: int, seed: int) -> Batch:
    """Examples to be measured: every picture [B, C, H, W] at as many times, evenly spread, with noise of its own.

    The classes [B] are told. Pictures stand one after another at their first time, and so on.
    """
    generator = Generator().manual_seed(seed)
    size = len(start) * times
    parts = torch.arange(times).repeat_interleave(len(start))
    sample_times = ((parts + torch.rand(size, generator=generator)) * STEPS / times).long()
    start, labels, picture = (
        tensor.repeat(times, *[1] * (tensor.dim() - 1)) for tensor in (start, labels, torch.arange(len(start)))
    )
    noise = torch.randn(start.shape, generator=generator)
    return (add_noise(start, noise, sample_times), sample_times, labels), {"noise": noise, "picture": picture}
