"""Evaluations in processes of this machine: one that dies or exceeds its limits does not end the search."""

import os
import re
import signal
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

import torch
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend.context import get_context

from nas.evaluation.failures import OUT_OF_MEMORY, is_gpu_error, ran_out_of_memory, reason_of_failure
from nas.request.job import EvaluationJob, failed_row, task_of
from nas.workers.attempts import PROCESS_DIED, Deaths, new_death_count, timeout_row
from nas.workers.distributed import evaluate_distributed
from nas.workers.memory_limit import limit_memory, oom_kills
from nas.workers.processes import hide_working_directory, prepare_process
from nas.workers.resources import processes_for
from results.records.row import Row
from search_spaces.support.errors import UserError, show_notices


class LocalProcesses:
    """Several evaluations at once, each in a process that runs one after another.

    Each process is a pool of one, because a larger pool that loses a process fails all its evaluations. If a process
    dies, another one resumes its evaluation from the checkpoint.

    Args:
        processes: Initial number; more are added if a slot without an idle one is asked for.
        seconds: Time limit of an evaluation, or None.
        memory: Bytes that an evaluation may allocate in addition to those at its start, or None.
        gpus: GPUs of each evaluation: a whole number or a fraction of one; None divides all evenly.
    """

    def __init__(
        self, processes: int, seconds: float | None = None, memory: int | None = None, gpus: float | None = None
    ) -> None:
        self._seconds, self._memory, self._gpus = seconds, memory, gpus
        self._processes = [SingleProcessPool(slot, memory, gpus) for slot in range(processes)]
        self._idle = list(self._processes)
        self._busy: dict[Future[Row], _Attempt] = {}

    @property
    def capacity(self) -> int:
        """Number of processes."""
        return len(self._processes)

    def submit(self, job: EvaluationJob, slot: int | None = None) -> None:
        """Run the job in an idle process, at `slot` if it is given."""
        deadline = None if self._seconds is None else time.monotonic() + self._seconds
        process = self._idle[-1] if slot is None else self._idle_at(slot)
        self._begin(_Attempt(job, process, new_death_count(job), deadline))
        self._idle.remove(process)

    def collect(self, patience: float | None = None) -> list[tuple[EvaluationJob, Row]]:
        """Wait for evaluations to end: by themselves, by deaths of their process, or at their time limit."""
        deadline = None if patience is None else time.monotonic() + patience
        while True:
            now = time.monotonic()
            ends = [attempt.deadline for attempt in self._busy.values() if attempt.deadline is not None]
            soonest = min([*ends, *([] if deadline is None else [deadline])], default=None)
            timeout = None if soonest is None else max(0.0, soonest - now)
            wait(self._busy, timeout=timeout, return_when=FIRST_COMPLETED)
            rows = self._next_rows()
            if rows or (deadline is not None and time.monotonic() >= deadline):
                return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            # Running evaluations are dropped and resume from their checkpoint later; unloading PyTorch takes seconds.
            process.pool.shutdown(wait=True, kill_workers=True)

    def end_idle(self, slot: int) -> None:
        """Restart the idle processes at a slot, to free their GPU memory."""
        for process in self._idle:
            if process.slot == slot:
                process.replace()

    def _idle_at(self, slot: int) -> "SingleProcessPool":
        for process in reversed(self._idle):
            if process.slot == slot:
                return process
        process = SingleProcessPool(slot, self._memory, self._gpus)
        self._processes.append(process)
        self._idle.append(process)
        return process

    def _begin(self, attempt: "_Attempt") -> None:
        attempt = replace(attempt, kills=oom_kills())
        try:
            future = attempt.process.submit(attempt.job)
        except BrokenProcessPool:  # it died while it was idle
            attempt.process.replace()
            future = attempt.process.submit(attempt.job)
        self._busy[future] = attempt

    def _next_rows(self) -> list[tuple[EvaluationJob, Row]]:
        """Return only the first evaluation that has ended: an exception of another one must not lose its Row."""
        for future, attempt in list(self._busy.items()):
            if future.done():
                row, attempt = _outcome(future, attempt)
            elif attempt.deadline is not None and time.monotonic() >= attempt.deadline:
                row = timeout_row(attempt.job, self._seconds or 0)
                attempt.process.replace()
            else:
                continue
            del self._busy[future]
            if row is not None:
                self._idle.append(attempt.process)
                return [(attempt.job, row)]
            self._begin(attempt)
        return []


@dataclass(frozen=True)
class _Attempt:
    """A running evaluation.

    Attributes:
        job: Its job.
        process: Its process.
        deaths: Deaths of its processes.
        deadline: Time limit on the clock of time.monotonic, or None.
        kills: The kernel's count of out-of-memory kills at its start.
    """

    job: EvaluationJob
    process: "SingleProcessPool"
    deaths: Deaths
    deadline: float | None
    kills: int | None = None


class SingleProcessPool:
    """A pool of one process at a slot. Slots are assigned to GPUs in turn; several processes may share a slot."""

    def __init__(self, slot: int, memory: int | None, gpus: float | None) -> None:
        self.slot, self._memory, self._gpus = slot, memory, gpus
        self.pool = self._new()

    def submit(self, job: EvaluationJob) -> Future[Row]:
        """Start an evaluation. Raises BrokenProcessPool if the process has died."""
        with hide_working_directory():  # the process starts with its first evaluation
            future: Future[Row] = self.pool.submit(evaluate_within, job, processes_for(self._gpus), self._memory)
            return future

    def replace(self) -> None:
        """End this process and start another one."""
        self.pool.shutdown(wait=True, kill_workers=True)
        self.pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        # Not forked, which torch and CUDA do not survive. Not spawned by the standard library either: that would run
        # the calling script again, a notebook or a file without `if __name__ == "__main__"`.
        with hide_working_directory():
            initargs = (_visible_gpus(self.slot, self._gpus), os.getpid())
            return ProcessPoolExecutor(1, context=get_context("loky"), initializer=_prepare, initargs=initargs)


def _outcome(future: Future[Row], attempt: _Attempt) -> tuple[Row | None, _Attempt]:
    """Return the Row of an evaluation that has ended; None if its process died and it resumes in another one."""
    try:
        return future.result(), attempt
    except BrokenProcessPool as error:
        cause = _cause(error, attempt.kills)
        attempt.process.replace()
        attempt = replace(attempt, deaths=attempt.deaths.with_death())
    except UserError:
        raise
    except Exception as error:  # before training, such as a lack of memory for the data
        return failed_row(attempt.job, reason_of_failure(error)), attempt
    return attempt.deaths.row(cause), attempt


def _cause(error: BrokenProcessPool, kills_before: int | None) -> str:
    """Return the cause of a process's death: its exit code, and whether the kernel killed it for lack of memory."""
    match = re.search(r"exit codes of the workers are \{(.+?)\}", str(error))  # only loky's message has the exit code
    reason = f"{PROCESS_DIED} ({match[1]})" if match else PROCESS_DIED
    kills = oom_kills()
    if kills is None or kills_before is None or kills == kills_before or "SIGKILL" not in reason:
        return reason
    return f"{OUT_OF_MEMORY}: {reason}, and the kernel killed {kills - kills_before} for lack of memory meanwhile"


def _visible_gpus(slot: int, gpus: float | None) -> str | None:
    """Return CUDA_VISIBLE_DEVICES at a slot; None with fewer than two GPUs."""
    if gpus == 0:
        return ""
    gpu_count = torch.cuda.device_count()
    if gpu_count < 2:
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(gpu_count)))).split(",")
    per_evaluation = processes_for(gpus)
    return ",".join(visible[(slot * per_evaluation + number) % gpu_count] for number in range(per_evaluation))


def _prepare(gpus: str | None, parent: int) -> None:
    """Set up the process before anything uses CUDA, which reads its variable once."""
    # Ctrl-C reaches every process of a terminal; only the coordinator handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare_process(parent)
    show_notices()
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus


def evaluate_within(job: EvaluationJob, processes: int, memory: int | None) -> Row:
    """Evaluate within a memory limit, in addition to the memory that the task's own code takes."""
    if memory is None:
        return evaluate_distributed(job, processes)
    task_of(job.task, job.data)
    limit_memory(memory)
    row = evaluate_distributed(job, processes)
    if ran_out_of_memory(row) and not is_gpu_error(row):
        return replace(row, error=f"{row.error} (--trial-memory)")
    return row
