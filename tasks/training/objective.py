"""The objective of supervised tasks: the loss, and per-example measures.

Shapes: B = batch.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from search_spaces.support.errors import UserError
from tasks.base import Task, plain_numbers
from tasks.data.batches import Inputs
from tasks.data.splits import Part


def check_loss(task: Task, loss: Any) -> None:
    """Raise UserError if a loss is not one number with a gradient."""
    if isinstance(loss, Tensor) and loss.numel() == 1 and loss.requires_grad:
        return
    got = type(loss).__name__
    if isinstance(loss, Tensor):
        got = f"a tensor {list(loss.shape)}" if loss.numel() != 1 else "a tensor without a gradient"
    message = f"loss() of task {task.name!r} must return a tensor of one number with its gradient, got {got}."
    remedy = "Average over the batch by torch, without .item(), .detach() or NumPy."
    raise UserError("bad-plugin", f"{message} {remedy}", task=task.name, option="loss", value=got)


def check_measures(task: Task, measures: Any) -> None:
    """Raise UserError if measures are not tensors [B, ...] by name."""
    if not isinstance(measures, Mapping):
        got = type(measures).__name__
    else:
        wrong = {name: each for name, each in measures.items() if not isinstance(each, Tensor) or each.dim() == 0}
        if not wrong:
            return
        name, value = next(iter(wrong.items()))
        got = f"{'one number' if isinstance(value, Tensor) else type(value).__name__} for {name!r}"
    message = f"measure() of task {task.name!r} must return a tensor with a value of each example by name, got {got}."
    remedy = "Leave means to summary(), and convert arrays by torch.as_tensor."
    raise UserError("bad-plugin", f"{message} {remedy}", task=task.name, option="measure", value=got)


def numbers_of(task: Task, summary: Any) -> dict[str, float]:
    """Return a summary's metrics as floats. Raises UserError if one is no number."""
    try:
        return plain_numbers(summary, "metrics")
    except TypeError as error:
        message = f"summary() of task {task.name!r}: {error}. Return floats by name."
        raise UserError("bad-plugin", message, task=task.name, option="summary") from error


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
