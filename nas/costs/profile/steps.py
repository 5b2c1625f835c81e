"""The timed work: a forward pass of one example, and a training step.

The training step is the task's own if it has one. All other tasks use a generic step: the forward pass of a batch of
the task's example, a loss over all outputs, the backward pass, and the recipe's optimizer, by default AdamW. Network
and example are those whose costs are counted: a task's own loss and data are not included.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from search_spaces.architecture.architecture import Architecture
from search_spaces.topologies.decay import split_by_decay
from tasks.base import Task
from tasks.data.batches import Inputs, call, map_tensors, repeat, tensors, to_device
from tasks.recipes.recipe import Recipe
from tasks.training.compilation import compile_network
from tasks.training.optimizers import optimizers_for

DEFAULT_BATCH = 32
"""Batch size for recipes without one."""

Call = Callable[[], None]


def has_training_step(task: Task) -> bool:
    """Return whether the task overrides `training_step`, which may still raise NotImplementedError."""
    return type(task).training_step is not Task.training_step


def inference(task: Task, architecture: Architecture, recipe: Any, device: torch.device) -> Call:
    """Return a function that passes one example through a network in evaluation mode, in the recipe's precision."""
    network, example = _build(task, architecture, recipe, device)
    network.eval()

    @torch.no_grad()
    def infer() -> None:
        with _autocast(recipe, device):
            call(network, example)

    return infer


def generic_step(task: Task, architecture: Architecture, recipe: Any, batch: int, device: torch.device) -> Call:
    """Return a function that trains on a batch of equal examples, in the recipe's passes, with a meaningless loss."""
    network, example = _build(task, architecture, recipe, device)
    network.train()
    passes = getattr(recipe, "accumulate", 1)
    inputs = repeat(example, batch // passes)
    optimizers = _optimizers(network, recipe)

    def train() -> None:
        for _ in range(passes):
            with _autocast(recipe, device):
                outputs = call(network, inputs)
            loss = torch.stack([output.float().square().mean() for output in tensors(outputs)]).sum()
            loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    return train


def optimizer_of(recipe: Any) -> str:
    """Return the optimizer of the generic step."""
    return recipe.optimizer if isinstance(recipe, Recipe) else "adamw"


def _optimizers(network: nn.Module, recipe: Any) -> list[Optimizer]:
    if isinstance(recipe, Recipe):
        return optimizers_for(network, recipe)
    decay, no_decay = split_by_decay(network)
    groups: list[dict[str, Any]] = [{"params": decay}, {"params": no_decay, "weight_decay": 0.0}]
    return [AdamW(groups, lr=1e-4, fused=True)]


def batch_of(recipe: Any) -> int | None:
    """Return the examples of a whole optimizer step of a recipe; None if it has no batch."""
    size = getattr(recipe, "batch", None)
    return size if isinstance(size, int) else None


def micro_batch_of(recipe: Any) -> int:
    """Return the examples of one pass of a recipe's step."""
    return (batch_of(recipe) or DEFAULT_BATCH) // getattr(recipe, "accumulate", 1)


def with_batch(recipe: Any, batch: int, most: int | None = None) -> Any:
    """Return the recipe with another batch, in passes of at most `most` examples, by default no more than it has.

    A batch ramp is removed. A recipe without a batch is returned unchanged.
    """
    recipe_batch = batch_of(recipe)
    if recipe_batch is None:
        return recipe
    names = {field.name for field in fields(recipe)}
    if "accumulate" not in names:
        return replace(recipe, batch=batch)
    most = most or micro_batch_of(recipe)
    passes = next(n for n in range(1, batch + 1) if batch % n == 0 and batch // n <= most)
    ramp = {"batch_ramp": 0.0} if "batch_ramp" in names else {}
    return replace(recipe, batch=batch, accumulate=passes, **ramp)


def _build(task: Task, architecture: Architecture, recipe: Any, device: torch.device) -> tuple[nn.Module, Inputs]:
    """Return the network whose costs are counted and one example, in the recipe's precision, compiled if it says so."""
    with device:
        network = task.build(architecture)
    example: Inputs = to_device(task.example(), device)  # arrays and tensors of the task are on the CPU
    if _precision(recipe) == "bf16-true":
        network, example = network.to(torch.bfloat16), map_tensors(example, _to_bf16)
    if isinstance(recipe, Recipe) and recipe.compile:
        compile_network(network)
    return network, example


def _to_bf16(x: Tensor) -> Tensor:
    return x.to(torch.bfloat16) if x.is_floating_point() else x


def _precision(recipe: Any) -> str:
    return recipe.precision if isinstance(recipe, Recipe) else "32-true"


def _autocast(recipe: Any, device: torch.device) -> AbstractContextManager[Any]:
    return torch.autocast(device.type, torch.bfloat16) if _precision(recipe) == "bf16-mixed" else nullcontext()
