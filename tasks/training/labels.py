"""Checks of class labels against the scores of a network, before a training.

Shapes: E = examples, C = classes.
"""

import torch
from torch import Tensor

from search_spaces.support.errors import UserError
from tasks.base import Task
from tasks.data.batches import call
from tasks.data.splits import TensorSplits


def check_labels(task: Task, splits: TensorSplits) -> None:
    """Check that all labels of a task's splits are classes [E] or shares of classes [E, C] of its network's scores.

    Raises:
        UserError: Labels of another type or shape, or outside the scores; the message names the split.
    """
    classes = _num_scores(task)
    if classes is None:
        return
    for name, (_, labels) in (("train", splits.train), ("validation", splits.validation), ("test", splits.test)):
        if not isinstance(labels, Tensor) or not _has_form(labels, classes):
            got = _form(labels) if isinstance(labels, Tensor) else type(labels).__name__
            message = (
                f"labels of {name} of task {task.name!r} must be int64 or uint8 [examples], or shares "
                f"[examples, {classes}] as floating-point numbers, got {got}. "
                "Convert classes by labels.long().flatten()."
            )
            raise UserError("wrong-type", message, task=task.name, option=name, value=got)
        if labels.dim() == 1 and not (labels.min() >= 0 and labels.max() < classes):
            raise label_error(task, labels, classes, f" of {name}", option=name)


def label_error(task: Task, labels: Tensor, classes: int, of: str = "", **fields: str) -> UserError:
    """Return the error of labels that are not among the classes of a network's scores."""
    ends = int(labels.min()), int(labels.max())
    message = (
        f"labels{of} of task {task.name!r} must be 0 to {classes - 1}, since build() returns {classes} scores, got "
        f"{ends[0]} to {ends[1]}. Change the labels, or the scores."
    )
    return UserError("bad-data", message, task=task.name, value=ends, most=classes - 1, **fields)


def _num_scores(task: Task) -> int | None:
    """Return the number of scores of one example, C; None if the network returns no [1, C], or fails elsewhere."""
    try:
        with torch.device("meta"), torch.no_grad():
            scores = call(task.build(task.base).eval(), task.example())
    except Exception:  # the training says it, as a Row
        return None
    return scores.shape[1] if isinstance(scores, Tensor) and scores.dim() == 2 else None


def _has_form(labels: Tensor, classes: int) -> bool:
    if labels.dim() == 1:
        return labels.dtype in (torch.int64, torch.uint8)  # what cross_entropy takes
    return labels.is_floating_point() and labels.shape[1:] == (classes,)


def _form(labels: Tensor) -> str:
    return f"{str(labels.dtype).removeprefix('torch.')} {list(labels.shape)}"
