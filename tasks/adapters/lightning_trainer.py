"""Lightning's Trainer, made to keep the contract of a training: draws by the seed, reports, checkpoints, STOP.

All else is its own: hooks, logged metrics, schedules, precision, several optimisers.
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
from tasks.training.supervised import means

_LOOK_EVERY = 20
"""Batches between looks at the loss: a look waits for the accelerator."""

_NOT_OURS = ("hyper_parameters", "datamodule_hyper_parameters")
"""The task makes module and data anew, and what these hold may be no plain values."""

Metrics = dict[str, float]


class StopTraining(Exception):
    """The report of a point said STOP; its argument is the point."""


class OneDevice(SingleDeviceStrategy):
    """The device that was lent; every loader's draws are by the run's seed."""

    def __init__(self, device: torch.device, seed: int, checkpoint_io: CheckpointIO) -> None:
        super().__init__(device, checkpoint_io=checkpoint_io)
        self._seed = seed

    def process_dataloader(self, dataloader: object) -> object:
        """The loader with its draws seeded: of a training by epoch and batch, of a measurement always alike."""
        trainer = self.lightning_module.trainer if self.lightning_module else None
        if trainer is None or not trainer.training:
            return SeededBatches(dataloader, 0)

        def position() -> tuple[int, int]:
            loop: Any = trainer.fit_loop
            return loop.epoch_progress.current.processed, loop.epoch_loop.batch_progress.current.completed

        return SeededBatches(dataloader, self._seed, position)


class InCheckpoint(CheckpointIO):
    """Gives what the Trainer saves to whoever keeps it, and the Trainer what was kept.

    Args:
        state: What to go on from, or None.
        keep: Is given what the Trainer saves.
    """

    def __init__(self, state: Mapping[str, Any] | None, keep: Callable[[dict[str, Any]], None]) -> None:
        self._state, self._keep = state, keep

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Hand it over, without what the task makes anew."""
        self._keep({name: value for name, value in checkpoint.items() if name not in _NOT_OURS})

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """What was kept."""
        assert self._state is not None
        return dict(self._state)

    def remove_checkpoint(self, path: Any) -> None:
        """Nothing: whoever keeps it removes it."""


class Course(Callback):
    """What the contract asks of a training on its way.

    Between two steps, where nothing is half done, it tells what was validated and has a checkpoint kept that is due.

    Args:
        seed: Of what the network draws.
        metrics: Finds the metrics in what was logged in a validation.
        stops: Is told a step and the metrics there; answers whether to stop.
        on_step: Is told how far the training is.
        due: Whether it is time for a checkpoint.
        curve: What was reported before; it is told again, and grows.

    Attributes:
        began: Whether the training has begun, or has been taken up.
        validation_point: A point that is reported before the next step, if there is one.
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
        """The data is laid out, alike for all seeds; what the module still draws is of the run's seed."""
        torch.manual_seed(derived_seed(self.seed, "setup"))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Say again what was reported before."""
        listen(self._handlers)
        self.began, self.steps = True, trainer.estimated_stepping_batches
        for point in self.curve:
            if self.stops(*point):
                raise StopTraining(point)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Report and keep, between two steps; and seed what the network draws in the next one."""
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
        """Tell how far it is, add up the losses, and look at them from time to time."""
        if 0 < self.steps < inf:  # there may be no end but by the clock
            self.on_step(trainer.global_step, int(self.steps))
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if isinstance(loss, Tensor):
            self._loss_sum = self._loss_sum + loss.detach()
        if batch_idx % _LOOK_EVERY == 0:
            self.check(trainer)

    def check(self, trainer: Trainer) -> None:
        """Look at all losses so far. Raises Diverged where one is not finite."""
        if not torch.isfinite(torch.as_tensor(self._loss_sum)).all():
            raise Diverged(f"the loss is not finite, at step {trainer.global_step}")

    def on_sanity_check_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """See before any training that every metric is there."""
        self.metrics(self.logged_metrics(trainer))

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the last measurement."""
        self._begin_measuring()

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the last measurement."""
        self._begin_measuring()

    def on_validation_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, *_: Any) -> None:
        """Keep what was returned of each example."""
        self._gather(outputs)

    def on_test_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, *_: Any) -> None:
        """Keep what was returned of each example."""
        self._gather(outputs)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Note the point."""
        if trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking:
            self.validation_point = trainer.global_step, self.metrics(self.logged_metrics(trainer))

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Note what ended it."""
        self._exception = exception

    def logged_metrics(self, trainer: Trainer) -> Metrics:
        """What was logged; and of what was returned of each example, the mean and its standard error."""
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        return metrics | means({name: torch.cat(values) for name, values in self._each.items()})

    @contextmanager
    def own_signals(self) -> Iterator[None]:
        """Signals mean what they meant before: Lightning takes a last step at SIGTERM, and makes an exit of Ctrl-C."""
        try:
            yield
        except SystemExit:
            if isinstance(self._exception, KeyboardInterrupt):
                raise self._exception from None
            raise
        finally:
            listen(self._handlers)

    def _stops(self, trainer: Trainer, point: StepMetrics) -> bool:
        self.check(trainer)
        self.curve.append(point)
        return self.stops(*point)

    def _gather(self, outputs: Any) -> None:
        if isinstance(outputs, Mapping):
            for name, values in outputs.items():
                if isinstance(values, Tensor) and values.ndim == 1:
                    self._each[str(name)].append(values.detach().cpu())

    def _begin_measuring(self) -> None:
        listen(self._handlers)
        self._each.clear()
        torch.manual_seed(derived_seed(self.seed, "measured"))


def _forget_the_restart(trainer: Trainer) -> None:
    """Lightning counts the batch twice that it had fetched, and would leave out a schedule that waits for a plateau."""
    batches = trainer.fit_loop.epoch_loop.batch_progress.total
    batches.ready = batches.completed + 1
    trainer.fit_loop.restarting = False


Handlers = Mapping[int, Any]


def handlers() -> Handlers:
    """What SIGINT and SIGTERM mean at the moment."""
    return {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


def listen(meanings: Handlers) -> None:
    """Have signals mean this."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in meanings.items():
            signal.signal(number, handler)
