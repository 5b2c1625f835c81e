"""Learning from examples: a task is its data, its networks and its recipes; training is written once, here.

Shapes: B = batch, ... = one example's axes.
"""

import logging
import os
import random
import signal
import threading
import warnings
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, Strategy
from torch import Tensor, nn

from search_spaces.architecture import Architecture
from search_spaces.checkpoint import fingerprint, load_weights
from tasks.base import Fitted, Report, Task
from tasks.recipe import Recipe
from tasks.splits import Part, Splits
from tasks.training import Job, Run, found


class SupervisedTask(Task):
    """A task with examples of inputs and their answers. Its presets are Recipes.

    With one number of threads, `fit` gives the same numbers on a CPU to the last bit, in any process; a GPU's
    kernels may add in another order each time. The generators it draws from are left as they were found.
    """

    @abstractmethod
    def load(self) -> Splits:
        """Read the data. Raises UserError where it is not there."""

    @abstractmethod
    def loss(self, outputs: Tensor, targets: Tensor, recipe: Any) -> Tensor:
        """What training makes smaller: outputs and targets of a batch to a number, []."""

    @abstractmethod
    def measure(self, outputs: Tensor, targets: Tensor) -> Mapping[str, Tensor]:
        """What metrics are made of, for each example, [B]."""

    @abstractmethod
    def summary(self, measured: Mapping[str, Tensor]) -> Mapping[str, float]:
        """The metrics of a part, with their standard errors, from what was measured of each of its examples."""

    def training_form(self, architecture: Architecture, recipe: Any) -> nn.Module:
        """The network as it is trained: another than `build` makes where the recipe drops paths."""
        return self.build(architecture)

    @cached_property
    def splits(self) -> Splits:
        """The data, read once."""
        with torch.device("cpu"):  # whoever builds a network on meta may be the first to ask how many classes there are
            return self.load()

    def splits_for(self, recipe: Any) -> Splits:
        """The data as a recipe wants it: `splits`, unless a task cuts or makes it by the recipe."""
        return self.splits

    def prepare(self) -> None:
        """Read the data."""
        _ = self.splits

    def inputs(self, preset: str) -> tuple[Tensor, ...]:
        """The first validation batch of a preset."""
        recipe = self.presets[preset]
        inputs, _ = next(self.splits_for(recipe).measured("validation", recipe, torch.device("cpu")))
        return (inputs,)

    def fit(self, architecture: Architecture, preset: str, seed: int, folder: Path | None, report: Report) -> Fitted:
        """Train by the preset's recipe and measure. See Task.fit."""
        return self.fit_from(None, architecture, preset, seed, folder, report)

    def fit_from(
        self,
        weights: Mapping[str, Tensor] | None,
        architecture: Architecture,
        preset: str,
        seed: int,
        folder: Path | None,
        report: Report,
    ) -> Fitted:
        """Train these weights further, or newly drawn ones where they are None. See Task.fit_from."""
        recipe: Recipe = self.presets[preset].shared_by(processes())
        splits = self.splits_for(recipe)
        with _silence(), _draws(seed), _interrupts():
            trainer = _trainer(recipe, recipe.total_steps(splits.examples))
            job = Job(
                splits=splits,
                recipe=recipe,
                seed=seed,
                loss=lambda outputs, targets: self.loss(outputs, targets, recipe),
                measure=lambda model: self._measured(model, "validation", recipe, trainer),
                report=report,
                identity=f"{self.name} {self.version} {splits.fingerprint} {architecture} {recipe!r} seed={seed}"
                + (f" from {fingerprint(weights)}" if weights else ""),
                checkpoint=folder / "last.ckpt" if folder else None,
            )
            model = self.training_form(architecture, recipe)
            if weights is not None:
                load_weights(model, weights, "the checkpoint")
                model.to(trainer.strategy.root_device)
                report(0, job.measure(model))
            if recipe.compile:
                model.compile()  # in place: its parameters keep their names
            run = Run(model, job)
            trainer.fit(run, ckpt_path=found(job), weights_only=True)
            run.to(trainer.strategy.root_device)
            fitted = Fitted(
                steps=run.steps,
                data=splits.fingerprint,
                validation={
                    **self._measured(run.model, "validation", recipe, trainer),
                    **splits.remarks("validation", recipe, run.progress),
                },
                test=self._measured(run.model, "test", recipe, trainer),
                network=run.model,
            )
        if job.checkpoint is not None:
            job.checkpoint.unlink(missing_ok=True)
        return fitted

    @torch.no_grad()
    def _measured(self, model: nn.Module, part: Part, recipe: Recipe, trainer: Trainer) -> dict[str, float]:
        """Every metric of a part, and its standard error."""
        batches: dict[str, list[Tensor]] = defaultdict(list)
        model.eval()
        for inputs, targets in self.splits_for(recipe).measured(part, recipe, trainer.strategy.root_device):
            with trainer.precision_plugin.forward_context():
                outputs = model(inputs)
            for name, each in self.measure(outputs.float(), targets).items():
                batches[name].append(each.cpu())
        model.train()
        return dict(self.summary({name: torch.cat(each) for name, each in batches.items()}))


def means(measured: Mapping[str, Tensor]) -> dict[str, float]:
    """Each metric's mean over examples, [examples], and its standard error."""
    summary = {}
    for name, values in measured.items():
        each = values.double()
        summary[name] = each.mean().item()
        # For shares, 0 or 1 an example, this is sqrt(p (1 - p) / n).
        summary[f"{name}_se"] = (each.var(correction=0) / len(each)).sqrt().item()
    return summary


def processes() -> int:
    """How many processes train one network together: as many as torchrun started."""
    return int(os.environ["WORLD_SIZE"]) if torch.distributed.is_torchelastic_launched() else 1


def _strategy(recipe: Recipe) -> Strategy:
    """All measure and initialise alike; ranks differ in the examples that they train on."""
    if recipe.sharing == "fsdp":
        return ModelParallelStrategy(processes(), 1, save_distributed_checkpoint=False)
    return DDPStrategy()


def _trainer(recipe: Recipe, steps: int) -> Trainer:
    cuda = recipe.accelerator == "auto" and torch.cuda.is_available()
    shared = processes() > 1
    return Trainer(
        accelerator="cuda" if cuda else "cpu",
        # One process whatever a cluster's variables say, unless torchrun started more: workers are the search's matter.
        devices=int(os.environ["LOCAL_WORLD_SIZE"]) if shared else 1,
        num_nodes=processes() // int(os.environ["LOCAL_WORLD_SIZE"]) if shared else 1,
        strategy=_strategy(recipe) if shared else "auto",
        plugins=[TorchElasticEnvironment() if shared else LightningEnvironment()],
        precision=recipe.precision,
        max_steps=steps,
        accumulate_grad_batches=recipe.accumulate,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


@contextmanager
def _silence() -> Iterator[None]:
    """Lightning says nothing on the terminal; what the task's own code has to say passes."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="lightning")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def _draws(seed: int) -> Iterator[None]:
    """Seed the generators that networks are initialised from, and put them back as they were."""
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


@contextmanager
def _interrupts() -> Iterator[None]:
    """Ctrl-C is a KeyboardInterrupt: Lightning makes it an exit, and turns a further one off."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as ended:
        if isinstance(ended.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)
