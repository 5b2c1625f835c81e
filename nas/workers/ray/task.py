"""The task of a Ray worker: one evaluation, on a node that shares the coordinator's files."""

import os
import platform
import warnings
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend.context import get_context

from nas.environment.debugging import DEBUG
from nas.request.job import EvaluationJob
from nas.workers.local_processes import evaluate_within
from nas.workers.processes import end_forks_with_this, hide_working_directory, prepare_process
from nas.workers.resources import processes_for
from results.records.row import Row
from search_spaces.support.errors import Notice, UserError


@dataclass(frozen=True, slots=True)
class Assignment:
    """An evaluation for a worker.

    Attributes:
        job: The job, with absolute paths.
        attempt: Name of this attempt.
        memory: Bytes that it may allocate in addition to those at its start, or None.
        gpus: Number of GPUs.
        debug: Whether to print tracebacks.
    """

    job: EvaluationJob
    attempt: str
    memory: int | None
    gpus: float
    debug: bool


def evaluate_assignment(assignment: Assignment) -> tuple[Row, list[Notice]]:
    """Return the Row of an evaluation, and its notices.

    It runs in this process; with a memory limit in a child process, since Ray's own does not end cleanly without
    memory. If the child dies, this process ends too, which the coordinator handles as a death.

    Raises:
        UserError: This node lacks the shared folder, or `nas.evaluation.evaluate.evaluate` raised it.
    """
    _prepare(assignment.gpus > 0, assignment.debug)
    if assignment.memory is None:
        return _evaluate_and_note(assignment)
    with hide_working_directory(), _own_process() as process:
        try:
            outcome: tuple[Row, list[Notice]] = process.submit(_evaluate_and_note, assignment).result()
        except BrokenProcessPool:
            os._exit(1)
        return outcome


def _own_process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, context=get_context("loky"), initializer=prepare_process, initargs=(os.getpid(),))


def _evaluate_and_note(assignment: Assignment) -> tuple[Row, list[Notice]]:
    job = assignment.job
    with _name_node(), _notices() as notices:
        _begin(job, assignment.attempt)
        return evaluate_within(job, processes_for(assignment.gpus), assignment.memory), notices


def stamp_of(job: EvaluationJob, attempt: str) -> Path:
    """Return the file beside a job's folder that the coordinator creates for an attempt and the worker marks."""
    return Path(f"{job.folder}.{attempt}")


def has_begun(job: EvaluationJob, attempt: str) -> bool:
    """Return whether a worker has started an attempt."""
    try:
        return stamp_of(job, attempt).read_bytes() == _BEGIN_MARK
    except OSError:
        return False


_BEGIN_MARK = b"begun\n"


def _begin(job: EvaluationJob, attempt: str) -> None:
    """Mark the start of the evaluation on the shared storage."""
    stamp = stamp_of(job, attempt)
    try:
        with stamp.open("r+b") as file:  # fails if the file is missing
            file.write(_BEGIN_MARK)
    except OSError as error:
        raise UserError(
            "missing-file",
            f"{stamp.parent} is not the coordinator's folder ({error.strerror}). The store must be on storage that all "
            "nodes share. Give --storage there.",
            option="--storage",
            path=str(stamp.parent),
        ) from None


@cache  # once a process: without GPUs, Ray reuses it for several evaluations
def _prepare(has_gpus: bool, debug: bool) -> None:
    """Set up the process before anything uses CUDA."""
    end_forks_with_this()
    if debug:
        os.environ[DEBUG] = "1"
    if not has_gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@contextmanager
def _name_node() -> Iterator[None]:
    """Add the node's name to UserErrors."""
    try:
        yield
    except UserError as error:
        fields = error.fields | {"node": platform.node()}
        raise UserError(error.kind, f"on node {platform.node()}: {error}", **fields) from error


@contextmanager
def _notices() -> Iterator[list[Notice]]:
    """Collect notices for the coordinator, which shows them."""
    notices: list[Notice] = []
    with warnings.catch_warnings():
        show = warnings.showwarning

        def keep(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
            if isinstance(message, Notice):
                notices.append(message)
            else:
                show(message, category, *place, **rest)

        warnings.showwarning = keep
        yield notices
