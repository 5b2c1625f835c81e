"""Axes of a space that a task's networks do not depend on: a search would train one network under several names."""

from collections.abc import Iterator
from contextlib import suppress

import torch
from torch import Tensor

from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.axis_names import is_recipe, option_of
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Scalar
from search_spaces.topologies.registry import incompatibility_reason
from tasks.base import Task
from tasks.data.batches import call, map_tensors, tensors

_NOISE = 0.1
"""Standard deviation of the noise that is added to weights, since initial weights of 0 would hide differences."""


def check_axes_are_used(task: Task, space: SearchSpace) -> None:
    """Raise UserError if all values of an axis give one network. Topologies' options and timm models are not checked.

    Around the space's base, networks differ by names and shapes of their parameters, or else by outputs for the same
    weights. An architecture that cannot be built counts as different: its training fails with the reason.
    """
    if space.point_table is not None or space.base.model:
        return
    for axis in space.axes:
        if not is_recipe(axis) and option_of(axis) is None:
            values = dict(_neighbours(space, axis))
            if values and not any(_differ(task, space.base, other) for other in values.values()):
                first = getattr(space.base, axis.partition(":")[0])
                raise _ignored_error(task, space, axis, (first, *values))


def _neighbours(space: SearchSpace, axis: str) -> Iterator[tuple[Scalar, Architecture]]:
    """Yield the other values of an axis, and the valid architectures that differ from the base in it alone."""
    point = space.point(space.first) or {}
    for value in space.axes[axis]:
        with suppress(UserError):
            other = space.candidate({**point, axis: value}).architecture
            if other != space.base and incompatibility_reason(other) is None:
                yield value, other


def _differ(task: Task, first: Architecture, second: Architecture) -> bool:
    try:
        with torch.device("meta"):
            shapes = [
                [(name, parameter.shape) for name, parameter in task.build(each).named_parameters()]
                for each in (first, second)
            ]
        if shapes[0] != shapes[1]:
            return True
        outputs = [_outputs(task, each) for each in (first, second)]
    except Exception:  # the training says it, as a Row
        return True
    return not all(map(torch.equal, *outputs))


def _outputs(task: Task, architecture: Architecture) -> list[Tensor]:
    """Return a network's outputs for random inputs, with weights that are equal for equal parameters."""
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.no_grad():
        torch.manual_seed(0)
        network = task.build(architecture).eval()
        torch.manual_seed(0)
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * _NOISE)
        example = map_tensors(task.example(), lambda x: torch.randn_like(x) if x.is_floating_point() else x)
        return tensors(call(network, example))


def _ignored_error(task: Task, space: SearchSpace, axis: str, values: tuple[Scalar, ...]) -> UserError:
    field, texts = axis.partition(":")[0], ", ".join(map(str, values[:3]))
    message = (
        f"build() of task {task.name!r} must use architecture.{field}, an axis of space {space.name!r}: {texts} give "
        f"one network. Use it, or fix it by --axis {axis}={values[0]}."
    )
    return UserError("bad-plugin", message, task=task.name, option=axis, value=values)
