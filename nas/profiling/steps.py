"""The work that is timed: a forward pass of one example, and a training step of a batch.

A training step is the same for every task: the forward pass of a batch of the task's example, a loss that every output
has a part in, the backward pass, and AdamW. Network and example are those that costs are counted of: what a task's own
loss, its data, dropped paths or a preset's shorter sequences change is not in it.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from search_spaces.architecture import Architecture
from search_spaces.topologies.decay import split_by_decay
from tasks.base import Task
from tasks.recipe import Recipe

USUAL_BATCH = 32
"""Where a task's preset has none of its own."""


@dataclass(frozen=True, slots=True)
class Steps:
    """A network on its device, and examples for it.

    Attributes:
        network: What is timed.
        batch: Inputs of a training step.
        one: Inputs of a single example.
        optimizer: Of the network's parameters.
        precision: What the forward pass computes in.
    """

    network: nn.Module
    batch: tuple[Tensor, ...]
    one: tuple[Tensor, ...]
    optimizer: Optimizer
    precision: str

    @torch.no_grad()
    def infer(self) -> None:
        """Pass one example forward."""
        self.network.eval()
        with self._autocast():
            self.network(*self.one)

    def train(self) -> None:
        """Take a training step."""
        self.network.train()
        with self._autocast():
            outputs = self.network(*self.batch)
        loss = torch.stack([output.float().square().mean() for output in _tensors(outputs)]).sum()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.precision == "bf16-mixed":
            return torch.autocast(self.one[0].device.type, torch.bfloat16)
        return nullcontext()


def prepare(task: Task, architecture: Architecture, preset: str, batch: int | None, device: torch.device) -> Steps:
    """Build the network, with the preset's precision, compiled or not, and its batch where none is given."""
    recipe = task.presets[preset]
    precision = recipe.precision if isinstance(recipe, Recipe) else "32-true"
    size = batch or usual_batch(recipe)
    with device:
        network, one = task.build(architecture), task.example()
    if precision == "bf16-true":
        network = network.to(torch.bfloat16)
        one = tuple(x.to(torch.bfloat16) if x.is_floating_point() else x for x in one)
    if isinstance(recipe, Recipe) and recipe.compile:
        network.compile()
    decayed, exempt = split_by_decay(network)
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": exempt, "weight_decay": 0.0}]
    optimizer = AdamW(groups, lr=1e-4, fused=True)
    return Steps(network, tuple(x.repeat(size, *[1] * (x.dim() - 1)) for x in one), one, optimizer, precision)


def usual_batch(recipe: Any) -> int:
    """How many examples a pass of a preset has."""
    return recipe.batch // recipe.accumulate if isinstance(recipe, Recipe) else USUAL_BATCH


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread on the CPU, as evaluations train."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _tensors(outputs: Any) -> list[Tensor]:
    if isinstance(outputs, Tensor):
        return [outputs]
    return [tensor for output in outputs for tensor in _tensors(output)]
