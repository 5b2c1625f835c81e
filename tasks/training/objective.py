"""The objective of supervised tasks: the loss, and per-example measures.

Shapes: B = batch.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from tasks.base import Task
from tasks.data.batches import Inputs
from tasks.data.splits import Part


class SupervisedObjective(Task):
    """A task with a loss, and with per-example measures that its metrics summarize."""

    @abstractmethod
    def loss(self, outputs: Any, targets: Any, recipe: Any) -> Tensor:
        """Return the training loss of a batch, []."""

    @abstractmethod
    def measure(self, outputs: Any, targets: Any) -> Mapping[str, Tensor]:
        """Return per-example measures, [B], for `summary`."""

    @abstractmethod
    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """Return the metrics of a part, with their standard errors, from the measures of all its examples."""

    def measure_network(
        self, network: Callable[[Inputs], Any], part: Part, recipe: Any, device: torch.device
    ) -> Mapping[str, float]:
        """Return metrics of the network itself, not of a part's examples: for instance of what it generates.

        `network` maps inputs on the device to outputs, without gradients. Every rank must return the same.
        """
        return {}
