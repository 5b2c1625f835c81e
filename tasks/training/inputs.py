"""A check of a task's data against the inputs that its network takes, before a training."""

from collections.abc import Mapping

import torch
from torch import Tensor

from search_spaces.support.errors import UserError
from tasks.base import Task
from tasks.data.batches import Inputs, describe, tensors


def check_inputs(task: Task, inputs: Inputs) -> None:
    """Raise UserError if a batch of inputs has other types or axes than the task's example; texts may have any length.

    A task whose example cannot be made is not judged here: its training fails with the reason.
    """
    try:
        with torch.device("cpu"):
            example = task.example()
    except Exception:
        return
    if isinstance(example, Mapping) and isinstance(inputs, Mapping):  # in the order of the example
        inputs = {name: inputs[name] for name in example if name in inputs}
    expected, got = tensors(example), tensors(inputs)
    if len(expected) == len(got) and all(map(_fits, got, expected)):
        return
    takes, has = describe(example, ("batch",)), describe(inputs, ("batch",))
    message = (
        f"inputs of task {task.name!r} must be like example(), {takes}, got {has} from the data. "
        "Convert the data in load(), or correct example()."
    )
    raise UserError("mismatch", message, task=task.name, option="inputs", value=has, expected=takes)


def _fits(x: Tensor, example: Tensor) -> bool:
    if x.dtype != example.dtype or x.dim() != example.dim():
        return False
    return not x.is_floating_point() or x.shape[1:] == example.shape[1:]
