"""What is said of a process that died, and of an evaluation that could not begin to train."""

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any

import pytest

from nas.jobs import EvaluationJob
from nas.workers import local_processes
from results.row import Row
from search_spaces.errors import UserError
from toy_rows import LITTLE, a_row
from toy_searches import TOYS

JOB = EvaluationJob(
    task=f"{TOYS}:Toy",
    architecture=LITTLE,
    preset="smoke",
)


@dataclass
class Attempt:
    """An evaluation under way, as far as it is looked at here."""

    job: EvaluationJob = JOB


def failed(error: BaseException) -> "Future[Row]":
    future: Future[Row] = Future()
    future.set_exception(error)
    return future


@pytest.mark.parametrize(
    ("ended", "kills", "said"),
    [
        ("SIGKILL(-9)", 3, "out-of-memory: its process died (SIGKILL(-9)), and the kernel ended 1 for lack of memory"),
        ("SIGKILL(-9)", 2, "its process died (SIGKILL(-9))"),
        ("SIGKILL(-9)", None, "its process died (SIGKILL(-9))"),
        ("SIGSEGV(-11)", 3, "its process died (SIGSEGV(-11))"),
    ],
)
def test_only_a_kill_that_the_kernel_counted_is_blamed_on_memory(
    ended: str, kills: int | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_processes, "kills_for_memory", lambda: kills)
    error = BrokenProcessPool(f"A worker died.\nThe exit codes of the workers are {{{ended}}}")
    cause = local_processes._cause(error, 2)
    assert cause.startswith(said)
    assert ("out-of-memory" in cause) == ("out-of-memory" in said)


def test_a_task_may_have_its_data_loaded_by_processes_of_its_own() -> None:
    with local_processes.LocalProcesses(1) as processes:
        processes.submit(replace(JOB, task=f"{TOYS}:Loading"))
        ((_, row),) = processes.collect()
    assert (row.status, row.error) == ("complete", None)


def test_a_place_has_processes_of_its_own() -> None:
    with local_processes.LocalProcesses(0) as processes:
        for place in (0, 1, 0, 1):
            processes.submit(JOB, place)
            ((_, row),) = processes.collect()
            assert (row.status, row.error) == ("complete", None)
        assert [process.place for process in processes._processes] == [0, 1]
        first, second = (process.pool for process in processes._processes)
        processes.end_idle(1)
        assert processes._processes[0].pool is first
        assert processes._processes[1].pool is not second


def test_the_process_that_was_busy_last_is_begun_with_first() -> None:
    processes = local_processes.LocalProcesses(0)
    first, second = processes._idle_at(0), local_processes.OneProcess(0, None, None)
    processes._idle.append(second)  # so that those whose turn has not come need not be there
    assert processes._idle_at(0) is second
    processes._idle.remove(second)
    assert processes._idle_at(0) is first


def test_data_that_do_not_fit_fail_their_trial_and_not_the_search() -> None:
    attempt: Any = Attempt()
    row, same = local_processes._outcome(failed(MemoryError()), attempt)
    assert row is not None
    assert (row.status, row.error) == ("failed", "out-of-memory: MemoryError")
    assert same is attempt


def test_what_is_the_users_to_mend_ends_the_search() -> None:
    attempt: Any = Attempt()
    with pytest.raises(UserError, match="no data"):
        local_processes._outcome(failed(UserError("there is no data.")), attempt)


class Interrupted:
    """A process that is being begun as Ctrl-C comes."""

    def __init__(self, *place: Any) -> None:
        self.pool, self.ended = self, False

    def submit(self, job: EvaluationJob) -> "Future[Row]":
        raise KeyboardInterrupt

    def shutdown(self, *, wait: bool, kill_workers: bool) -> None:
        self.ended = kill_workers


def test_a_search_that_has_ended_waits_for_no_process_to_unload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_processes, "OneProcess", Interrupted)
    with local_processes.LocalProcesses(2) as workers:
        processes: Any = workers._processes
    assert [process.ended for process in processes] == [True, True]


def test_a_process_that_was_being_begun_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_processes, "OneProcess", Interrupted)
    workers = local_processes.LocalProcesses(2)
    with pytest.raises(KeyboardInterrupt), workers:
        workers.submit(JOB)
    processes: Any = workers._processes
    assert [process.ended for process in processes] == [True, True]


@pytest.mark.parametrize(
    ("error", "memory", "says"),
    [
        ("out-of-memory: MemoryError", 10**9, "out-of-memory: MemoryError (--trial-memory)"),
        ("out-of-memory: MemoryError", None, "out-of-memory: MemoryError"),
        ("out-of-memory: CUDA out of memory", 10**9, "out-of-memory: CUDA out of memory"),
        ("ValueError: no", 10**9, "ValueError: no"),
        (None, 10**9, None),
    ],
)
def test_memory_that_was_bounded_is_named_where_it_did_not_do(
    monkeypatch: pytest.MonkeyPatch, error: str | None, memory: int | None, says: str | None
) -> None:
    row = a_row(error=error, status="failed", metrics={}) if error else a_row()
    monkeypatch.setattr(local_processes, "task_of", lambda task, data: None)
    monkeypatch.setattr(local_processes, "keep_memory_within", lambda memory: None)
    monkeypatch.setattr(local_processes, "evaluate_together", lambda job, processes: row)
    assert local_processes.evaluate_within(JOB, 1, memory).error == says
