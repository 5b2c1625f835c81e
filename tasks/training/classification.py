"""Supervised tasks whose answer is one of several classes.

Shapes: B = batch, C = classes.
"""

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor

from tasks.base import Metric
from tasks.recipes.recipe import Recipe
from tasks.training.supervised import SupervisedTask, means


class ClassificationTask(SupervisedTask):
    """Cross-entropy, measured by accuracy. The network's output is class scores, [B, C]."""

    metrics = (Metric("accuracy", "share", "max"), Metric("loss", "nats", "min"))

    def loss(self, outputs: Tensor, targets: Tensor, recipe: Recipe) -> Tensor:
        """Cross-entropy with classes [B], or with shares of classes [B, C], smoothed by the recipe."""
        return F.cross_entropy(outputs, targets, label_smoothing=recipe.label_smoothing)

    def measure(self, outputs: Tensor, targets: Tensor) -> Mapping[str, Tensor]:
        """Whether the largest score is the right one, and the cross-entropy without smoothing; each [B]."""
        return {
            "accuracy": (outputs.argmax(dim=-1) == targets).float(),
            "loss": F.cross_entropy(outputs, targets, reduction="none"),
        }

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """The mean over examples."""
        return means(measures)
