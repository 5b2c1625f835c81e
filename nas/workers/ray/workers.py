"""Evaluations on a Ray cluster: if a node dies, its evaluations resume from their last checkpoints."""

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
from nas.workers.attempts import MAX_NODES, NODE_DIED, PROCESS_DIED, Deaths, new_death_count, timeout_row
from nas.workers.ray.cluster import RayCluster
from nas.workers.ray.task import Assignment, evaluate_assignment, has_begun, stamp_of
from nas.workers.resources import AUTO, Resources, processes_for
from results.records.row import Row
from search_spaces.support.errors import UserError, cause_fields, reason_of
from search_spaces.support.logger import LOGGER

_TICK_S = 1.0  # between checks of time limits and nodes


class RayWorkers:
    """As many evaluations at once as the cluster has room for, each a Ray task, and one that waits for room.

    The waiting one is visible to an autoscaler. Workers write to the store's folder and do not open the store.

    Args:
        address: "ray", or "ray://HOST:PORT"; see `nas.workers.ray.cluster.RayCluster`.
        resources: Request and limits of each evaluation.

    Raises:
        UserError: The cluster is not available.
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
        """Number of evaluations that fit on the current nodes, and one more."""
        room = self._cluster.room(self._request)
        if room == 0 != self._room:
            wants = ", ".join(f"{name} {amount:g}" for name, amount in self._request.items())
            LOGGER.info(f"no node of the Ray cluster has room for an evaluation ({wants}): waiting for one.")
        self._room = room
        return room + 1

    def submit(self, job: EvaluationJob) -> None:
        """Submit the job to Ray, which finds a node for it."""
        self._begin(_first_attempt(job))

    def collect(self, patience: float | None = None) -> list[tuple[EvaluationJob, Row]]:
        """Wait for evaluations to end; return none once there is more room than before."""
        deadline = None if patience is None else time.monotonic() + patience
        while True:
            timeout = _TICK_S if deadline is None else max(0.0, min(_TICK_S, deadline - time.monotonic()))
            wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)  # ray.wait treats signals as Ctrl-C
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
                f"{stamp.parent} cannot be written: {error.strerror}. Free space there, or give another --storage."
            )
            raise UserError("unwritable", message, path=str(stamp.parent)) from error
        assignment = Assignment(job, attempt.name, self._resources.trial_memory, self._gpus, DEBUG in os.environ)
        try:
            task, future = self._cluster.answer(partial(self._submit_task, assignment))
        except BaseException:
            attempt.remove_stamp()  # a task that Ray starts later finds no stamp
            raise
        self._running[future] = replace(attempt, task=task)

    def _submit_task(self, assignment: Assignment) -> tuple[Any, Future[Any]]:
        """Submit a Ray task; return it and the future of its result."""
        request = self._request
        function = ray.remote(_portable_call(self._folder)).options(
            name=f"nas {assignment.job.identity}",
            max_retries=0,  # deaths are counted here
            num_cpus=request["CPU"],
            num_gpus=request.get("GPU", 0),
            memory=request.get("memory"),
        )
        task = function.remote(pickle.dumps((evaluate_assignment, assignment)))
        return task, task.future()

    def _next_rows(self) -> list[tuple[EvaluationJob, Row]]:
        """Return only the first evaluation that has ended: an exception of another one must not lose its Row."""
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
        """Return the Row of an evaluation that has ended; None if its node or process died and it resumes."""
        try:
            row, notices = future.result()
        except RayTaskError as error:
            if isinstance(error.cause, UserError | ImportError):
                raise _user_error(error.cause) from None
            return failed_row(attempt.job, reason_of_failure(error.cause)), attempt  # failed before training
        except (NodeDiedError, LocalRayletDiedError, ObjectLostError):
            attempt = replace(attempt, nodes=attempt.nodes.with_death())
            return attempt.nodes.row(NODE_DIED), attempt
        except OutOfMemoryError:
            cause = f"{OUT_OF_MEMORY}: Ray killed its process because its node was short of memory"
        except WorkerCrashedError:
            cause = PROCESS_DIED
        except ConnectionError as error:  # raised by a client
            raise self._cluster.head_error(f"disconnected: {error}") from error
        except RayError as error:
            message = f"Ray failed to run an evaluation: {reason_of(error)}. See its logs."
            raise UserError("failed", message, **cause_fields(error)) from error
        else:
            for notice in notices:
                warnings.warn(notice, stacklevel=2)
            return row, attempt
        attempt = replace(attempt, deaths=attempt.deaths.with_death())
        return attempt.deaths.row(cause), attempt

    def _is_overdue(self, future: Future[Any], attempt: "_Attempt") -> bool:
        """Return whether an evaluation has exceeded its time since a worker started it."""
        if self._resources.trial_timeout is None:
            return False
        if attempt.deadline is None and has_begun(attempt.job, attempt.name):
            attempt = replace(attempt, deadline=time.monotonic() + self._resources.trial_timeout)
            self._running[future] = attempt
        return attempt.deadline is not None and time.monotonic() >= attempt.deadline


@dataclass(frozen=True)
class _Attempt:
    """A running evaluation.

    Attributes:
        job: Its job.
        deaths: Deaths of its own process.
        nodes: Deaths of its node.
        name: Name of this attempt.
        task: The Ray task.
        deadline: Time limit on the clock of time.monotonic; None before a worker has started it.
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
    return _Attempt(job, new_death_count(job), new_death_count(job, MAX_NODES))


def _user_error(error: BaseException) -> BaseException:
    """Return a worker's exception as shown to users: a missing package on a node is a UserError."""
    if isinstance(error, ImportError):
        message = f"a node could not start: {reason_of(error)}. Install the same packages on all nodes."
        return UserError("needs-extra", message, module=error.name, **cause_fields(error))
    return error


def _portable_call(folder: str) -> Callable[[bytes], Any]:
    """Return a function that Ray sends by its code, since Ray's workers import from this process's folder first.

    A copy.py there would replace Python's own, so the function removes that folder from sys.path before it imports.
    """

    def call(payload: bytes) -> Any:
        import pickle
        import sys

        sys.path[:] = [place for place in sys.path if place != folder]
        function, argument = pickle.loads(payload)  # noqa: S301  # written by the coordinator
        return function(argument)

    return call


def _with_absolute_paths(job: EvaluationJob) -> EvaluationJob:
    """Return the job with paths that are valid in every working directory, and without the store."""
    task, colon, kind = job.task.rpartition(":")
    if task.endswith(".py"):
        task = os.path.abspath(task)
    return replace(
        job,
        task=f"{task}{colon}{kind}",
        data=_absolute(job.data) if job.data and Path(job.data).exists() else job.data,  # otherwise it is a name
        start_folder=_absolute(job.start_folder),
        folder=_absolute(job.folder),
        network_folder=_absolute(job.network_folder),
        trace=_absolute(job.trace),
        render=_absolute(job.render),
        save=_absolute(job.save),
        store=None,
    )


def _absolute(path: str | None) -> str | None:
    return None if path is None else os.path.abspath(path)
