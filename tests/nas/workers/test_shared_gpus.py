"""Evaluations that share GPUs: how many run where, and that results do not depend on it."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import nas
from expect import raises
from nas.evaluation.failures import OUT_OF_MEMORY, TIMED_OUT
from nas.request.job import EvaluationJob, resolve_job, with_identity
from nas.workers import gpu_load, local_processes, shared_gpus
from nas.workers.gpu_load import GpuLoad
from nas.workers.pool import ThisProcess
from nas.workers.shared_gpus import SharedGpus
from results.records.row import Row
from search_spaces.support.errors import UserError
from toy_rows import LITTLE
from toy_searches import TOYS

JOB = EvaluationJob(task=f"{TOYS}:Toy", architecture=LITTLE, preset="smoke")


def jobs(number: int) -> list[EvaluationJob]:
    return [replace(JOB, seed=seed, identity=str(seed)) for seed in range(number)]


def at_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure loads at every call, of evaluations that train at once; one load is enough."""
    monkeypatch.setattr(shared_gpus, "TICK_S", 0.0)
    monkeypatch.setattr(shared_gpus, "STARTING_S", 0.0)
    monkeypatch.setattr(gpu_load, "ENOUGH_LOADS", 1)


def idle(gpu: int) -> GpuLoad:
    """The load of an idle GPU."""
    return GpuLoad(0.0, 0.0)


class FakeGpus:
    """Fake processes on GPUs; each call of collect ends the oldest evaluation."""

    def __init__(self, *arguments: Any) -> None:
        self.running: list[tuple[EvaluationJob, int]] = []
        self.lately: list[int] = []  # GPUs of the evaluations before the last end
        self.looks: list[list[int]] = []  # the same at every end
        self.starts: list[tuple[str, int]] = []
        self.drains: list[int] = []
        self.quiet = 0  # calls without an end
        self.outcome: Callable[[EvaluationJob, int], str | None] = lambda job, beside: None

    def submit(self, job: EvaluationJob, slot: int) -> None:
        self.running.append((job, slot))
        self.starts.append((job.identity, slot))

    def end_idle(self, slot: int) -> None:
        self.drains.append(slot)

    def collect(self, patience: float) -> list[tuple[EvaluationJob, Row]]:
        if self.quiet:
            self.quiet -= 1
            return []
        self.lately = [slot for _, slot in self.running]
        self.looks.append(self.lately)
        job, slot = self.running.pop(0)
        error = self.outcome(job, sum(where == slot for _, where in self.running))
        self.last = replace(resolve_job(job).row, status="failed" if error else "complete", error=error)
        return [(job, self.last)]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    fake = FakeGpus()
    monkeypatch.setattr(shared_gpus, "LocalProcesses", lambda *arguments: fake)
    at_every_look(monkeypatch)
    return fake


def all_of(pool: SharedGpus, waiting: list[EvaluationJob]) -> tuple[list[tuple[str, str | None]], list[int]]:
    """Run all jobs: identity and error of each Row, and how many ran at once."""
    waiting, running, results, at_once = list(waiting), 0, [], []
    while waiting or running:
        while waiting and running < pool.capacity:
            pool.submit(waiting.pop(0))
            running += 1
        at_once.append(running)
        rows = pool.collect()
        running -= len(rows)
        results += [(job.identity, row.error) for job, row in rows]
    return results, at_once


def test_each_gpu_starts_with_one_evaluation_and_fills_up(fake: FakeGpus) -> None:
    busy = 0.2  # share of the time that an evaluation takes
    pool = SharedGpus(2, 100, read=lambda gpu: GpuLoad(busy * fake.lately.count(gpu), 0.0))
    results, at_once = all_of(pool, jobs(60))
    assert at_once[0] == 2
    assert fake.starts[:2] == [("0", 0), ("1", 1)]
    assert len(results) == len(set(results)) == 60
    assert max(at_once) == 8  # four take 0.8 of a GPU's time, five all of it


def test_busy_gpu_runs_one_evaluation(fake: FakeGpus) -> None:
    _, at_once = all_of(SharedGpus(1, 100, read=lambda gpu: GpuLoad(0.8, 0.0)), jobs(10))
    assert set(at_once) == {1}


def test_new_room_is_used_before_anything_ends(fake: FakeGpus) -> None:
    pool, (first, second, third, fourth, fifth) = SharedGpus(2, 4, read=idle), jobs(5)
    for job in (first, second):
        pool.submit(job)
    fake.quiet = 3
    assert pool.capacity == 2
    assert pool.collect() == []
    assert pool.capacity == 4
    for job in (third, fourth):
        pool.submit(job)
    assert fake.starts == [("0", 0), ("1", 1), ("2", 0), ("3", 1)]
    fake.running.sort(key=lambda evaluation: -evaluation[1])
    for _ in range(3):  # both on GPU 1, and one on GPU 0
        pool.collect()
    pool.submit(fifth)
    assert fake.starts[-1] == ("4", 1)  # the GPU with the least work


def test_evaluations_never_outnumber_workers(fake: FakeGpus) -> None:
    _, at_once = all_of(SharedGpus(2, 3, read=idle), jobs(30))
    assert max(at_once) == 3


GPU_ERROR = f"{OUT_OF_MEMORY}: OutOfMemoryError: CUDA out of memory."


def test_out_of_memory_beside_others_gets_a_retry_alone(fake: FakeGpus, capsys: pytest.CaptureFixture[str]) -> None:
    fake.outcome = lambda job, beside: GPU_ERROR if job.identity == "20" and beside else None
    results, at_once = all_of(SharedGpus(1, 4, read=idle), jobs(40))
    assert sorted(results) == sorted((job.identity, None) for job in jobs(40))
    order = [identity for identity, _ in fake.starts]
    assert order[20:26] == ["20", "21", "22", "23", "20", "24"]  # no other job takes its room
    assert len(order) == 41
    assert fake.drains == [0]
    assert max(at_once) == 4
    assert max(at_once[-12:]) == 3  # never again as many as ran out of memory
    lines = capsys.readouterr().err.splitlines()
    (retry_line,) = (line for line in lines if GPU_ERROR in line)
    assert retry_line.startswith(f"{LITTLE}: ")
    limits = [re.findall(r"\d+", line) for line in lines if line is not retry_line]
    assert limits == [["0", "2"], ["0", "3"], ["0", "4"], ["0", "3"]]  # GPU 0


def test_several_failures_at_once_lower_the_limit_once(fake: FakeGpus) -> None:
    fake.outcome = lambda job, beside: GPU_ERROR if job.identity in {"20", "21", "22"} and beside else None
    results, at_once = all_of(SharedGpus(1, 4, read=idle), jobs(40))
    assert sorted(results) == sorted((job.identity, None) for job in jobs(40))
    order = [identity for identity, _ in fake.starts]
    assert order[20:28] == ["20", "21", "22", "23", "20", "21", "22", "24"]
    assert max(at_once[-12:]) == 3


def test_other_failure_of_a_retry_keeps_the_limit(fake: FakeGpus) -> None:
    fake.outcome = lambda job, beside: (GPU_ERROR if beside else "ValueError: no") if job.identity == "20" else None
    results, at_once = all_of(SharedGpus(1, 4, read=idle), jobs(40))
    assert ("20", "ValueError: no") in results
    assert at_once[-5] == 4


@pytest.mark.parametrize(("fails", "order"), [("0", ["1", "2", "0"]), ("2", ["0", "1", "2"])])
def test_every_evaluation_that_ran_beside_a_failed_one_counts(fails: str, order: list[str], fake: FakeGpus) -> None:
    pool = SharedGpus(1, 3, read=idle)
    fake.quiet = 3
    for job in jobs(3):
        pool.submit(job)
        pool.collect(patience=0.0)
    # The first began alone, and the last ends alone.
    fake.outcome = lambda job, beside: GPU_ERROR if job.identity == fails and not fake.drains else None
    assert pool.capacity == 3
    assert [job.identity for _ in range(3) for job, row in pool.collect() if row.status == "complete"] == order
    assert [identity for identity, _ in fake.starts] == ["0", "1", "2", fails]
    assert pool.capacity == 2


def test_out_of_memory_alone_fails_and_keeps_the_limit(fake: FakeGpus) -> None:
    fake.outcome = lambda job, beside: GPU_ERROR if job.identity in {"3", "7"} else None
    results, at_once = all_of(SharedGpus(1, 2, read=idle), jobs(20))
    assert {identity for identity, error in results if error} == {"3", "7"}
    assert (len(results), len(fake.starts)) == (20, 22)
    assert at_once[-5] == 2


def test_evaluation_alone_on_a_gpu_has_no_retry(fake: FakeGpus) -> None:
    fake.outcome = lambda job, beside: GPU_ERROR if job.identity == "3" else None
    results, _ = all_of(SharedGpus(1, 1, read=idle), jobs(10))
    assert ("3", GPU_ERROR) in results
    assert len(fake.starts) == 10


def test_retry_empties_one_gpu_while_the_other_goes_on(fake: FakeGpus) -> None:
    fake.outcome = lambda job, beside: GPU_ERROR if job.identity == "10" and beside else None
    results, _ = all_of(SharedGpus(2, 4, read=idle), jobs(30))
    assert len(results) == len({identity for identity, error in results if not error}) == 30
    (first, where), (again, there) = (start for start in fake.starts if start[0] == "10")
    assert (first, where) == (again, there)
    assert fake.drains == [where]
    assert max(sum(place == there for place in places) for places in fake.looks[-6:]) == 1
    assert max(sum(place != there for place in places) for places in fake.looks[-12:]) == 3


def test_failures_other_than_cuda_errors_have_no_retry(fake: FakeGpus) -> None:
    errors = {"5": f"{OUT_OF_MEMORY}: MemoryError", "6": "ValueError: no", "7": f"{TIMED_OUT}: too late"}
    fake.outcome = lambda job, beside: errors.get(job.identity)
    results, _ = all_of(SharedGpus(1, 4, read=idle), jobs(10))
    assert {identity: error for identity, error in results if error} == errors
    assert len(fake.starts) == 10


def test_limit_stays_if_a_gpu_stops_telling_its_load(fake: FakeGpus, capsys: pytest.CaptureFixture[str]) -> None:
    looks = []

    def read(gpu: int) -> GpuLoad:
        looks.append(gpu)
        if len(looks) == 4:
            raise UserError("needs-system", "NVML is gone.")
        return idle(gpu)

    results, at_once = all_of(SharedGpus(1, 8, read=read), jobs(30))
    assert len(results) == 30
    assert (max(at_once), len(looks)) == (3, 4)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("NVML is gone. ")
    assert re.findall(r"\d+", last) == ["3"]


def test_load_is_measured_only_at_full_occupancy(fake: FakeGpus) -> None:
    pool, (first, second) = SharedGpus(1, 8, read=idle), jobs(2)
    pool.submit(first)
    fake.quiet = 10
    assert (pool.collect(), pool.capacity) == ([], 2)
    assert (pool.collect(patience=0.0), pool.capacity) == ([], 2)  # one runs where two may
    pool.submit(second)
    assert (pool.collect(), pool.capacity) == ([], 3)


def test_load_counts_only_after_training_begins(
    fake: FakeGpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shared_gpus, "STARTING_S", 1000.0)
    pool, job = SharedGpus(1, 8, read=idle), replace(JOB, identity="0", folder=str(tmp_path))
    pool.submit(job)
    fake.quiet = 5
    assert (pool.collect(patience=0.0), pool.capacity) == ([], 1)
    (tmp_path / "steps").write_text("1 10\n")
    assert (pool.collect(patience=0.0), pool.capacity) == ([], 2)


def search(tmp_path: Path, **arguments: Any) -> None:
    """Begin a search with shared GPUs, which fails and leaves nothing."""
    nas.search(f"{TOYS}:Toy", preset="smoke", storage=f"sqlite:///{tmp_path}/s.db", **arguments)


def test_shared_gpus_refuse_measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    conflicts: list[tuple[dict[str, Any], str]] = [
        ({"objectives": "accuracy,latency_ms"}, "latency_ms"),
        ({"budget": "step_ms<=5"}, "step_ms"),
        ({"profile": True}, "--profile"),
    ]
    for arguments, option in conflicts:
        with raises("conflict", option="--trial-gpus", value="auto", excludes=(option,)):
            search(tmp_path, resources=nas.Resources(trial_gpus="auto"), **arguments)
    assert not list(tmp_path.iterdir())


def test_missing_gpus_are_an_error_before_a_study_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for gpus in ("auto", 0.5, 2):
        with raises("needs-system", option="--trial-gpus", value=gpus):
            search(tmp_path, resources=nas.Resources(trial_gpus=gpus))
    assert not list(tmp_path.iterdir())


def test_shared_gpus_give_the_same_rows_as_one_process(forks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_processes, "ProcessPoolExecutor", forks)
    at_every_look(monkeypatch)
    all_jobs, alone_rows = [with_identity(job) for job in jobs(4)], {}
    with ThisProcess() as alone:
        for job in all_jobs:
            alone.submit(job)
            ((_, row),) = alone.collect()
            alone_rows[job.identity] = row
    shared_rows: dict[str, Row] = {}
    with SharedGpus(1, 2, read=lambda gpu: GpuLoad(0.1, 0.1)) as pool:
        waiting, most = list(all_jobs), 0
        while len(shared_rows) < len(all_jobs):
            while waiting and len(all_jobs) - len(waiting) - len(shared_rows) < pool.capacity:
                pool.submit(waiting.pop(0))
            most = max(most, len(all_jobs) - len(waiting) - len(shared_rows))
            shared_rows.update({job.identity: row for job, row in pool.collect()})
    assert most > 1
    assert {name: (row.metrics, row.test, row.status) for name, row in shared_rows.items()} == {
        name: (row.metrics, row.test, row.status) for name, row in alone_rows.items()
    }
