"""Evaluations on a Ray cluster: a node that dies costs its evaluations the time since their last checkpoints."""

import os
import pickle
import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import ray
from ray.exceptions import (
    LocalRayletDiedError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayError,
    RayTaskError,
    WorkerCrashedError,
)

from nas.environment.debugging import DEBUG
from nas.evaluation.failures import OUT_OF_MEMORY, reason_of_failure
from nas.request.job import EvaluationJob, failed_row
from nas.workers.attempts import MAX_NODES, NODE_DIED, PROCESS_DIED, Deaths, no_deaths, timeout_row
from nas.workers.ray.cluster import RayCluster
from nas.workers.ray.task import Assignment, evaluate_assignment, has_begun, stamp_of
from nas.workers.resources import AUTO, Resources, processes_for
from results.records.row import Row
from search_spaces.support.errors import UserError, fields_of, reason_of
from search_spaces.support.logger import LOGGER

_TICK_S = 1.0  # between looks at times and nodes


class RayWorkers:
    """As many evaluations at once as the cluster has room for, each a task of Ray's, and one that waits for room.

    The one that waits is what an autoscaler sees. Workers write to the store's folder and do not open the store.

    Args:
        address: "ray", or "ray://HOST:PORT"; see `nas.workers.ray.cluster.RayCluster`.
        resources: What each evaluation requests, and its limits.

    Raises:
        UserError: The cluster is not there.
    """

    def __init__(self, address: str, resources: Resources) -> None:
        assert resources.trial_gpus != AUTO  # see nas.workers.pool.check_gpus
        self._cluster, self._resources = RayCluster(address), resources
        self._gpus = float(self._cluster.has_gpus) if resources.trial_gpus is None else resources.trial_gpus
        self._folder = os.getcwd()
        self._running: dict[Future[Any], _Attempt] = {}
        self._room: int | None = None

    @property
    def capacity(self) -> int:
        """How many evaluations find room in the nodes that there are now, and one more."""
        room = self._cluster.room(self._request)
        if room == 0 != self._room:
            wants = ", ".join(f"{name} {amount:g}" for name, amount in self._request.items())
            LOGGER.info(f"no node of the Ray cluster has room for an evaluation ({wants}): one is waited for.")
        self._room = room
        return room + 1

    def submit(self, job: EvaluationJob) -> None:
        """Hand the job to Ray, which finds it a node."""
        self._begin(_first_attempt(job))

    def collect(self, patience: float | None = None) -> list[tuple[EvaluationJob, Row]]:
        """Wait for evaluations to end; none, too, once there is more room than there was."""
        deadline = None if patience is None else time.monotonic() + patience
        while True:
            timeout = _TICK_S if deadline is None else max(0.0, min(_TICK_S, deadline - time.monotonic()))
            wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)  # ray.wait takes signals for Ctrl-C
            rows = self._next_rows()
            if rows or (deadline is not None and time.monotonic() >= deadline) or self._has_grown():
                return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for attempt in self._running.values():
            attempt.remove_stamp()
        self._cluster.close([attempt.task for attempt in self._running.values()])

    @property
    def _request(self) -> dict[str, float]:
        """The resources that an evaluation requests of a node."""
        cpus = self._resources.threads * processes_for(self._gpus)
        request = {"CPU": cpus, "GPU": self._gpus, "memory": self._resources.trial_memory or 0}
        return {name: amount for name, amount in request.items() if amount}

    def _has_grown(self) -> bool:
        return self._cluster.room(self._request) > (self._room or 0)

    def _begin(self, attempt: "_Attempt") -> None:
        attempt = replace(attempt, name=uuid4().hex, deadline=None)
        job = _with_absolute_paths(attempt.job)
        stamp = stamp_of(job, attempt.name)
        try:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()
        except OSError as error:
            message = (
                f"{stamp.parent} cannot be written to: {error.strerror}. Make room there, or give another --storage."
            )
            raise UserError("unwritable", message, path=str(stamp.parent)) from error
        assignment = Assignment(job, attempt.name, self._resources.trial_memory, self._gpus, DEBUG in os.environ)
        try:
            task, future = self._cluster.answer(partial(self._submit_task, assignment))
        except BaseException:
            attempt.remove_stamp()  # a task that Ray takes later finds nothing to begin
            raise
        self._running[future] = replace(attempt, task=task)

    def _submit_task(self, assignment: Assignment) -> tuple[Any, Future[Any]]:
        """A task of Ray's, and what it will return."""
        request = self._request
        function = ray.remote(_portable_call(self._folder)).options(
            name=f"nas {assignment.job.identity}",
            max_retries=0,  # what has died, and how often, is counted here
            num_cpus=request["CPU"],
            num_gpus=request.get("GPU", 0),
            memory=request.get("memory"),
        )
        task = function.remote(pickle.dumps((evaluate_assignment, assignment)))
        return task, task.future()

    def _next_rows(self) -> list[tuple[EvaluationJob, Row]]:
        """The first evaluation that has ended, and no other: an exception of another must not lose its Row."""
        for future, attempt in list(self._running.items()):
            if future.done():
                row, attempt = self._outcome(future, attempt)
            elif self._is_overdue(future, attempt):
                self._cluster.answer(partial(ray.cancel, attempt.task, force=True))
                row = timeout_row(attempt.job, self._resources.trial_timeout or 0)
            else:
                continue
            del self._running[future]
            attempt.remove_stamp()
            if row is not None:
                return [(attempt.job, row)]
            self._begin(attempt)
        return []

    def _outcome(self, future: Future[Any], attempt: "_Attempt") -> tuple[Row | None, "_Attempt"]:
        """The Row of an evaluation that has ended; none where its node or process has died and it is to go on."""
        try:
            row, notices = future.result()
        except RayTaskError as error:
            if isinstance(error.cause, UserError | ImportError):
                raise _user_error(error.cause) from None
            return failed_row(attempt.job, reason_of_failure(error.cause)), attempt  # before it came to train
        except (NodeDiedError, LocalRayletDiedError, ObjectLostError):
            attempt = replace(attempt, nodes=attempt.nodes.another())
            return attempt.nodes.row(NODE_DIED), attempt
        except OutOfMemoryError:
            cause = f"{OUT_OF_MEMORY}: Ray ended its process, for its node was short of memory"
        except WorkerCrashedError:
            cause = PROCESS_DIED
        except ConnectionError as error:  # a client's
            raise self._cluster.head_error(f"is gone: {error}") from error
        except RayError as error:
            message = f"Ray could not carry out an evaluation: {reason_of(error)}. See its logs."
            raise UserError("failed", message, **fields_of(error)) from error
        else:
            for notice in notices:
                warnings.warn(notice, stacklevel=2)
            return row, attempt
        attempt = replace(attempt, deaths=attempt.deaths.another())
        return attempt.deaths.row(cause), attempt

    def _is_overdue(self, future: Future[Any], attempt: "_Attempt") -> bool:
        """Whether an evaluation's time is up: it counts from when a worker has begun it."""
        if self._resources.trial_timeout is None:
            return False
        if attempt.deadline is None and has_begun(attempt.job, attempt.name):
            attempt = replace(attempt, deadline=time.monotonic() + self._resources.trial_timeout)
            self._running[future] = attempt
        return attempt.deadline is not None and time.monotonic() >= attempt.deadline


@dataclass(frozen=True)
class _Attempt:
    """An evaluation under way.

    Attributes:
        job: What is evaluated.
        deaths: How often its own process has died.
        nodes: How often its node has.
        name: Of this attempt.
        task: Ray's.
        deadline: When its time is up, on the clock of time.monotonic; None before it has begun.
    """

    job: EvaluationJob
    deaths: Deaths
    nodes: Deaths
    name: str = ""
    task: Any = None
    deadline: float | None = None

    def remove_stamp(self) -> None:
        """Remove the file of this attempt."""
        with suppress(OSError):
            stamp_of(self.job, self.name).unlink(missing_ok=True)


def _first_attempt(job: EvaluationJob) -> _Attempt:
    return _Attempt(job, no_deaths(job), no_deaths(job, MAX_NODES))


def _user_error(error: BaseException) -> BaseException:
    """A worker's exception as the user sees it: a missing package of a node is a UserError."""
    if isinstance(error, ImportError):
        message = f"a node could not begin: {reason_of(error)}. Install the same packages on all of them."
        return UserError("needs-extra", message, module=error.name, **fields_of(error))
    return error


def _portable_call(folder: str) -> Callable[[bytes], Any]:
    """A function that travels as its code: Ray has workers look in this process's folder first for what is imported.

    A copy.py there would stand in the place of Python's own, so it forgets that folder before it imports anything.
    """

    def call(payload: bytes) -> Any:
        import pickle
        import sys

        sys.path[:] = [place for place in sys.path if place != folder]
        function, argument = pickle.loads(payload)  # noqa: S301  # what our coordinator wrote
        return function(argument)

    return call


def _with_absolute_paths(job: EvaluationJob) -> EvaluationJob:
    """The job with paths that mean the same in every working directory, and without the store, which workers leave."""
    task, colon, kind = job.task.rpartition(":")
    if task.endswith(".py"):
        task = os.path.abspath(task)
    return replace(
        job,
        task=f"{task}{colon}{kind}",
        data=_absolute(job.data) if job.data and Path(job.data).exists() else job.data,  # else it is a name
        start=_absolute(job.start),
        folder=_absolute(job.folder),
        network=_absolute(job.network),
        trace=_absolute(job.trace),
        render=_absolute(job.render),
        save=_absolute(job.save),
        store=None,
    )


def _absolute(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)
