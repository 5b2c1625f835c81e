"""Axes of a space that a task's networks do not depend on: a search would train one network under several names."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Size, Tensor

from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.axis_names import is_recipe, option_of
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.errors import UserError
from search_spaces.support.progress import status_if_slow
from search_spaces.support.spec import Scalar
from search_spaces.topologies.registry import incompatibility_reason
from tasks.base import Task
from tasks.data.batches import call, map_tensors, tensors

_NOISE = 0.1
"""Standard deviation of the noise that is added to weights, since initial weights of 0 would hide differences."""

_MAX_PARAMS = 20_000_000
"""Networks with more parameters are not run: that takes long, and perhaps more memory than there is."""


def check_axes_are_used(task: Task, space: SearchSpace) -> None:
    """Raise UserError if all values of an axis give one network, see `ignored_axis`."""
    with status_if_slow(f"comparing networks of space {space.name} ..."):
        ignored = ignored_axis(task, space)
    if ignored is not None:
        axis, values = ignored
        message = (
            f"build() of task {task.name!r} must use architecture.{field_of(axis)}, an axis of space {space.name!r}: "
            f"{', '.join(map(str, values[:3]))} give one network. Use it, or fix it by --axis {axis}={values[0]}."
        )
        raise UserError("bad-plugin", message, task=task.name, option=axis, value=values)


def ignored_axis(task: Task, space: SearchSpace) -> tuple[str, tuple[Scalar, ...]] | None:
    """Return an axis whose values all give one network, and the values, the base's first; None if there is none.

    Around the space's base, networks differ by the classes of their modules, by names and shapes of their parameters,
    or else by outputs for the same weights. Two topologies may compute the same under names of their own. An
    architecture that cannot be built counts as different: its training fails with the reason. Networks of more than 20
    million parameters, and those whose example is equal tokens, count as different, too. Of a field's segments the last
    one is checked. Topologies' options and timm models are not checked.
    """
    if space.point_table is not None or space.base.model:
        return None
    base = _Network(task, space.base)
    axes = [axis for axis in space.axes if not is_recipe(axis) and option_of(axis) is None]
    for field, axis in {field_of(axis): axis for axis in axes}.items():
        values = dict(_neighbours(space, axis))
        if values and not any(_differ(base, _Network(task, other)) for other in values.values()):
            return axis, (getattr(space.base, field), *values)
    return None


def field_of(axis: str) -> str:
    """Return the architecture's field that an axis varies: "heads:3" -> "heads"."""
    return axis.partition(":")[0]


def _neighbours(space: SearchSpace, axis: str) -> Iterator[tuple[Scalar, Architecture]]:
    """Yield the other values of an axis, and the valid architectures that differ from the base in it alone."""
    point = space.point(space.first) or {}
    for value in space.axes[axis]:
        with suppress(UserError):
            other = space.candidate({**point, axis: value}).architecture
            if other != space.base and incompatibility_reason(other) is None:
                yield value, other


@dataclass(frozen=True)
class _Network:
    """A task's network, built when it is compared."""

    task: Task
    architecture: Architecture

    @cached_property
    def structure(self) -> tuple[list[tuple[str, type]], list[tuple[str, Size]]]:
        """Names and classes of its modules, and names and shapes of its parameters."""
        with torch.device("meta"):
            network = self.task.build(self.architecture)
        modules = [(name, type(module)) for name, module in network.named_modules()]
        return modules, [(name, parameter.shape) for name, parameter in network.named_parameters()]

    @cached_property
    def outputs(self) -> list[Tensor] | None:
        """Outputs for random inputs, with weights that are equal for equal parameters; None if they tell nothing."""
        if sum(shape.numel() for _, shape in self.structure[1]) > _MAX_PARAMS:
            return None
        with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.no_grad():
            torch.manual_seed(0)
            example = self.task.example()
            if _has_equal_tokens(tensors(example)):
                return None
            network = self.task.build(self.architecture).eval()
            torch.manual_seed(0)
            for parameter in network.parameters():
                parameter.add_(torch.randn_like(parameter) * _NOISE)
            inputs = map_tensors(example, lambda x: torch.randn_like(x) if x.is_floating_point() else x)
            return tensors(call(network, inputs))


def _has_equal_tokens(example: list[Tensor]) -> bool:
    """Return whether each tensor of integers has equal ones: attention over equal tokens is the same for any heads."""
    integers = [x for x in example if not x.is_floating_point() and x.numel() > 1]
    return bool(integers) and all(bool((x == x.flatten()[0]).all()) for x in integers)


def _differ(first: _Network, second: _Network) -> bool:
    try:
        if first.structure != second.structure or first.outputs is None or second.outputs is None:
            return True
        return not all(map(torch.equal, first.outputs, second.outputs))
    except Exception:  # the training says it, as a Row
        return True
