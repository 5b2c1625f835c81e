"""Base class of classification tasks.

Shapes: B = batch, C = classes.
"""

from collections.abc import Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from tasks.base import Metric
from tasks.data.splits import TensorSplits
from tasks.recipes.recipe import Recipe
from tasks.training.labels import check_labels, label_error
from tasks.training.supervised import SupervisedTask, means_and_errors


class ClassificationTask(SupervisedTask):
    """A task with cross-entropy as its loss and accuracy as its metric. Networks output class scores [B, C]."""

    metrics = (Metric("accuracy", "share", "max"), Metric("loss", "nats", "min"))

    def check_data(self, recipe: Any) -> None:
        super().check_data(recipe)
        splits = self.splits_for(recipe)
        if isinstance(splits, TensorSplits) and type(self).loss is ClassificationTask.loss:
            check_labels(self, splits)

    def loss(self, outputs: Tensor, targets: Tensor, recipe: Recipe) -> Tensor:
        """Return the cross-entropy with classes [B] or probabilities [B, C], with the recipe's label smoothing."""
        try:
            return F.cross_entropy(outputs, targets, label_smoothing=recipe.label_smoothing)
        except IndexError as error:
            raise label_error(self, targets, outputs.shape[-1]) from error

    def measure(self, outputs: Tensor, targets: Tensor) -> Mapping[str, Tensor]:
        """Return whether the top class is right, and the cross-entropy without label smoothing; each [B]."""
        return {
            "accuracy": (outputs.argmax(dim=-1) == targets).float(),
            "loss": F.cross_entropy(outputs, targets, reduction="none"),
        }

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        return means_and_errors(measures)
