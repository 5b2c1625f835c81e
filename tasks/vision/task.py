"""Base class, recipe and augmentation of image classification tasks.

Shapes: B = batch, C = channels, H and W = height and width of an image.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.vit import build_vit, count_vit
from search_spaces.support.count import Count
from tasks.data.batches import Batch
from tasks.recipes.recipe import Recipe
from tasks.recipes.settings import NotNegative, UnitInterval
from tasks.training.classification import ClassificationTask


@dataclass(frozen=True, slots=True, kw_only=True)
class MixRecipe(Recipe):
    """Training with mixup, CutMix and stochastic depth, as in DeiT (Touvron et al., 2021).

    Attributes:
        drop_path: Stochastic depth: fraction of examples that skip the last block in training, less for earlier blocks.
        mixup: Beta distribution parameter of mixup (Zhang et al., 2018); 0 for none.
        cutmix: Beta distribution parameter of CutMix (Yun et al., 2019); 0 for none. With both, one is drawn.
    """

    drop_path: UnitInterval = 0.0
    mixup: NotNegative = 0.0
    cutmix: NotNegative = 0.0


class ViTTask(ClassificationTask):
    """Image classification by vision transformers.

    Attributes:
        image: Channels, height and width.
        patch: Side of a patch.
        classes: Number of classes.
    """

    image: ClassVar[tuple[int, int, int]]
    patch: ClassVar[int]
    classes: int

    def build(self, architecture: Architecture) -> nn.Module:
        """Build a vision transformer, or the timm model that the architecture names, [B, C, H, W] to [B, classes]."""
        return self._build(architecture, 0.0)

    def build_for_training(self, architecture: Architecture, recipe: MixRecipe) -> nn.Module:
        """Build the same network with stochastic depth."""
        return self._build(architecture, recipe.drop_path)

    def _build(self, architecture: Architecture, drop_path: float) -> nn.Module:
        if architecture.model:
            from search_spaces.models.families import build_family  # takes three seconds

            return build_family(architecture, self.image, self.classes, drop_path=drop_path)
        return build_vit(architecture, self.image, self.patch, self.classes, drop_path=drop_path)

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, *self.image),)

    def closed_form(self, architecture: Architecture) -> Count | None:
        """Return the vision transformer's parameters and MACs; None for timm models."""
        return None if architecture.model else count_vit(architecture, self.image, self.patch, self.classes)


def stratify(targets: Tensor, held_out: tuple[int, ...], seed: int = 0) -> list[Tensor]:
    """Return indices [...] of stratified parts: one of each size in `held_out`, then the rest.

    Every part has about the same fraction of each class. The split depends only on the targets and the seed: NumPy's
    legacy generator gives it on every machine and in every version.
    """
    generator = np.random.RandomState(seed)
    order = torch.from_numpy(generator.permutation(len(targets)))
    # An example's quantile within its class; parts are cut by it.
    rank = torch.empty(len(targets), dtype=torch.float64)
    for label in targets.unique():
        members = order[targets[order] == label]
        rank[members] = (torch.arange(len(members), dtype=torch.float64) + 0.5) / len(members)
    ranking = order[rank[order].argsort(stable=True)]
    cuts = [*torch.tensor(held_out).cumsum(0).tolist()]
    return list(ranking.tensor_split(cuts))


def warp(images: Tensor, degrees: float, shift: float, scale: float, generator: Generator) -> Tensor:
    """Rotate, shift and stretch each image [B, C, H, W] by up to these amounts, at random.

    `shift` and `scale` are fractions of the image's side; pixels from outside are 0.
    """
    draws = 2 * torch.rand(5, len(images), generator=generator, device=images.device) - 1
    angle = draws[0] * math.radians(degrees)
    wide, high = 1 + scale * draws[1:3]
    across, down = 2 * shift * draws[3:5]  # the grid goes from -1 to 1
    rows = (angle.cos() * wide, -angle.sin() * high, across), (angle.sin() * wide, angle.cos() * high, down)
    theta = torch.stack([torch.stack(row, dim=-1) for row in rows], dim=1)  # [B, 2, 3]
    return F.grid_sample(images, F.affine_grid(theta, list(images.shape), align_corners=False), align_corners=False)


def crop_and_flip(images: Tensor, padding: int, generator: Generator) -> Tensor:
    """Shift each image [B, C, H, W] by up to `padding` pixels, padded with 0, and mirror it with probability 1/2."""
    batch, _, height, width = images.shape
    device = images.device
    canvas = F.pad(images, (padding,) * 4)
    y, x = torch.randint(2 * padding + 1, (2, batch, 1), generator=generator, device=device)
    rows = y + torch.arange(height, device=device)  # [B, H]
    columns = x + torch.arange(width, device=device)  # [B, W]
    flip = torch.rand(batch, 1, generator=generator, device=device) < 0.5
    columns = torch.where(flip, columns.flip(-1), columns)
    example = torch.arange(batch, device=device)[:, None, None]
    crops = canvas[example, :, rows[:, :, None], columns[:, None, :]]  # [B, H, W, C]
    return crops.movedim(-1, 1)


def mix(batch: Batch, recipe: MixRecipe, classes: int, generator: Generator) -> Batch:
    """Apply mixup or CutMix to pairs of images [B, C, H, W], floats; labels become probabilities [B, classes].

    If the number of images is odd, the last is dropped.
    """
    if not (recipe.mixup or recipe.cutmix):
        return batch
    from timm.data.mixup import Mixup

    even = len(batch[0]) // 2 * 2
    np.random.seed(generator.initial_seed() % 2**32)  # timm draws from NumPy's global generator
    mixing = Mixup(recipe.mixup, recipe.cutmix, label_smoothing=0.0, num_classes=classes)
    images, shares = mixing(batch[0][:even], batch[1][:even])
    return images, shares
