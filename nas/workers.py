"""Where evaluations run: in this process, or in local processes that may die without taking the search down."""

import signal
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from types import TracebackType
from typing import Protocol, Self

from nas.evaluate import Job, evaluate, failed
from results.row import Row


class Workers(Protocol):
    """Somewhere to run evaluations."""

    @property
    def capacity(self) -> int:
        """How many evaluations run at once."""

    def submit(self, job: Job) -> None:
        """Begin an evaluation; at most `capacity` at a time."""

    def collect(self) -> list[tuple[Job, Row]]:
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
        self._waiting: list[Job] = []

    def submit(self, job: Job) -> None:
        """Keep the job until it is collected."""
        self._waiting.append(job)

    def collect(self) -> list[tuple[Job, Row]]:
        """Evaluate what was submitted."""
        jobs, self._waiting = self._waiting, []
        return [(job, evaluate(job)) for job in jobs]

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
        self._idle = [_process() for _ in range(processes)]
        self._busy: dict[Future[Row], tuple[ProcessPoolExecutor, Job]] = {}

    @property
    def capacity(self) -> int:
        """How many processes there are."""
        return len(self._idle) + len(self._busy)

    def submit(self, job: Job) -> None:
        """Hand the job to an idle process."""
        process = self._idle.pop()
        try:
            future = process.submit(evaluate, job)
        except BrokenProcessPool:  # it died while it had nothing to do
            process.shutdown(wait=False)
            process = _process()
            future = process.submit(evaluate, job)
        self._busy[future] = (process, job)

    def collect(self) -> list[tuple[Job, Row]]:
        """Wait for the next evaluations to end; a process that died fails its evaluation and is replaced."""
        done, _ = wait(self._busy, return_when=FIRST_COMPLETED)
        ended = []
        for future in done:
            process, job = self._busy.pop(future)
            try:
                row = future.result()
            except BrokenProcessPool:
                row = failed(job, "the process of this evaluation died, most likely killed for lack of memory")
                process.shutdown(wait=False)
                process = _process()
            self._idle.append(process)
            ended.append((job, row))
        return ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        busy = [process for process, _ in self._busy.values()]
        for process in (*self._idle, *busy):
            for child in list((process._processes or {}).values()):
                if kind is not None:  # an interrupted evaluation is taken up again from its checkpoint
                    child.kill()
            process.shutdown(wait=kind is None, cancel_futures=True)


def _process() -> ProcessPoolExecutor:
    # Spawned, not forked: torch's threads and CUDA do not survive a fork.
    return ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"), initializer=_leave_interrupts)


def _leave_interrupts() -> None:
    """Ctrl-C reaches every process of a terminal; what follows from it is the coordinator's to decide."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def workers(number: int) -> Workers:
    """This process for one worker, local processes for more."""
    return ThisProcess() if number == 1 else LocalProcesses(number)
