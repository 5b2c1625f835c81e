"""digits-dit: generate handwritten digits. Needs no download and trains in minutes.

Shapes: B = batch.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.dit import ImageSpec
from tasks.base import Metric
from tasks.data.batches import Inputs, call
from tasks.data.splits import Part, TensorSplits, derived_seed
from tasks.diffusion.digit_features import digits, features
from tasks.diffusion.frechet import distances
from tasks.diffusion.grid import check, save
from tasks.diffusion.recipe import DiffusionRecipe
from tasks.diffusion.sampling import balanced_classes, draw, scheduler_for
from tasks.diffusion.task import LOSS, DiffusionTask, fixed_times_batch, with_noise
from tasks.training.supervised import means_and_errors
from tasks.vision.digits import DigitsViT

_TIMES = 8  # per held-out scan in evaluation
_PER_CLASS = 8  # rows of a rendered grid


class DigitsDiT(DiffusionTask):
    """Generation of handwritten digits, from 1,077 of scikit-learn's 1,797 scans of 8 x 8 pixels.

    The scans and their split are those of digits-vit. Metrics compare generated digits with the scans of a split, in
    the features of a small classifier. The classifier is trained on the training scans. `recognised` is the fraction of
    generated digits that the classifier assigns to their class. Its accuracy on held-out scans is 96 %.
    """

    name = "digits-dit"
    takes_data = False
    version = 1
    metrics = (
        Metric("frechet", "squared distance", "min"),
        LOSS,
        Metric("precision", "share", "max"),
        Metric("recall", "share", "max"),
        Metric("recognised", "share", "max"),
    )
    base = Architecture(depth=4, width=64, heads=4, head_dim=16, hidden=256)
    pictures = ImageSpec((1, 8, 8), 2, 10)
    presets = {  # noqa: RUF012  # Task declares it a ClassVar
        "smoke": DiffusionRecipe(
            steps=20, batch=64, lr=1e-2, weight_decay=0.0, ema=0.9, reports=2, measured=360, samples=40, sample_steps=5,
            accelerator="cpu",
        ),
        "proxy": DiffusionRecipe(
            steps=600, batch=128, lr=1.2e-2, weight_decay=0.0, ema=0.99, reports=3, samples=360, sample_steps=25,
            accelerator="cpu",
        ),
        "pictures": DiffusionRecipe(
            steps=2500, batch=128, lr=6e-3, weight_decay=0.0, ema=0.995, samples=720, accelerator="cpu", reports=3
        ),
    }  # fmt: skip

    def load(self) -> TensorSplits:
        """Read the scans from scikit-learn's files and add fixed noise for evaluation."""
        return _noisy()

    def prepare(self) -> None:
        """Read the scans and check that sampling is possible."""
        super().prepare()
        scheduler_for(self.presets["smoke"], clip=True)

    def measure_network(
        self, network: Callable[[Inputs], Any], part: Part, recipe: DiffusionRecipe, device: torch.device
    ) -> Mapping[str, float]:
        """Return distances between generated digits, balanced over classes, and a part's scans.

        Without samples in the recipe there are none.
        """
        if not recipe.samples:
            return {}
        classes = balanced_classes(self.pictures.classes, recipe.samples).to(device)
        seed = derived_seed(0, "samples", part)  # networks are compared with the same noise
        samples = _pixels(draw(network, self.pictures, classes, recipe, seed, clip=True))
        right = torch.from_numpy(digits(samples)) == classes.cpu()
        return {**distances(features(samples), features(_scans(part))), **means_and_errors({"recognised": right})}

    def render(self, network: nn.Module | None, file: Path) -> None:
        """Write a grid of generated digits as a PNG, one column per digit."""
        check(file)
        if network is None:
            self.prepare()
            return
        classes = torch.arange(self.pictures.classes).repeat(_PER_CLASS).to(next(network.parameters()).device)
        with torch.no_grad():
            samples = draw(
                lambda inputs: call(network, inputs), self.pictures, classes, self.presets["pictures"], 0, clip=True
            )
        save(_pixels(samples), self.pictures.classes, file)

    def baselines(self, recipe: Any) -> Mapping[str, Mapping[str, float]]:
        """Return the metrics of the training scans as if they were generated; the same for every recipe."""
        train_features = features(DigitsViT().load().train[0])
        columns: dict[str, float] = {}
        parts: tuple[tuple[str, Part], ...] = ("", "validation"), ("test_", "test")
        for prefix, part in parts:
            scores = distances(train_features, features(_scans(part)))
            columns |= {f"{prefix}{name}": value for name, value in scores.items()}
        return {"the scans it learns from": columns}


def _pixels(pictures: Tensor) -> Tensor:
    """Map pictures from [-1, 1] to [0, 1], on the CPU."""
    return ((pictures.float().cpu() + 1) / 2).clamp(0, 1)


def _scans(part: Part) -> Tensor:
    return getattr(DigitsViT().load(), part)[0]  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _noisy() -> TensorSplits:
    scans = DigitsViT().load()
    images, labels = scans.train
    validation, test = (
        fixed_times_batch(2 * part[0] - 1, part[1], _TIMES, seed)
        for seed, part in enumerate((scans.validation, scans.test))
    )
    return TensorSplits((2 * images - 1, labels), validation, test, augment=with_noise(DigitsDiT.pictures.classes))
