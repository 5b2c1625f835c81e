"""The loop that every training goes through: advance, report, keep, and go on where it stopped.

What a step is, the trainings themselves know: tasks.training.supervised_training, tasks.goal_rl.training.
"""

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from search_spaces.architecture.checkpoint import fingerprint
from search_spaces.support.errors import reason_of
from search_spaces.support.rank import ALONE, RankInfo
from search_spaces.support.threads import cpu_threads
from tasks.base import Diverged, FitResult, Task
from tasks.run import STOP, Run
from tasks.training.allocator import keep_freed_memory
from tasks.training.checkpoint import Checkpoint

StepMetrics = tuple[int, dict[str, float]]
"""A step and the metrics there."""


class Training(ABC):
    """Something that is trained step by step.

    Attributes:
        steps: How many optimiser steps it has in all; by the clock, how many at the pace so far.
        reports: After which steps it is measured on the way; by the clock, those so far.
        rank_info: Which process this is of those that train together.
    """

    steps: int
    reports: frozenset[int]
    rank_info: RankInfo = ALONE

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

    def extra_metrics(self) -> Mapping[str, float]:
        """What else was learnt of data or network so far."""
        return {}

    def speeds(self) -> Mapping[str, float]:
        """What it did in a second."""
        return {}


def train(run: Run, training: Training, checkpoint: Checkpoint) -> FitResult:
    """Train to the end, or to where the run's report says STOP; see Task.fit."""
    curve: list[StepMetrics] = []
    with _clear_on_divergence(training, checkpoint):
        early = _resume(run, training, checkpoint, curve)
        if early is not None:
            return early
        if run.start is not None and not curve and training.step == 0 and _report_point(run, training, curve):
            return _stop_early(training, checkpoint, curve)
        while training.step < training.steps:
            before = training.step
            training.advance()
            run.on_step(training.step, training.steps)
            if training.step != before and training.step in training.reports:
                training.check()
                if _report_point(run, training, curve):
                    return _stop_early(training, checkpoint, curve)
            if training.may_save() and training.rank_info.first(checkpoint.due()):
                training.check()  # so that losses before a checkpoint are known to be finite, and need not be in it
                _save(training, checkpoint, curve)
        training.check()
        fit_result = FitResult(
            steps=training.step,
            metrics=training.measure("validation"),
            test=training.measure("test"),
            extra_metrics=training.extra_metrics(),
            speeds=training.speeds(),
            network=training.network,
        )
        _clear(training, checkpoint)
        return fit_result


@contextmanager
def _clear_on_divergence(training: Training, checkpoint: Checkpoint) -> Iterator[None]:
    """A training that diverged has ended: what it would go on from leads there again."""
    try:
        yield
    except Diverged:
        _clear(training, checkpoint)
        raise


def _report_point(run: Run, training: Training, curve: list[StepMetrics]) -> bool:
    """Measure and report; whether that is enough, which the first process decides."""
    # Plain numbers: a checkpoint with NumPy's would be refused when it is read.
    curve.append((training.step, {name: float(value) for name, value in training.measure("validation").items()}))
    return training.rank_info.first(run.report(*curve[-1]) is STOP)


def _stop_early(training: Training, checkpoint: Checkpoint, curve: list[StepMetrics]) -> FitResult:
    """What a training has found that was stopped at its last point; it can go on from there."""
    _save(training, checkpoint, curve)
    step, metrics = curve[-1]
    return FitResult(
        steps=step,
        metrics=metrics,
        extra_metrics=training.extra_metrics(),
        speeds=training.speeds(),
        network=training.network,
    )


def _save(training: Training, checkpoint: Checkpoint, curve: list[StepMetrics]) -> None:
    if checkpoint.folder is None:
        return
    state = {"step": training.step, "training": training.state_dict(), "curve": curve}
    if training.rank_info.rank == 0:
        checkpoint.save(state)


def _clear(training: Training, checkpoint: Checkpoint) -> None:
    if training.rank_info.rank == 0:
        checkpoint.clear()


def _resume(run: Run, training: Training, checkpoint: Checkpoint, curve: list[StepMetrics]) -> FitResult | None:
    """Take up the state of an unfinished training, and say again what it had reported.

    Where STOP is the answer to a point before the checkpoint, that point is what was found, and its network is gone.
    """
    for step, metrics in _load_curve(training, checkpoint):
        curve.append((step, metrics))
        if training.rank_info.first(run.report(step, metrics) is STOP):
            return FitResult(
                steps=step,
                metrics=metrics,
                extra_metrics=training.extra_metrics() if step == training.step else {},
                network=training.network if step == training.step else None,
            )
    return None


def _load_curve(training: Training, checkpoint: Checkpoint) -> list[StepMetrics]:
    """Load the newest state that all processes have, and give its curve; [] where the training begins at its start."""
    state = checkpoint.load()
    steps = training.rank_info.gather(None if state is None else state.get("step"))
    if state is None or set(steps) != {state.get("step")}:  # one of those that train together could not read it
        return []
    began, problem = copy.deepcopy(training.state_dict()), ""
    try:
        training.load_state_dict(state["training"])
    except Exception as error:  # whatever is made of weights of other names or shapes: the task's file was changed
        problem = reason_of(error)
    problems = [text for text in training.rank_info.gather(problem) if text]
    if not problems:
        curve: list[StepMetrics] = state["curve"]
        return curve
    training.load_state_dict(training.rank_info.first(began))
    if training.rank_info.rank == 0:
        checkpoint.quarantine(problems[0])
    return []


def checkpoint_for(task: Task, run: Run, rank_info: RankInfo = ALONE) -> Checkpoint:
    """The checkpoints of a run, told apart by all that its numbers depend on."""
    data, start = task.fingerprint(run.recipe), fingerprint(run.start) if run.start else "none"
    task_key = f"{task.name} {task.version} {data}"
    run_key = f"{run.architecture} {run.recipe!r} seed={run.seed} start={start} processes={rank_info.world_size}"
    return Checkpoint(run.folder, f"{task_key} {run_key}")


@contextmanager
def isolated_rng(run: Run) -> Iterator[None]:
    """Seed the generators that networks are initialised from, use as many threads as the run lends, and undo both.

    What is freed meanwhile is kept until then.
    """
    python, numpy, devices = random.getstate(), np.random.get_state(), range(torch.cuda.device_count())
    with keep_freed_memory(), cpu_threads(run.threads), torch.random.fork_rng(devices=devices):
        random.seed(run.seed)
        np.random.seed(run.seed % 2**32)
        torch.manual_seed(run.seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
