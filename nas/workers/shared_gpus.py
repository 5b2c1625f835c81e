"""Evaluations that share GPUs: as many on each as measurements say find room there."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from nas.failures import ran_out_of_gpu_memory
from nas.jobs import EvaluationJob
from nas.steps import steps_of
from nas.workers.gpu_load import ENOUGH_LOADS, GpuLoad, has_room_for_one_more, read_load
from nas.workers.local_processes import LocalProcesses
from results.row import Row
from search_spaces.errors import UserError
from tasks.progress import say

TICK_S = 1.0
"""Seconds between two measurements; NVML's own are of the last sixth of a second to second."""

STARTING_S = 60.0
"""After so many an evaluation is taken to train, though it tells no steps."""


@dataclass
class _Gpu:
    """One GPU and what runs on it.

    Attributes:
        number: Which one, of those that this process sees.
        at_once: How many evaluations it is to have.
        is_final: Whether that stays so: one more did not find room, or it no longer says how busy it is.
        running: What runs there, and since when on the clock of time.monotonic.
        postponed: What is to have it to itself, having run out of its memory beside others; the first of them may run.
        crowd: How many ran when the first of those did.
        loads: The last ones, measured while `at_once` trained.
    """

    number: int
    at_once: int = 1
    is_final: bool = False
    running: list[tuple[EvaluationJob, float]] = field(default_factory=list)
    postponed: list[EvaluationJob] = field(default_factory=list)
    crowd: int = 1
    loads: deque[GpuLoad] = field(default_factory=lambda: deque(maxlen=ENOUGH_LOADS))

    @property
    def given(self) -> int:
        """How many evaluations it has been given that have not ended for good."""
        waiting = sum(not self.runs(job) for job in self.postponed)
        return len(self.running) + waiting

    @property
    def room(self) -> int:
        """How many more it may be given now: none while something waits for it to be empty, or has it to itself."""
        return 0 if self.postponed else max(0, self.at_once - self.given)

    def runs(self, job: EvaluationJob) -> bool:
        """Whether it runs there."""
        return any(one is job for one, _ in self.running)

    def end(self, job: EvaluationJob, row: Row) -> bool:
        """Take note of one that has ended; whether its Row counts, or it is to go again with the GPU to itself."""
        ran = len(self.running)
        self.running = [(one, since) for one, since in self.running if one is not job]
        no_room = ran_out_of_gpu_memory(row)
        if any(one is job for one in self.postponed):
            self.postponed = [one for one in self.postponed if one is not job]
            if not no_room:  # so it was the others that left it none
                self._have_fewer()
            return True
        if not no_room or (self.at_once == 1 and not self.is_final):  # no other process has been there
            return True
        if not self.postponed:
            self.crowd = ran
        self.postponed.append(job)
        say(f"{job.architecture}: out of memory beside others on GPU {self.number}. It goes again there by itself.")
        return False

    def measure(self, read: Callable[[int], GpuLoad]) -> None:
        """Look at the GPU while as many train there as it is to have, and let it have one more where there is room."""
        trains = sum(_trains(job, since) for job, since in self.running)
        if self.is_final or trains != self.at_once:
            return
        try:
            self.loads.append(read(self.number))
        except UserError as error:  # it did when the search began
            self.is_final = True
            say(f"{error} Until the end it has {self.at_once} at once, as now.")
            return
        if has_room_for_one_more(self.loads, self.at_once):
            self.at_once += 1
            self.loads.clear()
            say(f"GPU {self.number} has room: {self.at_once} evaluations at once from now on")

    def _have_fewer(self) -> None:
        fewer = max(1, min(self.at_once, self.crowd - 1))
        if not self.is_final or fewer < self.at_once:
            self.at_once, self.is_final = fewer, True
            say(f"GPU {self.number} has {fewer} at once from now on, which leaves room for what did not find any")


def _trains(job: EvaluationJob, since: float) -> bool:
    """Whether an evaluation is past its beginning, in which it loads its data and uses no GPU."""
    return steps_of(job.folder) is not None or time.monotonic() - since >= STARTING_S


class SharedGpus:
    """One evaluation on each GPU at first, and one more where those that run there leave room for it.

    One that runs out of a GPU's memory beside others has not failed: it goes again once it has the GPU to itself, so
    that what it finds does not depend on what ran beside it.

    Args:
        gpus: How many there are.
        bound: Evaluations at once, on all of them, at most.
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
        self._measured = time.monotonic()
        self._told = 0

    @property
    def capacity(self) -> int:
        """How many evaluations find room now."""
        self._told = self._room_in_all()
        return self._told

    def submit(self, job: EvaluationJob) -> None:
        """Hand the job to a process on the GPU that has the least to do."""
        self._begin(min((gpu for gpu in self._gpus if gpu.room), key=lambda gpu: gpu.given), job)

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

    def _given_in_all(self) -> int:
        return sum(gpu.given for gpu in self._gpus)

    def _room_in_all(self) -> int:
        given = self._given_in_all()
        return given + max(0, min(sum(gpu.room for gpu in self._gpus), self._bound - given))

    def _begin(self, gpu: _Gpu, job: EvaluationJob) -> None:
        self._processes.submit(job, gpu.number)
        gpu.running.append((job, time.monotonic()))

    def _counts(self, job: EvaluationJob, row: Row) -> bool:
        """Whether a Row is what was found; where nothing runs on its GPU any more, what waits for that begins."""
        gpu = next(one for one in self._gpus if one.runs(job))
        counts = gpu.end(job, row)
        if gpu.postponed and not gpu.running:
            self._processes.end_idle(gpu.number)  # what they hold of its memory is free then
            self._begin(gpu, gpu.postponed[0])
        return counts

    def _measure(self) -> None:
        if time.monotonic() - self._measured >= TICK_S and self._given_in_all() < self._bound:
            self._measured = time.monotonic()
            for gpu in self._gpus:
                gpu.measure(self._read)
