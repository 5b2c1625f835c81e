"""The loop that every training goes through: advance, report, keep, and go on where it stopped.

What a step is, the trainings themselves know: tasks.supervised_training, tasks.goal_rl.training.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from search_spaces.checkpoint import fingerprint
from tasks.base import Fitted, Task
from tasks.checkpoint import Checkpoint
from tasks.processes import ALONE, Share
from tasks.run import STOP, Run

Point = tuple[int, dict[str, float]]
"""A step and the metrics there."""


class Training(ABC):
    """Something that is trained step by step.

    Attributes:
        steps: How many optimiser steps it has in all.
        reports: After which steps it is measured on the way.
        share: Which process this is of those that train together.
    """

    steps: int
    reports: frozenset[int]
    share: Share = ALONE

    @property
    @abstractmethod
    def step(self) -> int:
        """Optimiser steps taken."""

    @abstractmethod
    def advance(self) -> None:
        """Go on by a step, or by a few. Raises Diverged where a loss that was looked at is not finite."""

    @abstractmethod
    def check(self) -> None:
        """Look at all losses so far. Raises Diverged where one is not finite."""

    @abstractmethod
    def measure(self, part: Literal["validation", "test"]) -> Mapping[str, float]:
        """The metrics of a part, the same in every process."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """All that it goes on from: plain values and tensors. Every process must ask."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` gave."""

    @property
    @abstractmethod
    def network(self) -> nn.Module:
        """What is trained."""

    def may_save(self) -> bool:
        """Whether this step is one to ask at whether a checkpoint is due."""
        return True

    def measures(self) -> Mapping[str, float]:
        """What else was learnt of data or network so far."""
        return {}

    def speeds(self) -> Mapping[str, float]:
        """What it did in a second."""
        return {}


def train(run: Run, training: Training, checkpoint: Checkpoint) -> Fitted:
    """Train to the end, or to where the run's report says STOP; see Task.fit."""
    curve: list[Point] = []
    stopped = _resumed(run, training, checkpoint, curve)
    if stopped is not None:
        return stopped
    if run.start is not None and not curve and training.step == 0 and _stops(run, training, curve):
        return _stopped(training, checkpoint, curve)
    while training.step < training.steps:
        before = training.step
        training.advance()
        if training.step != before and training.step in training.reports:
            training.check()
            if _stops(run, training, curve):
                return _stopped(training, checkpoint, curve)
        if training.may_save() and training.share.first(checkpoint.due()):
            _save(training, checkpoint, curve)
    training.check()
    fitted = Fitted(
        steps=training.step,
        metrics=training.measure("validation"),
        test=training.measure("test"),
        measures=training.measures(),
        speeds=training.speeds(),
        network=training.network,
    )
    if training.share.rank == 0:
        checkpoint.clear()
    return fitted


def _stops(run: Run, training: Training, curve: list[Point]) -> bool:
    """Measure and report; whether that is enough, which the first process decides."""
    curve.append((training.step, dict(training.measure("validation"))))
    return training.share.first(run.report(*curve[-1]) is STOP)


def _stopped(training: Training, checkpoint: Checkpoint, curve: list[Point]) -> Fitted:
    """What a training has found that was stopped at its last point; it can go on from there."""
    _save(training, checkpoint, curve)
    step, metrics = curve[-1]
    return Fitted(
        steps=step,
        metrics=metrics,
        measures=training.measures(),
        speeds=training.speeds(),
        network=training.network,
    )


def _save(training: Training, checkpoint: Checkpoint, curve: list[Point]) -> None:
    if checkpoint.folder is None:
        return
    state = {"training": training.state_dict(), "curve": curve}
    if training.share.rank == 0:
        checkpoint.save(training.step, state)


def _resumed(run: Run, training: Training, checkpoint: Checkpoint, curve: list[Point]) -> Fitted | None:
    """Take up the state of an unfinished training, and say again what it had reported.

    Where STOP is the answer to a point before the checkpoint, that point is what was found, and its network is gone.
    """
    kept = checkpoint.load()
    lengths = training.share.gather(-1 if kept is None else len(kept["curve"]))
    if kept is None or set(lengths) != {len(kept["curve"])}:  # one of those that train together could not read it
        return None
    training.load_state_dict(kept["training"])
    for step, metrics in kept["curve"]:
        curve.append((step, metrics))
        if training.share.first(run.report(step, metrics) is STOP):
            return Fitted(
                steps=step,
                metrics=metrics,
                measures=training.measures() if step == training.step else {},
                network=training.network if step == training.step else None,
            )
    return None


def checkpoint_of(task: Task, run: Run, share: Share = ALONE) -> Checkpoint:
    """The checkpoints of a run, told apart by all that its numbers depend on."""
    data, start = task.fingerprint(run.recipe), fingerprint(run.start) if run.start else "none"
    of_task = f"{task.name} {task.version} {data}"
    of_run = f"{run.architecture} {run.recipe!r} seed={run.seed} start={start} processes={share.of}"
    return Checkpoint(run.folder, f"{of_task} {of_run}")


@contextmanager
def apart(run: Run) -> Iterator[None]:
    """Seed the generators that networks are initialised from, use as many threads as the run lends, and undo both."""
    python, numpy, threads = random.getstate(), np.random.get_state(), torch.get_num_threads()
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        random.seed(run.seed)
        np.random.seed(run.seed % 2**32)
        torch.manual_seed(run.seed)
        torch.set_num_threads(run.threads)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            torch.set_num_threads(threads)
