"""Evaluations that share GPUs, as many on each as its measured load allows."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from nas.evaluation.failures import is_gpu_error
from nas.evaluation.heartbeat import has_recent_heartbeat
from nas.request.job import EvaluationJob
from nas.workers.gpu_load import ENOUGH_LOADS, GpuLoad, has_room_for_one_more, read_load
from nas.workers.local_processes import LocalProcesses
from results.records.row import Row
from search_spaces.support.errors import UserError
from search_spaces.support.logger import LOGGER

TICK_S = 1.0
"""Seconds between measurements; NVML averages over the last sixth of a second to a second."""

STARTING_S = 60.0
"""Seconds after which an evaluation counts as training even without a heartbeat."""


@dataclass(eq=False)
class _Running:
    """An evaluation that runs on a GPU.

    Attributes:
        job: Its job.
        since: Its start on the clock of time.monotonic.
        concurrent: Largest number of other evaluations at the same time.
    """

    job: EvaluationJob
    since: float
    concurrent: int

    def trains(self) -> bool:
        """Return whether it trains: at first it loads its data and does not use the GPU."""
        return has_recent_heartbeat(self.job.folder) or time.monotonic() - self.since >= STARTING_S


@dataclass
class _Gpu:
    """One GPU and its evaluations.

    Attributes:
        number: Its index among those that this process sees.
        target: Number of evaluations to run at once.
        is_final: Whether the target is fixed: one more did not fit, or the load can no longer be read.
        running: The running evaluations.
        retries: Jobs that failed beside others, to be run alone; the first of them may be running.
        concurrency_at_failure: Number of running evaluations when the first of those failed.
        loads: The latest loads, measured while `target` evaluations trained.
    """

    number: int
    target: int = 1
    is_final: bool = False
    running: list[_Running] = field(default_factory=list)
    retries: list[EvaluationJob] = field(default_factory=list)
    concurrency_at_failure: int = 1
    loads: deque[GpuLoad] = field(default_factory=lambda: deque(maxlen=ENOUGH_LOADS))

    @property
    def assignments(self) -> int:
        """Number of evaluations assigned to it: running ones, and waiting retries."""
        return len(self.running) + sum(not self.runs(job) for job in self.retries)

    @property
    def room(self) -> int:
        """Number of further evaluations that it has room for: none while there is a retry."""
        return 0 if self.retries else max(0, self.target - self.assignments)

    def runs(self, job: EvaluationJob) -> bool:
        """Return whether a job runs on it."""
        return any(evaluation.job == job for evaluation in self.running)

    def begin(self, job: EvaluationJob) -> None:
        """Record the start of an evaluation."""
        concurrent = len(self.running)
        for evaluation in self.running:
            evaluation.concurrent = max(evaluation.concurrent, concurrent)
        self.running.append(_Running(job, time.monotonic(), concurrent))

    def end(self, job: EvaluationJob, row: Row) -> bool:
        """Record the end of an evaluation, and return whether its Row counts; otherwise it is retried alone."""
        evaluation = next(candidate for candidate in self.running if candidate.job == job)
        self.running.remove(evaluation)
        if job in self.retries:
            self.retries.remove(job)
            if row.status != "failed":  # it succeeds alone, so the others left it no room
                self._lower_target()
            return True
        if not evaluation.concurrent or not is_gpu_error(row):
            return True
        if not self.retries:
            self.concurrency_at_failure = evaluation.concurrent + 1
        self.retries.append(job)
        text = f"failed next to others on GPU {self.number} and is retried there alone"
        LOGGER.warning(f"{job.architecture}: {text} ({row.error})")
        return False

    def measure(self, read: Callable[[int], GpuLoad]) -> None:
        """Read the load while `target` evaluations train, and raise the target if there is room."""
        if self.is_final or sum(evaluation.trains() for evaluation in self.running) != self.target:
            return
        try:
            self.loads.append(read(self.number))
        except UserError as error:  # it worked at the start of the search
            self.is_final = True
            LOGGER.warning(f"{error} It keeps {self.target} evaluations at once until the end.")
            return
        if has_room_for_one_more(self.loads, self.target):
            self.target += 1
            self.loads.clear()
            LOGGER.info(f"GPU {self.number} has room for more: {self.target} evaluations at once from now on")

    def _lower_target(self) -> None:
        self.target, self.is_final = min(self.target, self.concurrency_at_failure - 1), True
        LOGGER.info(f"GPU {self.number} has room for at most {self.target} evaluations at once")


class SharedGpus:
    """Workers that run one evaluation on each GPU at first, and another one whenever its load allows.

    An evaluation that hits a CUDA error beside others, usually for lack of memory, has not failed: it is retried alone
    on the GPU, so that its result does not depend on other evaluations.

    Args:
        gpus: Number of GPUs.
        bound: Largest number of evaluations at once, on all GPUs.
        seconds: Time limit of an evaluation, or None.
        memory: Bytes of host memory that an evaluation may allocate in addition to those at its start, or None.
        read: Reads the load of a GPU.

    Raises:
        UserError: The load of a GPU cannot be read.
    """

    def __init__(
        self,
        gpus: int,
        bound: int,
        seconds: float | None = None,
        memory: int | None = None,
        read: Callable[[int], GpuLoad] = read_load,
    ) -> None:
        for gpu in range(gpus):
            read(gpu)
        self._read, self._bound = read, bound
        self._gpus = [_Gpu(gpu) for gpu in range(gpus)]
        self._processes = LocalProcesses(0, seconds, memory)
        self._last_measurement = time.monotonic()
        self._last_capacity = 0

    @property
    def capacity(self) -> int:
        """Number of evaluations that have room now."""
        self._last_capacity = self._current_capacity()
        return self._last_capacity

    def submit(self, job: EvaluationJob) -> None:
        """Run the job in a process on the GPU with the fewest evaluations."""
        self._begin(min((gpu for gpu in self._gpus if gpu.room), key=lambda gpu: gpu.assignments), job)

    def collect(self, patience: float | None = None) -> list[tuple[EvaluationJob, Row]]:
        """Wait for evaluations to end; return none once there is more room than before."""
        deadline = None if patience is None else time.monotonic() + patience
        while True:
            timeout = TICK_S if deadline is None else max(0.0, min(TICK_S, deadline - time.monotonic()))
            rows = self._processes.collect(timeout)
            self._measure()  # the load of the time when these still ran
            rows = [(job, row) for job, row in rows if self._counts(job, row)]
            has_grown = self._current_capacity() > self._last_capacity
            if rows or (deadline is not None and time.monotonic() >= deadline) or has_grown:
                return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._processes.__exit__(kind, error, trace)

    def _total_assignments(self) -> int:
        return sum(gpu.assignments for gpu in self._gpus)

    def _current_capacity(self) -> int:
        assignments = self._total_assignments()
        return assignments + max(0, min(sum(gpu.room for gpu in self._gpus), self._bound - assignments))

    def _begin(self, gpu: _Gpu, job: EvaluationJob) -> None:
        self._processes.submit(job, gpu.number)
        gpu.begin(job)

    def _counts(self, job: EvaluationJob, row: Row) -> bool:
        """Return whether a Row counts. Start the first retry of its GPU once nothing else runs there."""
        gpu = next(each_gpu for each_gpu in self._gpus if each_gpu.runs(job))
        counts = gpu.end(job, row)
        if gpu.retries and not gpu.running:
            self._processes.end_idle(gpu.number)  # frees their GPU memory
            self._begin(gpu, gpu.retries[0])
        return counts

    def _measure(self) -> None:
        if time.monotonic() - self._last_measurement >= TICK_S and self._total_assignments() < self._bound:
            self._last_measurement = time.monotonic()
            for gpu in self._gpus:
                gpu.measure(self._read)
