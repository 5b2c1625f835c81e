"""Pools of workers: this process, local processes, shared GPUs, or a Ray cluster."""

from types import TracebackType
from typing import Protocol, Self

import joblib
import torch

from nas.evaluation.evaluate import evaluate, job_lock
from nas.request.job import EvaluationJob
from nas.workers.local_processes import LocalProcesses
from nas.workers.resources import AUTO, Resources, num_that_fit
from nas.workers.shared_gpus import SharedGpus
from results.records.row import Row
from search_spaces.support.errors import UserError


class WorkerPool(Protocol):
    """The contract of workers, which run evaluations."""

    @property
    def capacity(self) -> int:
        """Largest number of evaluations at once."""

    def submit(self, job: EvaluationJob) -> None:
        """Start an evaluation; at most `capacity` at a time."""

    def collect(self, patience: float | None = None) -> list[tuple[EvaluationJob, Row]]:
        """Wait until an evaluation has ended, and return those that have; none after `patience` seconds."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Free all resources; running evaluations are dropped."""


class ThisProcess:
    """A worker that runs one evaluation at a time, in this process."""

    capacity = 1

    def __init__(self) -> None:
        self._waiting: list[EvaluationJob] = []

    def submit(self, job: EvaluationJob) -> None:
        """Queue the job until it is collected."""
        self._waiting.append(job)

    def collect(self, patience: float | None = None) -> list[tuple[EvaluationJob, Row]]:
        """Evaluate the submitted job, however long it takes."""
        job = self._waiting.pop()
        with job_lock(job) as job_with_row:
            return [(job, evaluate(job_with_row))]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting = []


def default_workers(gpus: float | None = None) -> int:
    """Return the default number of workers: by `gpus` of each evaluation, else one a GPU, or one a core without any."""
    if gpus:
        return num_that_fit(torch.cuda.device_count(), gpus)
    gpu_count = torch.cuda.device_count() if gpus is None else 0
    return gpu_count or joblib.cpu_count(only_physical_cores=True)


def make_pool(resources: Resources, max_evaluations: int, *, isolate: bool = False) -> WorkerPool:
    """Return a Ray cluster; shared GPUs; local processes for several workers, limits or `isolate`; or this process.

    `max_evaluations` is the total number of evaluations.

    Raises:
        UserError: There are too few GPUs, their load is unknown, Ray is not installed, or its cluster is not available.
    """
    check_gpus(resources)
    if isinstance(resources.workers, str):
        return _on_ray(resources.workers, resources)
    gpus = resources.trial_gpus
    if gpus == AUTO:
        return _on_shared_gpus(resources.workers, resources, max_evaluations)
    room = default_workers(gpus)
    number = resources.workers or max(1, min(room, max_evaluations))
    if gpus and number > room:
        gpus_text = f"{torch.cuda.device_count()} GPUs, room for {room} such evaluations at once"
        raise UserError(
            "out-of-range",
            f"--trial-gpus {gpus:g} is too much for {number} workers: {gpus_text}. Lower one of them.",
            option="--trial-gpus",
            value=gpus,
            workers=number,
            most=room,
        )
    isolate = isolate or resources.trial_timeout is not None or resources.trial_memory is not None or gpus is not None
    if number > 1 or isolate:
        return LocalProcesses(number, resources.trial_timeout, resources.trial_memory, gpus)
    return ThisProcess()


def check_gpus(resources: Resources) -> None:
    """Raise UserError for GPUs on a machine without any, or for `auto` on a cluster."""
    on_cluster = isinstance(resources.workers, str)
    if on_cluster and resources.trial_gpus == AUTO:
        message = "--trial-gpus auto works on this machine's GPUs only. Give a Ray cluster a share such as 0.5."
        raise UserError("conflict", message, option="--trial-gpus", value=AUTO, workers=resources.workers)
    if resources.trial_gpus and not on_cluster and not torch.cuda.device_count():
        message = f"--trial-gpus {resources.trial_gpus} needs a GPU, and this machine has none. Leave it out."
        raise UserError("needs-system", message, option="--trial-gpus", value=resources.trial_gpus, needs="cuda")


def _on_shared_gpus(workers: int | None, resources: Resources, max_evaluations: int) -> WorkerPool:
    gpu_count, cores = torch.cuda.device_count(), joblib.cpu_count(only_physical_cores=True)
    most_at_once = workers or max(gpu_count, cores // resources.threads)
    return SharedGpus(gpu_count, min(most_at_once, max_evaluations), resources.trial_timeout, resources.trial_memory)


def _on_ray(address: str, resources: Resources) -> WorkerPool:
    try:
        import ray  # noqa: F401  # a slow import, and an extra
    except ImportError:
        message = f'--workers {address} needs Ray: pip install ".[ray]"'
        raise UserError("needs-extra", message, option="--workers", value=address, extra="ray") from None
    from nas.workers.ray.workers import RayWorkers

    return RayWorkers(address, resources)
