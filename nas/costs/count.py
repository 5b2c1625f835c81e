"""Counts of a network: parameters and multiply-accumulates (MACs) of one forward pass of one example.

fvcore counts on the meta device, with handlers for operators that it misses or miscounts. If the network has a closed
form, the two must agree exactly.
"""

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

with warnings.catch_warnings():  # fvcore uses torch.jit, whose deprecation users cannot change
    warnings.simplefilter("ignore")
    from fvcore.nn import FlopCountAnalysis

from nas.costs.handlers import HANDLERS, ZERO_FLOP_OPS, Miscount, custom_handlers, fvcore_handle
from nas.costs.shapes import Shapes
from results.records.row import Costs
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count
from search_spaces.support.errors import UserError
from tasks.base import Task
from tasks.data.batches import positional

COUNTER = f"fvcore {version('fvcore')}"


class _Convolutions(TorchFunctionMode):
    """A mode that traces convolutions on meta as matrix products: torch's tracer does not record them there."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.conv1d, torch.conv2d, torch.conv3d) and args[0].is_meta:
            return _convolution_as_matmul(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _convolution_as_matmul(
    x: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Return a tensor of the convolution's shape, from as many multiply-accumulates."""
    channels, depth, *kernel = map(int, weight.shape)
    axes = range(len(kernel))
    stride, dilation = ((_as_list(size) * len(kernel))[: len(kernel)] for size in (stride, dilation))
    kernel_extent = [dilation[i] * (kernel[i] - 1) for i in axes]
    if isinstance(padding, str):
        total_padding = kernel_extent if padding == "same" else [0] * len(kernel)
    else:
        total_padding = [2 * side for side in (_as_list(padding) * len(kernel))[: len(kernel)]]
    sides = [(int(x.shape[i - len(kernel)]) + total_padding[i] - kernel_extent[i] - 1) // stride[i] + 1 for i in axes]
    lead = [int(size) for size in x.shape[: -1 - len(kernel)]]
    columns = x.new_empty(*lead, groups, math.prod(sides), depth * math.prod(kernel))
    y = columns @ weight.reshape(groups, channels // groups, -1).mT
    return y.mT.reshape(*lead, channels, *sides)


def _as_list(size: Any) -> list[int]:
    return [size] if isinstance(size, int) else list(size)


@dataclass(frozen=True, slots=True)
class Work:
    """The matrix work of a forward pass.

    Attributes:
        macs: Name of a module ("" is the network) -> operator -> its MACs there and in submodules.
        uncounted: Operators of the pass without matrix work.
    """

    macs: Mapping[str, Mapping[str, int]]
    uncounted: tuple[str, ...]

    def within(self, module: str) -> int:
        """Return the multiply-accumulates of a module."""
        return sum(self.macs.get(module, {}).values())


def count_macs(model: nn.Module, example: tuple[Tensor, ...], task: Task | None = None) -> tuple[int, tuple[str, ...]]:
    """Return the MACs of a forward pass, and its operators without matrix work. See `count_work`."""
    work = count_work(model, example, task)
    return work.within(""), work.uncounted


def count_work(model: nn.Module, example: tuple[Tensor, ...], task: Task | None = None) -> Work:
    """Count a forward pass.

    Model and example are on one device; on meta nothing is computed. A MAC is one multiply and add of matrix work:
    linear maps, convolutions, and attention in full. `handlers` of the task and of topologies count other operators.

    Raises:
        Miscount: An operator has no handler and is not known to hold no matrix work, or its handler fails.
        UserError: A handler is for an operator that already has one.
    """
    custom = custom_handlers(model, task)
    handles = {
        name: fvcore_handle(name, handler, owner) for name, (handler, owner) in custom.items() if handler is not None
    }
    training = model.training
    with torch.no_grad(), Shapes(), _Convolutions(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        analysis = FlopCountAnalysis(model.eval(), example)
        analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
        analysis.set_op_handle(**HANDLERS, **handles)
        macs, uncounted = analysis.by_module_and_operator(), analysis.unsupported_ops()
    model.train(training)
    unknown_ops = sorted(set(uncounted) - ZERO_FLOP_OPS - custom.keys())
    if unknown_ops:
        raise Miscount(
            "unsupported",
            f"no handler counts {', '.join(unknown_ops)}. Add one to `handlers` of the topology or task that uses it. "
            f'handlers = {{"{unknown_ops[0]}": lambda inputs, outputs: MACS}} counts by the shapes of its tensors '
            f"(search_spaces.support.count.Handler). "
            f'handlers = {{"{unknown_ops[0]}": None}} declares that it has no matrix work.',
            operators=tuple(unknown_ops),
        )
    macs_by_module = {
        module: {name: int(amount) for name, amount in operators.items()} for module, operators in macs.items()
    }
    return Work(macs_by_module, tuple(sorted(uncounted)))


class _SkipInitialization(TorchFunctionMode):
    """A mode that skips the initialization of meta tensors: they have no values, and it takes time."""

    filling = frozenset({"uniform_", "normal_", "erfinv_", "mul_", "add_", "clamp_", "fill_", "zero_"})

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensor = args[0] if args else (kwargs or {}).get("tensor")
        if func.__name__ in self.filling and isinstance(tensor, Tensor) and tensor.is_meta:
            return tensor
        return func(*args, **(kwargs or {}))


@contextmanager
def meta_device() -> Iterator[None]:
    """Build networks on the meta device, without values or initialization."""
    with torch.device("meta"), Shapes(), _SkipInitialization():
        yield


def count(task: Task, architecture: Architecture) -> Costs:
    """Return parameters, MACs and FLOPs of an architecture on a task, without training or memory.

    Raises:
        Miscount: As `count_macs`, or the closed form disagrees.
        UserError: The architecture cannot be built, or the task's closed form is not a Count.
    """
    declared_costs = task.known_costs(architecture)
    if declared_costs is not None:
        return Costs(**declared_costs)
    with meta_device():
        model, example = task.build(architecture), task.example()
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    macs, uncounted = count_macs(model, positional(model, example), task)
    params, form = sum(sizes.values()), _closed_form(task, architecture)
    if form is not None and (form.params, form.macs) != (params, macs):
        raise Miscount(
            "mismatch",
            f"closed form and counter disagree on {architecture}: {form.params} parameters and {form.macs} MACs in "
            f"closed form, {params} and {macs} counted. Fix `count` of the topology, or `closed_form` of the task.",
            arch=str(architecture),
            closed_form=(form.params, form.macs),
            counted=(params, macs),
        )
    embedding_params = None if architecture.model else _embedding_params(sizes)
    return Costs(
        params=params,
        topology_params=sum(size for name, size in sizes.items() if ".topology." in name),
        embedding_params=embedding_params,
        non_embedding_params=None if embedding_params is None else params - embedding_params,
        macs=macs,
        flops=2 * macs,
        train_flops=6 * macs,
        elementwise_flops=None if form is None else form.elementwise,
        counter=COUNTER,
        uncounted=uncounted,
    )


def _closed_form(task: Task, architecture: Architecture) -> Count | None:
    form: object = task.closed_form(architecture)
    if not isinstance(form, Count | None):
        message = f"closed_form of task {task.name!r} must return a Count or None, got {form!r:.80}."
        raise UserError("bad-plugin", message, option="closed_form", task=task.name)
    return form


def _embedding_params(sizes: Mapping[str, int]) -> int:
    return sum(size for name, size in sizes.items() if name.startswith("embedding."))


def budget_counts(task: Task, architecture: Architecture) -> dict[str, int]:
    """Return the counts that a budget can bound: by closed form if the task has one, else by counting."""
    form = _closed_form(task, architecture)
    if form is not None:
        return {"params": form.params, "macs": form.macs, "flops": 2 * form.macs}
    costs = count(task, architecture)
    return {name: getattr(costs, name) for name in ("params", "macs", "flops")}
