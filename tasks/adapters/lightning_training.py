"""One training of somebody's LightningModule, from a run to what was found."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.warnings import PossibleUserWarning
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities.model_helpers import is_overridden

from search_spaces.architecture.checkpoint import load_weights
from search_spaces.support.errors import reason_of
from tasks.adapters.lightning_trainer import Course, InCheckpoint, Metrics, OneDevice, Stopped
from tasks.base import Diverged, Fitted
from tasks.data.splits import seeded
from tasks.run import STOP, Run
from tasks.training.checkpoint import Checkpoint
from tasks.training.fabric import make_lightning_quiet
from tasks.training.loop import apart

if TYPE_CHECKING:
    from tasks.adapters.lightning_module import LightningTask


def train_by_lightning(task: "LightningTask", run: Run, checkpoint: Checkpoint) -> Fitted:
    """Train to the end, or to where the run's report says STOP; see Task.fit."""
    kept = checkpoint.load()
    with _said_quietly():
        while True:
            with apart(run), TemporaryDirectory() as scratch:
                training = LightningTraining(task, run, checkpoint, kept, scratch)
                try:
                    return training.fitted()
                except Diverged:  # what it would go on from leads there again
                    checkpoint.clear()
                    raise
                except Exception as error:
                    if kept is None or training.course.began:
                        raise
                    checkpoint.set_aside(reason_of(error))  # its weights have other names: the task's file was changed
            kept = None


class LightningTraining:
    """A module, its data and the Trainer that brings them together.

    Args:
        task: Makes module and data.
        run: Whose training it is.
        checkpoint: Where it is kept.
        kept: What to go on from, or None.
        scratch: A folder for files that callbacks may write; it goes with the training.
    """

    def __init__(self, task: "LightningTask", run: Run, checkpoint: Checkpoint, kept: Any | None, scratch: str) -> None:
        self.task, self.run, self.checkpoint, self.kept = task, run, checkpoint, kept
        self.module: LightningModule = task.training_form(run.architecture, run.recipe)
        if run.start is not None:
            load_weights(self.module, run.start, "the checkpoint")
        with seeded(0):  # how data is cut is no matter of the run's seed
            self.data = task.data_module(run.recipe)
        curve = [] if kept is None else [(step, metrics) for step, metrics in kept["curve"]]
        self.course = Course(run.seed, self._validation, self._stops, run.advanced, checkpoint.due, curve)
        self.trainer = self._trainer(scratch)

    def fitted(self) -> Fitted:
        """Train and measure."""
        trainer, course = self.trainer, self.course
        try:
            with course.own_signals():
                if self.run.start is not None and self.kept is None:
                    course.validated = 0, self._measured("validation")
                with seeded(0):
                    trainer.fit(self.module, datamodule=self.data, ckpt_path=None if self.kept is None else "kept")
                steps = trainer.global_step
                course.check(trainer)
                found = self._measured("validation"), self._measured("test")
        except Stopped as stopped:
            step, metrics = stopped.args[0]
            is_last = stopped.args[0] is course.curve[-1]
            return Fitted(steps=step, metrics=metrics, network=self._network() if is_last else None)
        self.checkpoint.clear()
        return Fitted(steps=steps, metrics=found[0], test=found[1], network=self._network())

    def _trainer(self, scratch: str) -> Trainer:
        run, task = self.run, self.task
        options = {"callbacks": [], **task.trainer_options(run.recipe)}
        training = None if self.kept is None else self.kept["training"]
        device = run.device
        return Trainer(
            **{
                "logger": False,
                "enable_checkpointing": False,
                "enable_progress_bar": False,
                "enable_model_summary": False,
                **options,
                "callbacks": [self.course, *options["callbacks"]],
                "default_root_dir": scratch,
                "accelerator": device.type,
                "devices": 1 if device.type == "cpu" else [device.index or 0],
                "strategy": OneDevice(device, run.seed, InCheckpoint(training, self._keep)),
                "plugins": [
                    LightningEnvironment()
                ],  # workers are the search's matter, whatever a cluster's variables say
            }
        )

    def _keep(self, training: dict[str, Any]) -> None:
        self.checkpoint.save({"curve": self.course.curve, "training": training})

    def _stops(self, step: int, metrics: Metrics) -> bool:
        return self.run.report(step, metrics) is STOP

    def _validation(self, logged: Metrics) -> Metrics:
        return self.task.metrics_of(logged, "validation")

    def _measured(self, part: str) -> Metrics:
        """The metrics of a part; none of a test that the module does not have."""
        if part == "test" and not is_overridden("test_step", self.module):
            return {}
        measure = self.trainer.validate if part == "validation" else self.trainer.test
        with seeded(0):
            measure(self.module, datamodule=self.data, verbose=False)
        return self.task.metrics_of(self.course.measured(self.trainer), part)

    def _network(self) -> LightningModule:
        """The module, without what trained it."""
        self.module.trainer = None
        return self.module


@contextmanager
def _said_quietly() -> Iterator[None]:
    """Without Lightning's hints, which are for somebody who starts one training."""
    make_lightning_quiet()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PossibleUserWarning)
        warnings.filterwarnings("ignore", ".*treespec", module="lightning")  # its own affair with torch
        yield
