"""Tasks of a LightningModule and LightningDataModule, trained by Lightning's Trainer.

They do not use tasks.training.loop, since only the Trainer knows a module's logged values, hooks, optimizers and
schedules. `tasks.adapters.lightning_trainer` adds what a search needs.
"""

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Annotated, Any, ClassVar

import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.warnings import PossibleUserWarning
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from lightning.pytorch.utilities.combined_loader import CombinedLoader
from lightning.pytorch.utilities.model_helpers import is_overridden

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import load_weights
from search_spaces.support.errors import UserError, reason_of
from search_spaces.support.rank import world_size
from tasks.adapters.lightning_trainer import (
    ContractCallback,
    HandoffCheckpointIO,
    Metrics,
    SeededDeviceStrategy,
    StopTraining,
)
from tasks.adapters.topology_support import check_topology_support
from tasks.base import Diverged, FitResult, Task
from tasks.data.batches import Inputs, map_tensors
from tasks.data.fingerprints import fingerprint_of, iter_examples
from tasks.data.splits import seeded_rng
from tasks.recipes.recipe import Precision
from tasks.recipes.settings import AtLeastOne, Between, NotNegative, UnitInterval, check, recipe_text
from tasks.run import STOP, Run
from tasks.training.checkpoint import Checkpoint
from tasks.training.fabric import make_lightning_quiet
from tasks.training.loop import checkpoint_for, isolated_rng

Bound = Annotated[int, Between(-1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LightningRecipe:
    """The arguments of Lightning's Trainer. A subclass adds fields for the module and data (lr, batch).

    Attributes:
        max_epochs: Passes over the training examples; -1 for no limit.
        max_steps: Optimizer steps; -1 for no limit.
        precision: Precision of the forward pass; "bf16-true" also stores the weights in it.
        gradient_clip_val: Maximum norm of the gradient; 0 disables clipping.
        accumulate_grad_batches: Batches per optimizer step.
        check_val_every_n_epoch: Epochs between two validations.
        val_check_interval: Fraction of such an epoch between two validations; each but the last is reported.
    """

    max_epochs: Bound = -1
    max_steps: Bound = -1
    precision: Precision = "32-true"
    gradient_clip_val: NotNegative = 0.0
    accumulate_grad_batches: AtLeastOne = 1
    check_val_every_n_epoch: AtLeastOne = 1
    val_check_interval: UnitInterval = 1.0

    def __post_init__(self) -> None:
        check(self)
        if max(self.max_epochs, self.max_steps) < 1:
            raise UserError(
                "missing-value",
                f"a recipe needs max_epochs or max_steps, got {self.max_epochs} and {self.max_steps}. Give one.",
                max_epochs=self.max_epochs,
                max_steps=self.max_steps,
            )

    def __str__(self) -> str:
        return recipe_text(self, ("max_epochs",))


class LightningTask(Task):
    """A task of a LightningModule with its LightningDataModule. Its presets are LightningRecipes.

    Lightning's Trainer calls all hooks except those of prediction, on one device. The module's `forward` is counted,
    profiled and exported. A training resumes from what Lightning saves: the module's weights, optimizers, schedules,
    callbacks, and what `on_save_checkpoint` adds, in plain values and tensors. Gradients that a module with manual
    optimization accumulates over batches are not saved.

    With a fixed number of threads, `fit` on a CPU is bitwise reproducible if an epoch's batches depend only on draws
    from torch, NumPy and random. Generators of loaders and samplers are seeded by the run. Draws in `setup`, such as a
    random split, are the same each time.

    Attributes:
        logged_as: Names of a logged metric in validation and in test: accuracy is "val_accuracy" and "test_accuracy".
            Its standard error is the logged value with the suffix "_se". If a step returns a mapping with per-example
            values, [B], the metric is their mean and the standard error is theirs.
    """

    logged_as: ClassVar[tuple[str, str]] = ("val_{}", "test_{}")

    @abstractmethod
    def module(self, architecture: Architecture) -> LightningModule:
        """Build the module on the default device."""

    @abstractmethod
    def data_module(self, recipe: Any) -> LightningDataModule:
        """Return the data for a recipe."""

    def build(self, architecture: Architecture) -> LightningModule:
        """Build the module. Raises UserError for a topology that it lacks."""
        module = self.module(architecture)
        check_topology_support(module, architecture)
        return module

    def build_for_training(self, architecture: Architecture, recipe: Any) -> LightningModule:
        """Build the module for training, which may differ from `build`'s if it takes values of the recipe."""
        return self.build(architecture)

    def trainer_options(self, recipe: Any) -> dict[str, Any]:
        """Return arguments of Lightning's Trainer from the recipe. A subclass may add callbacks and limits."""
        options = {field.name: getattr(recipe, field.name) for field in fields(LightningRecipe)}
        return {**options, "gradient_clip_val": recipe.gradient_clip_val or None}

    def prepare(self) -> None:
        """Check that the module can be trained and evaluated, and prepare the data."""
        if world_size() > 1:
            message = f"task {self.name!r} trains in one process, got {world_size()}. Start it without torchrun."
            raise UserError("unsupported", message, task=self.name, option="processes", value=world_size())
        with torch.device("meta"):
            module: Any = self.module(self.base)
        if not isinstance(module, LightningModule):
            kind = f"{type(module).__module__}.{type(module).__name__}"
            raise UserError(
                "bad-plugin",
                f"task {self.name!r}: module must return a lightning.pytorch.LightningModule, got "
                f"{kind}. Derive it from the class in `lightning`.",
                task=self.name,
                option="module",
                type=kind,
            )
        for step in ("training_step", "validation_step", "configure_optimizers"):
            if not is_overridden(step, module):
                message = f"task {self.name!r}: {type(module).__name__} must define {step}."
                raise UserError("bad-plugin", message, task=self.name, option=step)
        with seeded_rng(0):
            self.data_module(next(iter(self.presets.values()))).prepare_data()

    def example(self) -> Inputs:
        """Return zeros in the shape of the module's `example_input_array`."""
        with torch.device("meta"):
            inputs: Any = self.build(self.base).example_input_array
        if inputs is None:
            raise UserError(
                "bad-plugin",
                f"task {self.name!r} needs an example input to count costs. Define the module's "
                "example_input_array or the task's example().",
                task=self.name,
                option="example_input_array",
            )
        zeros: Inputs = map_tensors(inputs, lambda x: torch.zeros(x.shape, dtype=x.dtype))
        return zeros

    def fingerprint(self, recipe: Any) -> str:
        """Return hex digits of every example, read once for a recipe; override it if that takes long."""
        cache = self._fingerprints
        if recipe not in cache:
            with torch.device("cpu"), seeded_rng(0):
                cache[recipe] = fingerprint_of(map(iter_examples, self._loaders(recipe)))
        return cache[recipe]

    def fit(self, run: Run) -> FitResult:
        return train_by_lightning(self, run, checkpoint_for(self, run))

    def metrics_of(self, logged: Mapping[str, float], part: str) -> dict[str, float]:
        """Select the task's metrics and standard errors among logged values. Raises UserError if one is missing."""
        pattern = self.logged_as[part == "test"]
        metrics = {}
        for metric in self.metrics:
            name = pattern.format(metric.name)
            if name not in logged:
                raise UserError(
                    "bad-plugin",
                    f"task {self.name!r} must log {name!r} in its {part} to measure {metric.name!r}, got "
                    f"{', '.join(sorted(logged)) or 'nothing'}. Log it, or set logged_as.",
                    task=self.name,
                    option=metric.name,
                    value=name,
                    choices=tuple(sorted(logged)),
                )
            metrics[metric.name] = logged[name]
            if f"{name}_se" in logged:
                metrics[f"{metric.name}_se"] = logged[f"{name}_se"]
        return metrics

    @cached_property
    def _fingerprints(self) -> dict[Any, str]:
        return {}

    def _loaders(self, recipe: Any) -> list[Any]:
        data, loaders = self.data_module(recipe), []
        data.prepare_data()
        for stage, names in (("fit", ("train_dataloader", "val_dataloader")), ("test", ("test_dataloader",))):
            with seeded_rng(0):
                data.setup(stage)
            loaders += [getattr(data, name)() for name in names if is_overridden(name, data)]
        return [loader for group in loaders for loader in _flat(group)]


def _flat(loaders: Any) -> list[Any]:
    """Return the loaders in a loader, list, mapping or CombinedLoader."""
    if isinstance(loaders, CombinedLoader):
        return list(loaders.flattened)
    several = loaders.values() if isinstance(loaders, Mapping) else loaders
    return (
        [loader for member in several for loader in _flat(member)]
        if isinstance(loaders, Mapping | list | tuple)
        else [loaders]
    )


def train_by_lightning(task: LightningTask, run: Run, checkpoint: Checkpoint) -> FitResult:
    """Train to the end, or until the run's report returns STOP; see Task.fit."""
    state = checkpoint.load()
    with _said_quietly():
        while True:
            with isolated_rng(run), TemporaryDirectory() as scratch:
                training = LightningTraining(task, run, checkpoint, state, scratch)
                try:
                    return training.fit()
                except Diverged:  # resuming would diverge again
                    checkpoint.clear()
                    raise
                except Exception as error:
                    if state is None or training.callback.began:
                        raise
                    checkpoint.quarantine(reason_of(error))  # its weights have other names: the task's file has changed
            state = None


class LightningTraining:
    """A module, its data and the Trainer for them.

    Args:
        task: Makes module and data.
        run: The run.
        checkpoint: Its checkpoints.
        state: The state to resume from, or None.
        scratch: A folder for files of callbacks, deleted after the training.
    """

    def __init__(self, task: LightningTask, run: Run, checkpoint: Checkpoint, state: Any | None, scratch: str) -> None:
        self.task, self.run, self.checkpoint, self.state = task, run, checkpoint, state
        self.module: LightningModule = task.build_for_training(run.architecture, run.recipe)
        if run.start is not None:
            load_weights(self.module, run.start, "the checkpoint")
        with seeded_rng(0):  # the split of the data does not depend on the run's seed
            self.data = task.data_module(run.recipe)
        curve = [] if state is None else [(step, metrics) for step, metrics in state["curve"]]
        self.callback = ContractCallback(run.seed, self._validation, self._stops, run.on_step, checkpoint.due, curve)
        self.trainer = self._trainer(scratch)

    def fit(self) -> FitResult:
        trainer, callback = self.trainer, self.callback
        try:
            with callback.own_signals():
                if self.run.start is not None and self.state is None:
                    callback.validation_point = 0, self._evaluate("validation")
                with seeded_rng(0):
                    trainer.fit(self.module, datamodule=self.data, ckpt_path=None if self.state is None else "kept")
                steps = trainer.global_step
                callback.check(trainer)
                validation, test = self._evaluate("validation"), self._evaluate("test")
        except StopTraining as stop:
            step, metrics = stop.args[0]
            is_last = stop.args[0] is callback.curve[-1]
            return FitResult(steps=step, metrics=metrics, network=self._network() if is_last else None)
        self.checkpoint.clear()
        return FitResult(steps=steps, metrics=validation, test=test, network=self._network())

    def _trainer(self, scratch: str) -> Trainer:
        run, task = self.run, self.task
        options = {"callbacks": [], **task.trainer_options(run.recipe)}
        training = None if self.state is None else self.state["training"]
        device = run.device
        return Trainer(
            **{
                "logger": False,
                "enable_checkpointing": False,
                "enable_progress_bar": False,
                "enable_model_summary": False,
                **options,
                "callbacks": [self.callback, *options["callbacks"]],
                "default_root_dir": scratch,
                "accelerator": device.type,
                "devices": 1 if device.type == "cpu" else [device.index or 0],
                "strategy": SeededDeviceStrategy(device, run.seed, HandoffCheckpointIO(training, self._keep)),
                "plugins": [LightningEnvironment()],  # workers belong to the search, whatever a cluster's variables say
            }
        )

    def _keep(self, training: dict[str, Any]) -> None:
        self.checkpoint.save({"curve": self.callback.curve, "training": training})

    def _stops(self, step: int, metrics: Metrics) -> bool:
        return self.run.report(step, metrics) is STOP

    def _validation(self, logged: Metrics) -> Metrics:
        return self.task.metrics_of(logged, "validation")

    def _evaluate(self, part: str) -> Metrics:
        """Return the metrics of a part; none for test without a test_step."""
        if part == "test" and not is_overridden("test_step", self.module):
            return {}
        measure = self.trainer.validate if part == "validation" else self.trainer.test
        with seeded_rng(0):
            measure(self.module, datamodule=self.data, verbose=False)
        return self.task.metrics_of(self.callback.logged_metrics(self.trainer), part)

    def _network(self) -> LightningModule:
        """Return the module, detached from its Trainer."""
        self.module.trainer = None
        return self.module


@contextmanager
def _said_quietly() -> Iterator[None]:
    """Suppress Lightning's hints, which are for users of a single training."""
    make_lightning_quiet()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PossibleUserWarning)
        warnings.filterwarnings("ignore", ".*treespec", module="lightning")  # internal to Lightning and torch
        yield
