"""Evaluations that share GPUs: as many on each as measurements say find room there."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from nas.failures import OUT_OF_MEMORY
from nas.jobs import EvaluationJob
from nas.workers.gpu_load import GpuLoad, has_room_for_one_more, read_load
from nas.workers.local_processes import LocalProcesses
from results.row import Row
from tasks.progress import say

TICK_S = 1.0
"""Seconds between two measurements; NVML's own are of the last sixth of a second to second."""


@dataclass
class _Gpu:
    """One GPU and what runs on it.

    Attributes:
        number: Which one, of those that this process sees.
        most: How many evaluations it is to have at once.
        ceiling: How many it can ever have: fewer than once ran out of memory together. None where none did.
        running: Identity of each evaluation that runs there -> whether another one ran beside it at any time.
        postponed: What is to have it to itself, having run out of memory beside others; one of them may run.
        loads: Measured while `most` ran.
    """

    number: int
    most: int = 1
    ceiling: int | None = None
    running: dict[str, bool] = field(default_factory=dict)
    postponed: list[EvaluationJob] = field(default_factory=list)
    loads: list[GpuLoad] = field(default_factory=list)

    @property
    def load(self) -> int:
        """How many evaluations it has been given and has not ended."""
        return len(self.running.keys() | {job.identity for job in self.postponed})

    @property
    def room(self) -> int:
        """How many more it may be given now: none while something waits for it to be empty, or has it to itself."""
        return 0 if self.postponed else max(0, self.most - self.load)

    def begin(self, job: EvaluationJob) -> None:
        """Take note of an evaluation that begins."""
        shared = bool(self.running)
        self.running = {**dict.fromkeys(self.running, True), job.identity: shared} if shared else {job.identity: False}

    def end(self, job: EvaluationJob, row: Row) -> bool:
        """Take note of one that has ended; whether its Row counts, or it is to go again with the GPU to itself."""
        shared = self.running.pop(job.identity)
        self.postponed = [one for one in self.postponed if one is not job]
        if not shared or row.status != "failed" or not (row.error or "").startswith(OUT_OF_MEMORY):
            return True
        self.postponed.append(job)
        self.ceiling = max(1, min(self.most, self.ceiling or self.most) - 1)
        self.most, self.loads = self.ceiling, []
        say(f"{job.architecture}: out of memory beside others on GPU {self.number}, which has {self.most} at most from "
            "now on. It goes again there by itself.")  # fmt: skip
        return False

    def measure(self, read: Callable[[int], GpuLoad]) -> None:
        """Look at the GPU where it has as many as it is to have, and let it have one more where there is room."""
        if len(self.running) != self.most or self.most == self.ceiling:
            return
        self.loads.append(read(self.number))
        if has_room_for_one_more(self.loads, self.most):
            self.most, self.loads = self.most + 1, []
            say(f"GPU {self.number} has room: {self.most} evaluations at once from now on")


class SharedGpus:
    """One evaluation on each GPU at first, and one more where those that run there leave room for it.

    One that runs out of memory beside others has not failed: it goes again once it has the GPU to itself, so that what
    is found does not depend on what ran beside it.

    Args:
        gpus: How many there are.
        most: Evaluations at once, on all of them.
        seconds: After so many an evaluation is ended, or None.
        memory: Bytes of the host's memory that one may allocate beyond what its process and its task begin with, or
            None.
        read: Measures the load of a GPU.

    Raises:
        UserError: A GPU does not say how busy it is.
    """

    def __init__(
        self,
        gpus: int,
        most: int,
        seconds: float | None = None,
        memory: int | None = None,
        read: Callable[[int], GpuLoad] = read_load,
    ) -> None:
        for gpu in range(gpus):
            read(gpu)
        self._read, self._most = read, most
        self._gpus = [_Gpu(gpu) for gpu in range(gpus)]
        self._processes = LocalProcesses(0, seconds, memory)
        self._measured = time.monotonic()
        self._told = 0

    @property
    def capacity(self) -> int:
        """How many evaluations find room now."""
        self._told = self._room_in_all()
        return self._told

    def submit(self, job: EvaluationJob) -> None:
        """Hand the job to a process on the GPU that has the least to do."""
        self._begin(min((gpu for gpu in self._gpus if gpu.room), key=lambda gpu: gpu.load), job)

    def collect(self, patience: float | None = None) -> list[tuple[EvaluationJob, Row]]:
        """Wait for evaluations to end; none, too, once there is more room than there was."""
        until = None if patience is None else time.monotonic() + patience
        while True:
            left = TICK_S if until is None else max(0.0, min(TICK_S, until - time.monotonic()))
            ended = self._processes.collect(left)
            self._measure()  # what is said is of the moments until now, in which these ran
            ended = [(job, row) for job, row in ended if self._counts(job, row)]
            if ended or (until is not None and time.monotonic() >= until) or self._room_in_all() > self._told:
                return ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._processes.__exit__(kind, error, trace)

    def _load_in_all(self) -> int:
        return sum(gpu.load for gpu in self._gpus)

    def _room_in_all(self) -> int:
        load = self._load_in_all()
        return load + max(0, min(sum(gpu.room for gpu in self._gpus), self._most - load))

    def _begin(self, gpu: _Gpu, job: EvaluationJob) -> None:
        self._processes.submit(job, gpu.number)
        gpu.begin(job)

    def _counts(self, job: EvaluationJob, row: Row) -> bool:
        """Whether a Row is what was found; where it is not, or its GPU is empty, what waits for it begins."""
        gpu = next(one for one in self._gpus if job.identity in one.running)
        counts = gpu.end(job, row)
        if gpu.postponed and not gpu.running:
            self._processes.end_idle(gpu.number)  # what they hold of its memory is free then
            self._begin(gpu, gpu.postponed[0])
        return counts

    def _measure(self) -> None:
        if time.monotonic() - self._measured >= TICK_S and self._load_in_all() < self._most:
            self._measured = time.monotonic()
            for gpu in self._gpus:
                gpu.measure(self._read)
