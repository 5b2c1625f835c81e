"""Costs of an architecture by layer and by operator. Each column sums to the network's total."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from torch import nn

from nas.costs.count import Work, count, count_work, meta_device
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.stack import Stack
from tasks.base import Task
from tasks.data.batches import positional

NO_OPERATOR = "none"
"""The operator of parameters without matrix work."""


def total_record(task: Task, architecture: Architecture) -> dict[str, Any]:
    """Return the network's shape and its counts as one record. Raises as `nas.costs.count.count` does."""
    costs = asdict(count(task, architecture))
    costs["uncounted"] = " ".join(costs["uncounted"])
    return {"task": task.name, "key": architecture.key, **asdict(architecture), **costs}


def by_layer(task: Task, architecture: Architecture) -> list[dict[str, Any]]:
    """Return parameters, MACs and FLOPs of each part of the network, in order.

    A part is a layer of a stack, a timm block or, in networks without either, a member of a ModuleList. It is named by
    its name in the network and its class. A stack's topology and final norm are one part. Modules beside a stack, such
    as embedding and head, are parts as well. Shared parameters count for the first part that has them. Parts without
    costs are left out, except layers. Raises as `nas.costs.count.count` does, but does not check the closed form.
    """
    model, work = _count_network(task, architecture)
    layers = {layer for stack in model.modules() if isinstance(stack, Stack) for layer in stack.layers}
    if architecture.model:
        from search_spaces.models.families import blocks_of  # importing timm takes three seconds

        layers |= {*blocks_of(model)}
    if not layers:  # a network that does not use Stack
        layers = {layer for part in model.modules() if isinstance(part, nn.ModuleList) for layer in part}
    sizes = _sizes(model)
    records = []
    for name, module, inside in _parts("", model, layers):
        params = _within(sizes, name) - sum(_within(sizes, part) for part in inside)
        macs = work.within(name) - sum(map(work.within, inside))
        if isinstance(module, Stack):
            records.append(_record(params, macs, part=f"{name}.topology", kind=architecture.topology))
        elif params or macs or module in layers:
            records.append(_record(params, macs, part=name or "network", kind=type(module).__name__))
    return records


def by_operator(task: Task, architecture: Architecture) -> list[dict[str, Any]]:
    """Return parameters, MACs and FLOPs of each operator, most MACs first.

    A module's parameters count for the operator with most of the module's own work. Modules without matrix work of
    their own, such as embeddings, norms and mixing weights, count for "none". Raises as `by_layer` does.
    """
    model, work = _count_network(task, architecture)
    params: Counter[str] = Counter()
    for name, size in _sizes(model).items():
        own_work = _own_work(work, name.rpartition(".")[0], model)
        params[max(own_work, key=lambda operator: own_work[operator], default=NO_OPERATOR)] += size
    macs = work.macs[""]
    names = sorted({*macs, *params}, key=lambda operator: (-macs.get(operator, 0), operator))
    return [_record(params[operator], macs.get(operator, 0), operator=operator) for operator in names]


def _count_network(task: Task, architecture: Architecture) -> tuple[nn.Module, Work]:
    with meta_device():
        model, example = task.build(architecture), task.example()
    return model, count_work(model, positional(model, example), task)


def _parts(name: str, module: nn.Module, layers: set[nn.Module]) -> Iterator[tuple[str, nn.Module, list[str]]]:
    """Yield the parts in order, each with the names of those inside it; a module comes after the layers in it."""
    if module in layers or (name and layers.isdisjoint(module.modules())):
        yield name, module, []
        return
    inside = []
    for child_name, child in module.named_children():
        if not isinstance(module, Stack) or child is module.layers:  # topology and norm belong to the stack's own part
            full = f"{name}.{child_name}" if name else child_name
            inside.append(full)
            yield from _parts(full, child, layers)
    yield name, module, inside


def _own_work(work: Work, name: str, model: nn.Module) -> Mapping[str, int]:
    """Return the MACs of a module by operator, without those of its submodules."""
    own_work = Counter(work.macs.get(name, {}))
    for child, _ in model.get_submodule(name).named_children():
        own_work.subtract(work.macs.get(f"{name}.{child}" if name else child, {}))
    return {operator: macs for operator, macs in own_work.items() if macs > 0}


def _sizes(model: nn.Module) -> Mapping[str, int]:
    return {name: parameter.numel() for name, parameter in model.named_parameters()}


def _within(sizes: Mapping[str, int], module: str) -> int:
    return sum(size for name, size in sizes.items() if not module or name.startswith(f"{module}."))


def _record(params: int, macs: int, **name: str) -> dict[str, Any]:
    return {**name, "params": params, "macs": macs, "flops": 2 * macs}
