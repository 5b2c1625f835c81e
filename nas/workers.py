"""Where evaluations run: in this process, or in local processes that may die without taking the search down."""

import os
import signal
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from types import TracebackType
from typing import Protocol, Self

import joblib
import torch

from nas.evaluation import evaluate, failed
from nas.jobs import EvaluationJob
from results.row import Row
from search_spaces.errors import show_notices


class Workers(Protocol):
    """Somewhere to run evaluations."""

    @property
    def capacity(self) -> int:
        """How many evaluations run at once."""

    def submit(self, job: EvaluationJob) -> None:
        """Begin an evaluation; at most `capacity` at a time."""

    def collect(self) -> list[tuple[EvaluationJob, Row]]:
        """Wait until at least one evaluation has ended, and return those that have."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give back what was held; evaluations under way are dropped."""


class ThisProcess:
    """One evaluation at a time, here."""

    capacity = 1

    def __init__(self) -> None:
        self._waiting: list[EvaluationJob] = []

    def submit(self, job: EvaluationJob) -> None:
        """Keep the job until it is collected."""
        self._waiting.append(job)

    def collect(self) -> list[tuple[EvaluationJob, Row]]:
        """Evaluate what was submitted."""
        job = self._waiting.pop()
        return [(job, evaluate(job))]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting = []


class LocalProcesses:
    """Several evaluations at once, each in a process of its own that serves one after the other.

    Each process is a pool of one, because a pool of several that loses a process fails all their evaluations.
    """

    def __init__(self, processes: int) -> None:
        self._idle = [_Process(place) for place in range(processes)]
        self._busy: dict[Future[Row], tuple[_Process, EvaluationJob]] = {}

    @property
    def capacity(self) -> int:
        """How many processes there are."""
        return len(self._idle) + len(self._busy)

    def submit(self, job: EvaluationJob) -> None:
        """Hand the job to an idle process."""
        process = self._idle.pop()
        try:
            future = process.pool.submit(evaluate, job)
        except BrokenProcessPool:  # it died while it had nothing to do
            process = process.replaced()
            future = process.pool.submit(evaluate, job)
        self._busy[future] = (process, job)

    def collect(self) -> list[tuple[EvaluationJob, Row]]:
        """Wait for the next evaluations to end; a process that died fails its evaluation and is replaced."""
        done, _ = wait(self._busy, return_when=FIRST_COMPLETED)
        ended = []
        for future in done:
            process, job = self._busy.pop(future)
            try:
                row = future.result()
            except BrokenProcessPool:
                row = failed(job, "the process of this evaluation died, most likely killed for lack of memory")
                process = process.replaced()
            self._idle.append(process)
            ended.append((job, row))
        return ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (*self._idle, *(process for process, _ in self._busy.values())):
            for child in list((process.pool._processes or {}).values()):
                if kind is not None:  # an interrupted evaluation is taken up again from its checkpoint
                    child.kill()
            process.pool.shutdown(wait=kind is None, cancel_futures=True)


class _Process:
    """A pool of one process, at one place among the workers: those share the GPUs evenly."""

    def __init__(self, place: int) -> None:
        self.place = place
        # Spawned, not forked: torch's threads and CUDA do not survive a fork.
        self.pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin, initargs=(_gpu(place),))

    def replaced(self) -> "_Process":
        """Another at the same place, this one having died."""
        self.pool.shutdown(wait=False)
        return _Process(self.place)


def _gpu(place: int) -> str | None:
    """What CUDA_VISIBLE_DEVICES is to be at a place, None where there is nothing to choose from."""
    gpus = torch.cuda.device_count()
    if gpus < 2:
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpus)))).split(",")
    return visible[place % gpus]


def _begin(gpu: str | None) -> None:
    """Before anything touches CUDA, which looks at its variable once."""
    # Ctrl-C reaches every process of a terminal; what follows from it is the coordinator's to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    show_notices()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu


def usual() -> int:
    """How many evaluations at once use the machine well: one for each GPU, or each core where there is none."""
    return torch.cuda.device_count() or joblib.cpu_count(only_physical_cores=True)


def pool_of(number: int) -> Workers:
    """This process for one worker, local processes for more."""
    return ThisProcess() if number == 1 else LocalProcesses(number)
