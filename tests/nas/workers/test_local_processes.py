"""Dead processes of evaluations, and which process an evaluation gets."""

import itertools
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from expect import raises
from nas.evaluation.failures import OUT_OF_MEMORY
from nas.request.job import EvaluationJob
from nas.workers import local_processes
from nas.workers.attempts import MAX_DEATHS
from nas.workers.local_processes import LocalProcesses
from results.records.row import Row
from search_spaces.support.errors import UserError
from toy_rows import LITTLE, a_row
from toy_searches import TOYS

JOB = EvaluationJob(task=f"{TOYS}:Toy", architecture=LITTLE, preset="smoke")


@dataclass(eq=False)
class FakeProcess:
    """A fake process: a test ends its evaluations, or they end at once with `error`."""

    slot: int
    error: BaseException | None = None
    replacements: int = 0
    is_killed: bool = False
    futures: "list[Future[Row]]" = field(default_factory=list)

    @property
    def pool(self) -> "FakeProcess":
        return self

    def submit(self, job: EvaluationJob) -> "Future[Row]":
        if isinstance(self.error, KeyboardInterrupt):
            raise self.error
        self.futures.append(Future())
        if self.error:
            self.futures[-1].set_exception(self.error)
        return self.futures[-1]

    def replace(self) -> None:
        self.replacements += 1

    def shutdown(self, *, wait: bool, kill_workers: bool) -> None:
        self.is_killed = kill_workers


Script = Callable[..., list[FakeProcess]]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Replace real processes by fake ones; return the list of those that start."""

    def run(error: BaseException | None = None) -> list[FakeProcess]:
        processes: list[FakeProcess] = []

        def begin(slot: int, memory: int | None, gpus: float | None) -> FakeProcess:
            processes.append(FakeProcess(slot, error))
            return processes[-1]

        monkeypatch.setattr(local_processes, "SingleProcessPool", begin)
        return processes

    return run


@pytest.mark.outside
def test_task_may_load_its_data_by_further_processes() -> None:
    with LocalProcesses(1) as processes:  # a real one
        processes.submit(replace(JOB, task=f"{TOYS}:Loading"))
        ((_, row),) = processes.collect()
    assert (row.status, row.error) == ("complete", None)


def row_of(script: Script, error: BaseException) -> tuple[Row, int]:
    """The Row of an evaluation that always ends with this error, and the number of its process's replacements."""
    (processes, pool) = (script(error), LocalProcesses(1))
    pool.submit(JOB)
    ((job, row),) = pool.collect()
    assert job is JOB
    return row, processes[0].replacements


def test_only_kills_that_the_kernel_counted_are_out_of_memory(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    for exit_code, kills, for_memory in (
        ("SIGKILL(-9)", 3, True),
        ("SIGKILL(-9)", 2, False),
        ("SIGKILL(-9)", None, False),
        ("SIGSEGV(-11)", 3, False),
    ):
        counts = itertools.cycle([2, kills])  # before and after each death
        monkeypatch.setattr(local_processes, "oom_kills", lambda counts=counts: next(counts))
        error = BrokenProcessPool(f"A worker died.\nThe exit codes of the workers are {{{exit_code}}}")
        row, replacements = row_of(script, error)
        assert (row.status, replacements) == ("failed", MAX_DEATHS)
        assert row.error is not None
        assert f"({exit_code})" in row.error
        assert row.error.startswith(OUT_OF_MEMORY) is for_memory


def test_data_that_does_not_fit_into_memory_fails_its_trial_alone(script: Script) -> None:
    row, replacements = row_of(script, MemoryError())
    assert (row.status, row.error, replacements) == ("failed", f"{OUT_OF_MEMORY}: MemoryError", 0)


def test_user_error_of_an_evaluation_ends_the_search(script: Script) -> None:
    with raises("missing-data", option="--data"):
        row_of(script, UserError("missing-data", "there is no data.", option="--data"))


def test_each_slot_has_its_own_processes_and_the_last_busy_one_is_used_first(script: Script) -> None:
    processes, pool = script(), LocalProcesses(0)
    for slot in (0, 1, 0):
        pool.submit(JOB, slot)
    first, other, second = processes
    assert [process.slot for process in processes] == [0, 1, 0]
    for process in (first, second, other):
        process.futures[-1].set_result(a_row())
        assert len(pool.collect()) == 1
    pool.end_idle(1)
    assert [process.replacements for process in processes] == [0, 1, 0]
    pool.submit(JOB, 0)
    assert (len(first.futures), len(second.futures)) == (1, 2)
    pool.submit(JOB, 0)
    assert (len(first.futures), len(second.futures)) == (2, 2)
    assert pool.capacity == len(processes) == 3


def test_end_kills_all_processes_also_after_an_interrupt(script: Script) -> None:
    processes = script()
    with LocalProcesses(2):
        pass
    assert [process.is_killed for process in processes] == [True, True]
    processes = script(KeyboardInterrupt())
    pool = LocalProcesses(2)
    with pytest.raises(KeyboardInterrupt), pool:
        pool.submit(JOB)
    assert [process.is_killed for process in processes] == [True, True]


def test_failure_for_bounded_memory_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = []
    monkeypatch.setattr(local_processes, "task_of", lambda task, data: None)
    monkeypatch.setattr(local_processes, "limit_memory", lambda memory: None)
    monkeypatch.setattr(local_processes, "evaluate_distributed", lambda job, processes: rows[-1])
    out = f"{OUT_OF_MEMORY}: MemoryError"
    cases: list[tuple[str | None, int | None, str | None]] = [
        (out, 10**9, f"{out} (--trial-memory)"),
        (out, None, out),
        (f"{OUT_OF_MEMORY}: CUDA out of memory", 10**9, f"{OUT_OF_MEMORY}: CUDA out of memory"),
        ("ValueError: no", 10**9, "ValueError: no"),
        (None, 10**9, None),
    ]
    reasons: list[Any] = []
    for error, memory, _ in cases:
        rows.append(a_row(error=error, status="failed", metrics={}) if error else a_row())
        reasons.append((error, memory, local_processes.evaluate_within(JOB, 1, memory).error))
    assert reasons == cases
