"""The base class of supervised tasks: a subclass defines data, networks and recipes.

Shapes: B = batch, ... = one example's axes.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import load_weights
from search_spaces.layers.stack import Stack
from search_spaces.support.errors import UserError, foreign_location
from search_spaces.support.rank import rank_info
from tasks.base import FitResult
from tasks.data.batches import Inputs, tensors
from tasks.data.splits import Splits, TensorSplits
from tasks.input_formats import InputFormat, TableInputs
from tasks.plugin_errors import plugin_error
from tasks.recipes.parametrization import at_width, read_parametrization
from tasks.recipes.recipe import Recipe
from tasks.run import Run
from tasks.training.fabric import fabric_for
from tasks.training.inputs import check_inputs
from tasks.training.loop import checkpoint_for, isolated_rng, train
from tasks.training.mup import mup_factors, rescale_weights
from tasks.training.objective import SupervisedObjective
from tasks.training.supervised_training import SupervisedTraining


class SupervisedTask(SupervisedObjective):
    """A task that learns from inputs and targets. Its presets are Recipes.

    With a fixed number of threads, `fit` on a CPU is bitwise reproducible. GPU kernels may add in varying order, and a
    training in hours takes as many steps as it can. Global generators are restored afterwards.
    """

    @abstractmethod
    def load(self) -> Splits:
        """Read the data. Raises UserError if it is missing."""

    def input_format(self) -> InputFormat | None:
        """Return lines of numbers if the network takes one matrix of floating-point numbers; None otherwise."""
        example = tensors(self.example())
        is_table = len(example) == 1 and example[0].dim() == 2 and example[0].is_floating_point()
        return TableInputs(features=example[0].shape[1]) if is_table else None

    def build_for_training(self, architecture: Architecture, recipe: Any) -> nn.Module:
        """Build the network for training, which may differ from `build`'s, for instance by stochastic depth."""
        return self.build(architecture)

    @cached_property
    def splits(self) -> Splits:
        """The data, read once."""
        with torch.device("cpu"):  # the first caller may be building a network on the meta device
            try:
                splits: object = self.load()
            except Exception as error:  # a task of another package may raise anything
                if not foreign_location(error):
                    raise
                lacks_data = self.takes_data and self.data is None
                raise plugin_error(f"load() of task {self.name!r}", error, self.name, lacks_data) from error
        if not isinstance(splits, Splits):
            message = f"load() of task {self.name!r} must return Splits, got {type(splits).__name__}."
            remedy = "Return TensorSplits(train, validation, test), each a pair of inputs and targets."
            raise UserError("bad-plugin", f"{message} {remedy}", task=self.name, value=type(splits).__name__)
        return splits

    def splits_for(self, recipe: Any) -> Splits:
        """Return the data for a recipe: `splits`, unless the data depends on the recipe."""
        return self.splits

    def prepare(self) -> None:
        _ = self.splits

    def check_recipe(self, recipe: Any) -> None:
        self.splits_for(recipe).check_recipe(recipe)

    def check_data(self, recipe: Any) -> None:
        if isinstance(self.splits_for(recipe), TensorSplits):
            check_inputs(self, self.inputs(recipe))

    def fingerprint(self, recipe: Any) -> str:
        return self.splits_for(recipe).fingerprint

    def inputs(self, recipe: Any) -> Inputs:
        """Return the first validation batch under a recipe."""
        inputs, _ = next(self.splits_for(recipe).evaluation_batches("validation", recipe, torch.device("cpu")))
        batch: Inputs = inputs
        return batch

    def fit(self, run: Run) -> FitResult:
        recipe, splits = self._recipe_and_splits(run)
        with isolated_rng(run):
            training = self.training(run, recipe, splits)
            return train(run, training, checkpoint_for(self, run, training.rank_info))

    def training_step(self, run: Run) -> Callable[[], None]:
        recipe, splits = self._recipe_and_splits(run)
        with isolated_rng(run):
            return self.training(run, replace(recipe, batch_ramp=0.0), splits).advance  # a step of the whole batch

    def _recipe_and_splits(self, run: Run) -> tuple[Recipe, Splits]:
        recipe: Recipe = run.recipe.for_devices(rank_info().world_size)
        return recipe, self.splits_for(recipe)

    def training(self, run: Run, recipe: Recipe, splits: Splits) -> SupervisedTraining:
        """Return the run's training before its first step. It initializes weights: call it inside `isolated_rng`."""
        network = self.build_for_training(run.architecture, recipe)
        if recipe.recompute_mixing:
            _recompute_mixing(network, self.name)
        rates = self._apply_parametrization(network, run.architecture, recipe)
        if run.start is not None:
            load_weights(network, run.start, "the checkpoint")
        fabric = fabric_for(recipe, run.device)
        return SupervisedTraining(self, network, recipe, run.seed, splits, fabric, rank_info(), rates)

    def _apply_parametrization(
        self, network: nn.Module, architecture: Architecture, recipe: Recipe
    ) -> dict[str, float]:
        """Initialize a network under its recipe's parametrization; return the factors of learning rates."""
        mup = read_parametrization(recipe.parametrization)
        if mup is None:
            return {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            base = self.build_for_training(at_width(architecture, mup.base), recipe)
        factors = mup_factors(network, base)
        rescale_weights(network, base, factors)
        return {name: factor.rate for name, factor in factors.items() if factor.rate != 1}


def _recompute_mixing(network: nn.Module, task: str) -> None:
    """Make all stacks recompute their mixing. Raises UserError if the network has no stack."""
    stacks = [module for module in network.modules() if isinstance(module, Stack)]
    if not stacks:
        raise UserError(
            "unsupported",
            f"recompute_mixing needs layers connected by `build_stack`, and this network of {task!r} has none. "
            f"Leave it out.",
            option="recompute_mixing",
            task=task,
        )
    for stack in stacks:
        stack.recompute_mixing = True


def means_and_errors(measures: Mapping[str, Tensor]) -> dict[str, float]:
    """Return each metric's mean over examples, [examples], and its standard error."""
    summary = {}
    for name, values in measures.items():
        column = values.double()
        summary[name] = column.mean().item()
        # For 0/1 values this is sqrt(p (1 - p) / n).
        summary[f"{name}_se"] = (column.var(correction=0) / len(column)).sqrt().item()
    return summary
