"""What is learnt from examples: the loss, and what is measured of each example.

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
    """A task with a loss, and with measures of each example that its metrics are made of."""

    @abstractmethod
    def loss(self, outputs: Any, targets: Any, recipe: Any) -> Tensor:
        """What training makes smaller: outputs and targets of a batch to a number, []."""

    @abstractmethod
    def measure(self, outputs: Any, targets: Any) -> Mapping[str, Tensor]:
        """What metrics are made of, for each example, [B]."""

    @abstractmethod
    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """The metrics of a part, with their standard errors, from what was measured of each of its examples."""

    def measure_network(
        self, network: Callable[[Inputs], Any], part: Part, recipe: Any, device: torch.device
    ) -> Mapping[str, float]:
        """Metrics of a part that are of the network itself and not of a part's examples: of what it draws, say.

        `network` maps inputs on the device to outputs; nothing is recorded for gradients. The same in every process.
        """
        return {}
