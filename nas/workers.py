"""Where evaluations run: in this process, or in local processes that may die without taking the search down."""

import ctypes
import os
import signal
import sys
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Protocol, Self

import joblib
import torch
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend.context import get_context

from nas.evaluation import evaluate
from nas.jobs import EvaluationJob, blank_row
from results.row import Row
from search_spaces.errors import show_notices

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


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
                row = blank_row(job, "the process of this evaluation died")
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
            # An interrupted evaluation is taken up again from its checkpoint.
            process.pool.shutdown(wait=True, kill_workers=kind is not None)


class _Process:
    """A pool of one process, at one place among the workers: those share the GPUs evenly."""

    def __init__(self, place: int) -> None:
        self.place = place
        # Neither forked, which torch and CUDA do not survive, nor spawned by the standard library, which would
        # run the script that called us once more: a notebook, or a file without `if __name__ == "__main__"`.
        self.pool = ProcessPoolExecutor(
            1, context=get_context("loky"), initializer=_begin, initargs=(_gpu(place), os.getpid())
        )

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


def _begin(gpu: str | None, parent: int) -> None:
    """Before anything touches CUDA, which looks at its variable once."""
    # Ctrl-C reaches every process of a terminal; what follows from it is the coordinator's to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent(parent)
    show_notices()
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu


def _end_with_parent(parent: int) -> None:
    """Have the kernel end this process with the one that began it: nobody would read what it finds. On Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # it had ended already


def usual() -> int:
    """How many evaluations at once use the machine well: one for each GPU, or each core where there is none."""
    return torch.cuda.device_count() or joblib.cpu_count(only_physical_cores=True)


def pool_of(number: int) -> Workers:
    """This process for one worker, local processes for more."""
    return ThisProcess() if number == 1 else LocalProcesses(number)
