"""The training loop: advance, report, save checkpoints, and resume.

A step is defined by the training itself: tasks.training.supervised_training, tasks.goal_rl.training.
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
from tasks.base import Diverged, FitResult, Task, plain_numbers
from tasks.run import STOP, Run
from tasks.training.allocator import keep_freed_memory
from tasks.training.checkpoint import Checkpoint

StepMetrics = tuple[int, dict[str, float]]
"""An optimizer step and its metrics."""


class Training(ABC):
    """A step-by-step training.

    Attributes:
        steps: Total optimizer steps; with a time limit, an estimate from the pace so far.
        reports: Steps after which to run an intermediate validation; with a time limit, those so far.
        rank_info: This process's rank among those that train together.
    """

    steps: int
    reports: frozenset[int]
    rank_info: RankInfo = ALONE

    @property
    @abstractmethod
    def step(self) -> int:
        """Optimizer steps taken."""

    @abstractmethod
    def advance(self) -> None:
        """Advance by one or a few steps. Raises Diverged if a checked loss is not finite."""

    @abstractmethod
    def check(self) -> None:
        """Check that all losses so far are finite. Raises Diverged."""

    @abstractmethod
    def measure(self, part: Literal["validation", "test"]) -> Mapping[str, float]:
        """Return the metrics of a part, the same in every rank."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return all state needed to resume, as plain values and tensors. Every rank must call this."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""

    @property
    @abstractmethod
    def network(self) -> nn.Module:
        """The network that is trained."""

    def may_save(self) -> bool:
        """Return whether a checkpoint may be saved after this step."""
        return True

    def extra_metrics(self) -> Mapping[str, float]:
        """Return further facts about the data or the network so far."""
        return {}

    def speeds(self) -> Mapping[str, float]:
        """Return the throughput per second."""
        return {}


def train(run: Run, training: Training, checkpoint: Checkpoint) -> FitResult:
    """Train to the end, or until the run's report returns STOP; see Task.fit."""
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
                training.check()  # so that a checkpoint need not store unchecked losses
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
    """Remove the checkpoints of a training that diverges: resuming would diverge again."""
    try:
        yield
    except Diverged:
        _clear(training, checkpoint)
        raise


def _report_point(run: Run, training: Training, curve: list[StepMetrics]) -> bool:
    """Measure and report; return whether to stop, as the first rank decides."""
    # Convert to floats: a checkpoint with NumPy scalars would not load.
    curve.append((training.step, plain_numbers(training.measure("validation"), "reported metrics")))
    return training.rank_info.first(run.report(*curve[-1]) is STOP)


def _stop_early(training: Training, checkpoint: Checkpoint, curve: list[StepMetrics]) -> FitResult:
    """Return the results of a training stopped at its last report, after saving a checkpoint."""
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
    """Resume an unfinished training and repeat its reports.

    If the answer to a report before the checkpoint is STOP, that report is the result, without its network.
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
    """Load the newest state that all ranks have and return its reports; [] to start from scratch."""
    state = checkpoint.load()
    steps = training.rank_info.gather(None if state is None else state.get("step"))
    if state is None or set(steps) != {state.get("step")}:  # some rank could not read it
        return []
    began, problem = copy.deepcopy(training.state_dict()), ""
    try:
        training.load_state_dict(state["training"])
    except Exception as error:  # weights of other names or shapes raise anything: the task's file was changed
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
    """Return the checkpoints of a run, identified by everything that its numbers depend on."""
    data, start = task.fingerprint(run.recipe), fingerprint(run.start) if run.start else "none"
    task_key = f"{task.name} {task.version} {data}"
    run_key = f"{run.architecture} {run.recipe!r} seed={run.seed} start={start} processes={rank_info.world_size}"
    return Checkpoint(run.folder, f"{task_key} {run_key}")


@contextmanager
def isolated_rng(run: Run) -> Iterator[None]:
    """Seed the global generators and set the number of threads for a run, and restore both afterwards.

    Freed memory is kept in the process meanwhile.
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
