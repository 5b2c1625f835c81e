"""The coordinate check: how far a few steps change outputs at several widths, with and without muP.

With a parametrization that suits all widths, a step changes every layer's output equally at every width (Yang et al.,
2022, arXiv 2203.03466, appendix D.1). Otherwise the change grows or shrinks with width.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from torch import Tensor, nn

from nas.report.records_result import RecordsResult
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.stack import Stack
from tasks.data.batches import call, to_device
from tasks.recipes.parametrization import STANDARD, at_width
from tasks.recipes.recipe import Recipe
from tasks.run import Run
from tasks.training.loop import isolated_rng
from tasks.training.supervised import SupervisedTask

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 5
"""Optimizer steps, each at the recipe's peak learning rate."""


@final
@dataclass(frozen=True)
class CoordinateCheck(RecordsResult):
    """The result of a coordinate check.

    Attributes:
        title: One line about what was checked.
        records: One flat record for each parametrization and part: `moved_WIDTH`, the RMS change of its output by five
            steps, averaged over seeds, and `slope`, the power of the width by which it grows.
        widths: The widths, the first of which is muP's base.
    """

    widths: tuple[int, ...]

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw the change of each part against width, one panel for each parametrization; save it if `path` is given.

        Raises:
            UserError: The file cannot be written.
        """
        from nas.report import plots

        return plots.save_figure(plots.draw_coordinates(self.records, self.widths, self.title), path)

    def figure(self) -> "Figure":
        """Return the picture of the changes against width."""
        return self.plot()


def check_coordinates(
    task: SupervisedTask, architecture: Architecture, recipe: Recipe, widths: Sequence[int], seeds: int
) -> CoordinateCheck:
    """Train a network of each width with each seed, in the standard parametrization and in muP.

    Args:
        task: Supplies the batches.
        architecture: Depth, head dimension and topology of all networks; heads and hidden features grow with width.
        recipe: Its optimizer and peak learning rate are used.
        widths: In increasing order.
        seeds: Number of seeds.

    Raises:
        UserError: A network that cannot be built, or an optimizer that muP does not support.
    """
    constant = replace(recipe, warmup=0.0, floor=1.0, schedule="linear")
    recipes = [
        replace(constant, parametrization=parametrization) for parametrization in (STANDARD, f"mup(base={widths[0]})")
    ]
    records = []
    for variant in recipes:
        moves_by_width = {width: _mean(task, at_width(architecture, width), variant, seeds) for width in widths}
        for part in moves_by_width[widths[0]]:
            moves = [moves_by_width[width][part] for width in widths]
            slope = np.polyfit(np.log(widths), np.log(moves), 1)[0] if min(moves) > 0 else None
            by_width = {f"moved_{width}": move for width, move in zip(widths, moves, strict=True)}
            record = {"parametrization": variant.parametrization, "part": part, **by_width}
            records.append({**record, "slope": None if slope is None else float(slope)})
    title = f"{task.name}, {architecture.topology}: change of each part's output after {STEPS} steps at {recipe.lr:g}"
    return CoordinateCheck(title, tuple(records), tuple(widths))


def _mean(task: SupervisedTask, architecture: Architecture, recipe: Recipe, seeds: int) -> dict[str, float]:
    """Return the change of each part, averaged over seeds."""
    runs = [_moves(task, Run(architecture=architecture, recipe=recipe, seed=seed), recipe) for seed in range(seeds)]
    return {part: float(np.mean([moves[part] for moves in runs])) for part in runs[0]}


def _moves(task: SupervisedTask, run: Run, recipe: Recipe) -> dict[str, float]:
    splits, inputs = task.splits_for(recipe), task.inputs(recipe)
    with isolated_rng(run):
        training = task.training(run, recipe, splits)
        before = _outputs_by_part(training.network, to_device(inputs, training.fabric.device))
        for _ in range(STEPS):
            training.advance()
        after = _outputs_by_part(training.network, to_device(inputs, training.fabric.device))
    return {part: (after[part] - output).square().mean().sqrt().item() for part, output in before.items()}


@torch.no_grad()
def _outputs_by_part(network: nn.Module, inputs: Any) -> dict[str, Tensor]:
    """Return the outputs of the first, middle and last layer of each stack, and of the network."""
    outputs_by_part: dict[str, Tensor] = {}
    network.eval()
    with _capture_outputs(network, outputs_by_part):
        outputs = call(network, inputs)
    network.train()
    return {**outputs_by_part, "outputs": outputs.float()}


@contextmanager
def _capture_outputs(network: nn.Module, outputs_by_part: dict[str, Tensor]) -> Iterator[None]:
    """Record the outputs of these layers by name."""
    hooks = []
    for name, stack in network.named_modules():
        if isinstance(stack, Stack):
            last = len(stack.layers) - 1
            for t in sorted({0, last // 2, last}):
                part = f"{name}.layers.{t}"
                hooks.append(stack.layers[t].register_forward_hook(_capture_hook(part, outputs_by_part)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _capture_hook(part: str, outputs_by_part: dict[str, Tensor]) -> Any:
    def hook(layer: nn.Module, inputs: Any, output: Tensor) -> None:
        outputs_by_part[part] = output.float()

    return hook
