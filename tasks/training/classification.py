"""Base class of classification tasks.

Shapes: B = batch, C = classes.
"""

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor

from search_spaces.support.errors import UserError
from tasks.base import Metric
from tasks.recipes.recipe import Recipe
from tasks.training.supervised import SupervisedTask, means_and_errors


class ClassificationTask(SupervisedTask):
    """A task with cross-entropy as its loss and accuracy as its metric. Networks output class scores [B, C]."""

    metrics = (Metric("accuracy", "share", "max"), Metric("loss", "nats", "min"))

    def loss(self, outputs: Tensor, targets: Tensor, recipe: Recipe) -> Tensor:
        """Return the cross-entropy with classes [B] or probabilities [B, C], with the recipe's label smoothing."""
        try:
            return F.cross_entropy(outputs, targets, label_smoothing=recipe.label_smoothing)
        except IndexError as error:
            classes, labels = outputs.shape[-1], (int(targets.min()), int(targets.max()))
            raise UserError(
                "bad-data",
                f"labels of task {self.name!r} must be 0 to {classes - 1}, since build() returns {classes} scores, got "
                f"{labels[0]} to {labels[1]}. Change the labels, or the scores.",
                task=self.name,
                value=labels,
                most=classes - 1,
            ) from error

    def measure(self, outputs: Tensor, targets: Tensor) -> Mapping[str, Tensor]:
        """Return whether the top class is right, and the cross-entropy without label smoothing; each [B]."""
        return {
            "accuracy": (outputs.argmax(dim=-1) == targets).float(),
            "loss": F.cross_entropy(outputs, targets, reduction="none"),
        }

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        return means_and_errors(measures)
