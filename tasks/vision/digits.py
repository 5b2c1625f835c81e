"""digits-vit: handwritten digits that come with scikit-learn. Nothing to download, seconds to train."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.vit import ViT, build_vit, count_vit
from search_spaces.support.count import Count
from tasks.data.batches import Batch
from tasks.data.splits import TensorSplits
from tasks.recipes.recipe import Recipe
from tasks.recipes.settings import NotNegative, ShareOfOne
from tasks.training.classification import ClassificationTask
from tasks.vision.task import stratify, warp

_IMAGE, _PATCH, _CLASSES = (1, 8, 8), 2, 10
_HELD_OUT = 360  # of 1,797, for validation and for test each: an accuracy of 98 % is known to 0.7 %
_MEAN, _STD = 0.305, 0.376  # of all pixels, white being 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitsRecipe(Recipe):
    """Training with images that are turned, moved and stretched at random.

    Attributes:
        degrees: By how much they are turned.
        shift: By what share of their side they are moved.
        scale: By what share of their side they are stretched.
    """

    degrees: NotNegative = 7.0
    shift: ShareOfOne = 0.05
    scale: ShareOfOne = 0.05


class AveragingViT(nn.Module):
    """A ViT whose classifier reads the mean of all tokens.

    The class token alone hears of an image through attention only: with one block and one head of 4 features it
    tells 82 % of digits apart, where the mean tells 97 %.
    """

    def __init__(self, vit: ViT) -> None:
        super().__init__()
        self.embedding, self.stack, self.head = vit.embedding, vit.stack, vit.head

    def forward(self, images: Tensor) -> Tensor:
        """Map [B, 1, 8, 8] to class scores [B, 10]."""
        return self.head(self.stack(*self.embedding(images)).mean(dim=1))  # type: ignore[no-any-return]


def xavier(vit: ViT) -> ViT:
    """The network with linear maps that start as in the original ViT: timm's 0.02 is for widths of several hundred."""
    for module in (*vit.stack.layers.modules(), vit.head):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
    vit.stack.topology.start(vit.stack.layers)
    return vit


class DigitsViT(ClassificationTask):
    """1,797 scans of 8 x 8 pixels (E. Alpaydin and C. Kaynak, 1998, the UCI set's test part)."""

    name = "digits-vit"
    takes_data = False
    version = 1
    base = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=64)
    presets = {  # noqa: RUF012  # Task declares it a ClassVar
        "smoke": DigitsRecipe(epochs=10, batch=32, lr=0.01, accelerator="cpu"),
        "proxy": DigitsRecipe(epochs=40, batch=32, lr=0.012, warmup=0.3, label_smoothing=0.1, accelerator="cpu"),
    }

    def load(self) -> TensorSplits:
        """Read the scans from scikit-learn's files, and split them once and for all."""
        return _digits()

    def build(self, architecture: Architecture) -> nn.Module:
        """A vision transformer that averages, [B, 1, 8, 8] to [B, 10]."""
        return AveragingViT(xavier(build_vit(architecture, _IMAGE, _PATCH, _CLASSES)))

    def example(self) -> tuple[Tensor, ...]:
        """One scan."""
        return (torch.zeros(1, *_IMAGE),)

    def closed_form(self, architecture: Architecture) -> Count:
        """That network's parameters and MACs; averaging has neither."""
        return count_vit(architecture, _IMAGE, _PATCH, _CLASSES)

    def baselines(self, recipe: Any) -> Mapping[str, Mapping[str, float]]:
        """Logistic regression on the pixels, of the same training images; the same for every recipe."""
        from sklearn.linear_model import LogisticRegression  # two seconds that only those need who ask for it

        splits = _digits()
        model = LogisticRegression(max_iter=2000).fit(splits.train[0].flatten(1).numpy(), splits.train[1].numpy())
        columns = {}
        for prefix, (images, labels) in (("", splits.validation), ("test_", splits.test)):
            right = np.asarray(model.predict(images.flatten(1).numpy()) == labels.numpy(), dtype=float)
            columns[f"{prefix}accuracy"] = float(right.mean())
            columns[f"{prefix}accuracy_se"] = float(right.std() / len(right) ** 0.5)
        return {"logistic regression on the pixels": columns}


@lru_cache(maxsize=1)
def _digits() -> TensorSplits:
    from sklearn.datasets import load_digits

    scans = load_digits()
    images = torch.tensor(scans.images, dtype=torch.float32)[:, None] / 16  # [1797, 1, 8, 8]
    labels = torch.tensor(scans.target)
    parts = stratify(labels, (_HELD_OUT, _HELD_OUT))
    validation, test, train = ((images[part], labels[part]) for part in parts)
    return TensorSplits(train, validation, test, augment=_augment, encode=_normalize)


def _augment(batch: Batch, recipe: DigitsRecipe, generator: Generator) -> Batch:
    images, labels = batch
    return warp(images, recipe.degrees, recipe.shift, recipe.scale, generator), labels


def _normalize(images: Tensor) -> Tensor:
    return (images - _MEAN) / _STD
