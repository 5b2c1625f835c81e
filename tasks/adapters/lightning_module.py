"""Tasks of somebody's LightningModule and LightningDataModule, trained by Lightning's own Trainer.

The Trainer and not the loop of tasks.training.loop: what a module logs, which hooks it has, how many optimisers and
which schedules, only the Trainer knows. `tasks.adapters.lightning_trainer` adds what a search needs.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, ClassVar

import torch
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.utilities.combined_loader import CombinedLoader
from lightning.pytorch.utilities.model_helpers import is_overridden

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError
from search_spaces.support.rank import processes
from tasks.adapters.lightning_training import train_by_lightning
from tasks.adapters.topology_support import refuse_unwired
from tasks.base import Fitted, Task
from tasks.data.batches import Inputs, each
from tasks.data.fingerprints import examples_of, fingerprint_of
from tasks.data.splits import seeded
from tasks.recipes.recipe import Precision
from tasks.recipes.settings import AtLeastOne, Between, NotNegative, ShareOfOne, check, shown
from tasks.run import Run
from tasks.training.loop import checkpoint_of

Bound = Annotated[int, Between(-1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LightningRecipe:
    """Arguments of Lightning's Trainer. What module and data take beside them (lr, batch), a subclass has as fields.

    Attributes:
        max_epochs: How often all training examples are seen; -1 is no bound.
        max_steps: Optimiser steps; -1 is no bound.
        precision: What the forward pass computes in; "bf16-true" keeps the weights in it as well.
        gradient_clip_val: Largest norm of the gradient; 0 clips nothing.
        accumulate_grad_batches: Batches of an optimiser step.
        check_val_every_n_epoch: Epochs between two validations.
        val_check_interval: The share of such an epoch between two; each but the last is a point of the curve.
    """

    max_epochs: Bound = -1
    max_steps: Bound = -1
    precision: Precision = "32-true"
    gradient_clip_val: NotNegative = 0.0
    accumulate_grad_batches: AtLeastOne = 1
    check_val_every_n_epoch: AtLeastOne = 1
    val_check_interval: ShareOfOne = 1.0

    def __post_init__(self) -> None:
        check(self)
        if max(self.max_epochs, self.max_steps) < 1:
            raise UserError(
                "missing-value",
                f"a recipe has max_epochs or max_steps, got {self.max_epochs} and {self.max_steps}. Give one of them.",
                max_epochs=self.max_epochs,
                max_steps=self.max_steps,
            )

    def __str__(self) -> str:
        return shown(self, ("max_epochs",))


class LightningTask(Task):
    """A LightningModule with its LightningDataModule. Its presets are LightningRecipes.

    All hooks but those of predictions are called, by Lightning's Trainer, on one device. The module's `forward` is what
    is counted, profiled and exported. A training goes on from a checkpoint by what Lightning keeps: the module's
    weights, optimisers, schedules, callbacks, and what `on_save_checkpoint` adds, in plain values and tensors.
    Gradients that a module with optimisation of its own gathers over batches are not kept.

    With one number of threads, `fit` gives the same numbers on a CPU to the last bit where the batches of an epoch are
    a function of what is drawn from torch, NumPy and random: generators of loaders and samplers are seeded by the run.
    How the data is cut may be drawn in `setup`: it comes out alike each time.

    Attributes:
        logged_as: What a metric is called where it is logged, in validation and in test: accuracy is "val_accuracy" and
            "test_accuracy". Its standard error is what is logged with "_se" behind that; or that of its values of each
            example, [B], where a step returns a mapping with them, and then the metric is their mean.
    """

    logged_as: ClassVar[tuple[str, str]] = ("val_{}", "test_{}")

    @abstractmethod
    def module(self, architecture: Architecture) -> LightningModule:
        """The module, on the default device."""

    @abstractmethod
    def data_module(self, recipe: Any) -> LightningDataModule:
        """The data, as a recipe wants it."""

    def build(self, architecture: Architecture) -> LightningModule:
        """The module. Raises UserError for a topology that it does not have."""
        module = self.module(architecture)
        refuse_unwired(module, architecture)
        return module

    def training_form(self, architecture: Architecture, recipe: Any) -> LightningModule:
        """The module as it is trained: another than `build` makes where it takes values of the recipe."""
        return self.build(architecture)

    def trainer_options(self, recipe: Any) -> dict[str, Any]:
        """Arguments of Lightning's Trainer: those that the recipe has. A subclass adds callbacks and limits."""
        options = {field.name: getattr(recipe, field.name) for field in fields(LightningRecipe)}
        return {**options, "gradient_clip_val": recipe.gradient_clip_val or None}

    def prepare(self) -> None:
        """See that there is a module that can be trained and measured, and prepare the data."""
        if processes() > 1:
            message = f"task {self.name!r} is trained by one process, got {processes()}. Start it without torchrun."
            raise UserError("unsupported", message, task=self.name, option="processes", value=processes())
        with torch.device("meta"):
            module: Any = self.module(self.base)
        if not isinstance(module, LightningModule):
            kind = f"{type(module).__module__}.{type(module).__name__}"
            raise UserError(
                "bad-plugin",
                f"task {self.name!r}: module must give a lightning.pytorch.LightningModule, got "
                f"{kind}. Derive it from that of `lightning`.",
                task=self.name,
                option="module",
                type=kind,
            )
        for step in ("training_step", "validation_step", "configure_optimizers"):
            if not is_overridden(step, module):
                message = f"task {self.name!r}: {type(module).__name__} must have {step}. Write it."
                raise UserError("bad-plugin", message, task=self.name, option=step)
        with seeded(0):
            self.data_module(next(iter(self.presets.values()))).prepare_data()

    def example(self) -> Inputs:
        """Zeros of the shape that the module's `example_input_array` has."""
        with torch.device("meta"):
            given: Any = self.build(self.base).example_input_array
        if given is None:
            raise UserError(
                "bad-plugin",
                f"task {self.name!r} needs inputs of one example to count costs. Give the module an "
                "example_input_array, or the task example().",
                task=self.name,
                option="example_input_array",
            )
        zeros: Inputs = each(given, lambda x: torch.zeros(x.shape, dtype=x.dtype))
        return zeros

    def fingerprint(self, recipe: Any) -> str:
        """Of every example of the data, read once for a recipe; write another where that takes long."""
        known = self._fingerprints
        if recipe not in known:
            with torch.device("cpu"), seeded(0):
                known[recipe] = fingerprint_of(map(examples_of, self._loaders(recipe)))
        return known[recipe]

    def fit(self, run: Run) -> Fitted:
        """Train by Lightning's Trainer and measure. See Task.fit."""
        return train_by_lightning(self, run, checkpoint_of(self, run))

    def metrics_of(self, logged: Mapping[str, float], part: str) -> dict[str, float]:
        """The task's metrics and their standard errors in what was logged. Raises UserError where one is missing."""
        called = self.logged_as[part == "test"]
        found = {}
        for metric in self.metrics:
            name = called.format(metric.name)
            if name not in logged:
                raise UserError(
                    "bad-plugin",
                    f"task {self.name!r} measures {metric.name!r}, and its {part} logged no {name!r}, but "
                    f"{', '.join(sorted(logged)) or 'nothing'}. Log it, or set logged_as.",
                    task=self.name,
                    option=metric.name,
                    value=name,
                    choices=tuple(sorted(logged)),
                )
            found[metric.name] = logged[name]
            if f"{name}_se" in logged:
                found[f"{metric.name}_se"] = logged[f"{name}_se"]
        return found

    @cached_property
    def _fingerprints(self) -> dict[Any, str]:
        return {}

    def _loaders(self, recipe: Any) -> list[Any]:
        """All loaders of the data."""
        data, found = self.data_module(recipe), []
        data.prepare_data()
        for stage, names in (("fit", ("train_dataloader", "val_dataloader")), ("test", ("test_dataloader",))):
            with seeded(0):
                data.setup(stage)
            found += [getattr(data, name)() for name in names if is_overridden(name, data)]
        return [loader for one in found for loader in _flat(one)]


def _flat(loaders: Any) -> list[Any]:
    """One loader, or those in a list or mapping of them, or in Lightning's own collection."""
    if isinstance(loaders, CombinedLoader):
        return list(loaders.flattened)
    several = loaders.values() if isinstance(loaders, Mapping) else loaders
    return (
        [each for one in several for each in _flat(one)] if isinstance(loaders, Mapping | list | tuple) else [loaders]
    )
