"""Lightning's Trainer under a task's contract: seeded draws, reports, checkpoints and STOP.

All else is Lightning's: hooks, logged metrics, schedules, precision, several optimizers.
"""

import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any

import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor

from tasks.base import Diverged
from tasks.data.seeded_batches import SeededBatches
from tasks.data.splits import derived_seed
from tasks.run import StepCallback
from tasks.training.loop import StepMetrics
from tasks.training.supervised import means_and_errors

_CHECK_INTERVAL = 20
"""Batches between checks of the loss; each check waits for the accelerator."""

_NOT_OURS = ("hyper_parameters", "datamodule_hyper_parameters")
"""Not saved: the task makes module and data again, and these may not be plain values."""

Metrics = dict[str, float]


class StopTraining(Exception):
    """A report returned STOP; the argument is the reported point."""


class SeededDeviceStrategy(SingleDeviceStrategy):
    """A strategy on one device that seeds the draws of every loader."""

    def __init__(self, device: torch.device, seed: int, checkpoint_io: CheckpointIO) -> None:
        super().__init__(device, checkpoint_io=checkpoint_io)
        self._seed = seed

    def process_dataloader(self, dataloader: object) -> object:
        """Return the loader with seeded draws: by epoch and batch in training, the same each time in evaluation."""
        trainer = self.lightning_module.trainer if self.lightning_module else None
        if trainer is None or not trainer.training:
            return SeededBatches(dataloader, 0)

        def position() -> tuple[int, int]:
            loop: Any = trainer.fit_loop
            return loop.epoch_progress.current.processed, loop.epoch_loop.batch_progress.current.completed

        return SeededBatches(dataloader, self._seed, position)


class HandoffCheckpointIO(CheckpointIO):
    """Checkpoint IO that passes the Trainer's checkpoints to a callback and returns a given state.

    Args:
        state: The state to resume from, or None.
        keep: Called with what the Trainer saves.
    """

    def __init__(self, state: Mapping[str, Any] | None, keep: Callable[[dict[str, Any]], None]) -> None:
        self._state, self._keep = state, keep

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Pass the checkpoint on, without what the task makes again."""
        self._keep({name: value for name, value in checkpoint.items() if name not in _NOT_OURS})

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        assert self._state is not None
        return dict(self._state)

    def remove_checkpoint(self, path: Any) -> None:
        """Do nothing: the owner of the checkpoint removes it."""


class ContractCallback(Callback):
    """A callback that reports, saves checkpoints and seeds draws.

    Between two optimizer steps it reports the last validation and saves a checkpoint if due.

    Args:
        seed: Seed of the network's draws.
        metrics: Selects the metrics among the logged values of a validation.
        stops: Called with a step and its metrics; returns whether to stop.
        on_step: Called with the progress of the training.
        due: Returns whether a checkpoint is due.
        curve: Earlier reports; they are repeated, and new ones appended.

    Attributes:
        began: Whether the training has started or resumed.
        validation_point: A point to report before the next step, or None.
    """

    def __init__(
        self,
        seed: int,
        metrics: Callable[[Metrics], Metrics],
        stops: Callable[[int, Metrics], bool],
        on_step: StepCallback,
        due: Callable[[], bool],
        curve: list[StepMetrics],
    ) -> None:
        self.seed, self.metrics, self.stops, self.due, self.curve = seed, metrics, stops, due, curve
        self.on_step, self.steps = on_step, inf
        self.began = False
        self.validation_point: StepMetrics | None = None
        self._handlers = handlers()
        self._exception: BaseException | None = None
        self._loss_sum: Any = 0.0
        self._each: dict[str, list[Tensor]] = defaultdict(list)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Seed the module's further draws, after the data is split in the same way for all seeds."""
        torch.manual_seed(derived_seed(self.seed, "setup"))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Repeat earlier reports."""
        set_handlers(self._handlers)
        self.began, self.steps = True, trainer.estimated_stepping_batches
        for point in self.curve:
            if self.stops(*point):
                raise StopTraining(point)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Report and save between two steps, and seed the network's draws in the next one."""
        if trainer.fit_loop.restarting:
            _forget_the_restart(trainer)
        if batch_idx % trainer.accumulate_grad_batches == 0:
            point, self.validation_point = self.validation_point, None
            stops = point is not None and self._stops(trainer, point)
            if stops or self.due():
                self.check(trainer)
                trainer.save_checkpoint("kept")
            if stops:
                raise StopTraining(point)
        torch.manual_seed(derived_seed(self.seed, "network", trainer.current_epoch, batch_idx))

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Show progress, sum the losses, and check them from time to time."""
        if 0 < self.steps < inf:  # a training with only a time limit has no number of steps
            self.on_step(trainer.global_step, int(self.steps))
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if isinstance(loss, Tensor):
            self._loss_sum = self._loss_sum + loss.detach()
        if batch_idx % _CHECK_INTERVAL == 0:
            self.check(trainer)

    def check(self, trainer: Trainer) -> None:
        """Check that all losses so far are finite. Raises Diverged."""
        if not torch.isfinite(torch.as_tensor(self._loss_sum)).all():
            raise Diverged(f"the loss is not finite at step {trainer.global_step}")

    def on_sanity_check_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check before the training that every metric is logged."""
        self.metrics(self.logged_metrics(trainer))

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        set_handlers(self._handlers)
        self._each.clear()
        torch.manual_seed(derived_seed(self.seed, "measured"))

    on_test_start = on_validation_start

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Collect returned per-example values."""
        if isinstance(outputs, Mapping):
            for name, values in outputs.items():
                if isinstance(values, Tensor) and values.ndim == 1:
                    self._each[str(name)].append(values.detach().cpu())

    on_test_batch_end = on_validation_batch_end

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Store the validated point, to report before the next step."""
        if trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking:
            self.validation_point = trainer.global_step, self.metrics(self.logged_metrics(trainer))

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._exception = exception

    def logged_metrics(self, trainer: Trainer) -> Metrics:
        """Return the logged values; for per-example values the mean and its standard error."""
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        return metrics | means_and_errors({name: torch.cat(values) for name, values in self._each.items()})

    @contextmanager
    def own_signals(self) -> Iterator[None]:
        """Restore signal handlers: Lightning takes a last step at SIGTERM, and exits at Ctrl-C."""
        try:
            yield
        except SystemExit:
            if isinstance(self._exception, KeyboardInterrupt):
                raise self._exception from None
            raise
        finally:
            set_handlers(self._handlers)

    def _stops(self, trainer: Trainer, point: StepMetrics) -> bool:
        self.check(trainer)
        self.curve.append(point)
        return self.stops(*point)


def _forget_the_restart(trainer: Trainer) -> None:
    """Undo two effects of Lightning's restart: it counts a fetched batch twice, and would skip plateau schedules."""
    batches = trainer.fit_loop.epoch_loop.batch_progress.total
    batches.ready = batches.completed + 1
    trainer.fit_loop.restarting = False


Handlers = Mapping[int, Any]


def handlers() -> Handlers:
    """Return the current handlers of SIGINT and SIGTERM."""
    return {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


def set_handlers(meanings: Handlers) -> None:
    """Set signal handlers, if this is the main thread."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in meanings.items():
            signal.signal(number, handler)
