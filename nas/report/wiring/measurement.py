"""Measurement of a network's topology, at initialization or from a checkpoint, on a batch of its task."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nas.costs.random_inputs import RandomInputs
from nas.evaluation.saved_networks import network_of, read_network
from nas.report.wiring.influence import influences
from nas.report.wiring.stack_wiring import name_stack
from nas.report.wiring.wiring_report import WiringReport
from nas.request.job import recipe_of
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import Record, read_record
from search_spaces.layers.stack import Stack
from search_spaces.spaces.parsing import parse_architecture
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Scalar
from tasks.base import Task
from tasks.data.batches import call, map_tensors, select
from tasks.training.supervised import SupervisedTask

EXAMPLES = 16
"""Most examples of the training batch that are used."""


def wiring_at_init(
    task: Task, architecture: Architecture, preset: str, settings: tuple[tuple[str, Scalar], ...], seed: int
) -> WiringReport:
    """Measure a network at initialization. Raises UserError as `measure_network` does."""
    recipe = {f"recipe.{name}": value for name, value in settings}
    record = Record(
        task=task.name,
        task_version=task.version,
        architecture=architecture,
        step=0,
        settings={"preset": preset, **recipe},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = network_of(task, record)
    title = f"{architecture} on {task.name}, preset {preset}, at initialization with seed {seed}"
    return measure_network(task, network, recipe_of(task, preset, settings), architecture, title, seed)


def wiring_of_checkpoint(
    task: Task, folder: Path, preset: str, settings: tuple[tuple[str, Scalar], ...], changes: str, seed: int
) -> WiringReport:
    """Measure the network of a checkpoint, with the data of a preset.

    Raises:
        UserError: `changes` alter its architecture; or as `measure_network` does.
    """
    record = read_record(folder)
    architecture = record.architecture
    if (requested_architecture := parse_architecture(changes, architecture)) != architecture:
        message = f"{folder} holds {architecture}, got {requested_architecture}. Leave out --arch and --topology."
        raise UserError(
            "mismatch", message, path=str(folder), architecture=str(architecture), value=str(requested_architecture)
        )
    network = read_network(folder, task)
    title = f"{architecture} on {task.name}, preset {preset}, after {record.step:,} steps"
    return measure_network(task, network, recipe_of(task, preset, settings), architecture, title, seed)


def measure_network(
    task: Task, network: nn.Module, recipe: Any, architecture: Architecture, title: str, seed: int
) -> WiringReport:
    """Convert a network to double precision, CPU and evaluation mode, and measure it.

    It reads the first training batch with this seed, EXAMPLES of it at most. If the task gives no examples, it reads
    random inputs and there is no loss.

    Raises:
        UserError: The network has no Stack.
    """
    stacks = {name: module for name, module in network.named_modules() if isinstance(module, Stack)}
    if not stacks:
        has = f"model={architecture.model}" if architecture.model else f"the network of {task.name!r}"
        message = f"`nas show` needs layers stacked by `build_stack`, and {has} has none."
        raise UserError("unsupported", message, task=task.name, model=architecture.model)
    for stack in stacks.values():
        stack.recompute = False
    network = network.cpu().double().eval().requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        influence_by_stack = influences(network, _forward(task, network, recipe, seed))
    is_single = [*stacks] == [*stacks][:1]
    parts = tuple(
        name_stack("" if is_single else name, stacks[name], influence) for name, influence in influence_by_stack.items()
    )
    return WiringReport(title, architecture.topology, parts)


def _forward(task: Task, network: nn.Module, recipe: Any, seed: int) -> Callable[[], Tensor | None]:
    """Return a function that calls the network with a batch and returns the task's loss, or None if it has none."""
    if not isinstance(task, SupervisedTask):
        random_inputs = map_tensors(
            RandomInputs(network, map_tensors(task.example(), _precise)).draw(EXAMPLES), _precise
        )

        def without_loss() -> None:
            call(network, random_inputs)

        return without_loss
    with closing(task.splits_for(recipe).training_batches(recipe, seed, (), torch.device("cpu"))) as batches:  # type: ignore[type-var]
        (inputs, targets), _ = next(batches)
    inputs, targets = (map_tensors(select(part, slice(EXAMPLES)), _precise) for part in (inputs, targets))
    return lambda: task.loss(call(network, inputs), targets, recipe)


def _precise(x: Tensor) -> Tensor:
    return x.double() if x.is_floating_point() else x
