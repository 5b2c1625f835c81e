"""Evaluations that share GPUs: how many run on which, and that results do not depend on what else runs there."""

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
from nas.request.job import EvaluationJob, resolve_job
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
    """Have loads measured at every look, of evaluations that train at once, and one load be enough."""
    monkeypatch.setattr(shared_gpus, "TICK_S", 0.0)
    monkeypatch.setattr(shared_gpus, "STARTING_S", 0.0)
    monkeypatch.setattr(gpu_load, "ENOUGH_LOADS", 1)


def idle(gpu: int) -> GpuLoad:
    """What a GPU says that nothing is on."""
    return GpuLoad(0.0, 0.0)


class Scripted:
    """Processes on a GPU of which one evaluation ends whenever it is asked, the first that was begun first."""

    def __init__(self, *arguments: Any) -> None:
        self.running: list[tuple[EvaluationJob, int]] = []
        self.lately: list[int] = []  # where evaluations ran until one of them ended
        self.looks: list[list[int]] = []  # the same, at every end
        self.begun: list[tuple[str, int]] = []
        self.emptied: list[int] = []
        self.quiet = 0  # so many seconds pass without an end
        self.outcome: Callable[[EvaluationJob, int], str | None] = lambda job, beside: None

    def submit(self, job: EvaluationJob, place: int) -> None:
        self.running.append((job, place))
        self.begun.append((job.identity, place))

    def end_idle(self, place: int) -> None:
        self.emptied.append(place)

    def collect(self, patience: float) -> list[tuple[EvaluationJob, Row]]:
        if self.quiet:
            self.quiet -= 1
            return []
        self.lately = [place for _, place in self.running]
        self.looks.append(self.lately)
        job, place = self.running.pop(0)
        error = self.outcome(job, sum(where == place for _, where in self.running))
        self.last = replace(resolve_job(job).row, status="failed" if error else "complete", error=error)
        return [(job, self.last)]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    processes = Scripted()
    monkeypatch.setattr(shared_gpus, "LocalProcesses", lambda *arguments: processes)
    at_every_look(monkeypatch)
    return processes


def all_of(pool: SharedGpus, waiting: list[EvaluationJob]) -> tuple[list[tuple[str, str | None]], list[int]]:
    """Identity and error of each Row as it comes, and how many ran at once."""
    waiting, running, ended, at_once = list(waiting), 0, [], []
    while waiting or running:
        while waiting and running < pool.capacity:
            pool.submit(waiting.pop(0))
            running += 1
        at_once.append(running)
        found = pool.collect()
        running -= len(found)
        ended += [(job.identity, row.error) for job, row in found]
    return ended, at_once


def test_each_gpu_starts_with_one_evaluation_and_fills_up(scripted: Scripted) -> None:
    busy = 0.2  # of its time, for each evaluation that runs there
    pool = SharedGpus(2, 100, read=lambda gpu: GpuLoad(busy * scripted.lately.count(gpu), 0.0))
    ended, at_once = all_of(pool, jobs(60))
    assert at_once[0] == 2
    assert scripted.begun[:2] == [("0", 0), ("1", 1)]
    assert len(ended) == len(set(ended)) == 60
    assert max(at_once) == 8  # four on each take 0.8 of its time, five would take all


def test_busy_gpu_is_not_shared(scripted: Scripted) -> None:
    _, at_once = all_of(SharedGpus(1, 100, read=lambda gpu: GpuLoad(0.8, 0.0)), jobs(10))
    assert set(at_once) == {1}


def test_new_room_is_used_before_anything_ends(scripted: Scripted) -> None:
    pool, (first, second, third, fourth, fifth) = SharedGpus(2, 4, read=idle), jobs(5)
    for job in (first, second):
        pool.submit(job)
    scripted.quiet = 3
    assert pool.capacity == 2
    assert pool.collect() == []
    assert pool.capacity == 4
    for job in (third, fourth):
        pool.submit(job)
    assert scripted.begun == [("0", 0), ("1", 1), ("2", 0), ("3", 1)]
    scripted.running.sort(key=lambda one: -one[1])
    for _ in range(3):  # both on GPU 1, and one of the two on GPU 0
        pool.collect()
    pool.submit(fifth)
    assert scripted.begun[-1] == ("4", 1)  # on the one that has the least to do


def test_number_of_workers_is_never_exceeded(scripted: Scripted) -> None:
    _, at_once = all_of(SharedGpus(2, 3, read=idle), jobs(30))
    assert max(at_once) == 3


CROWDED = f"{OUT_OF_MEMORY}: OutOfMemoryError: CUDA out of memory."


def test_out_of_memory_beside_others_is_retried_alone(scripted: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.outcome = lambda job, beside: CROWDED if job.identity == "20" and beside else None
    ended, at_once = all_of(SharedGpus(1, 4, read=idle), jobs(40))
    assert sorted(ended) == sorted((job.identity, None) for job in jobs(40))
    begun = [identity for identity, _ in scripted.begun]
    assert begun[20:26] == ["20", "21", "22", "23", "20", "24"]  # nothing takes the room that it waits for
    assert len(begun) == 41
    assert scripted.emptied == [0]
    assert max(at_once) == 4
    assert max(at_once[-12:]) == 3  # and never again as many as did not find room together
    said = capsys.readouterr().err.splitlines()
    (retried,) = (line for line in said if CROWDED in line)
    assert retried.startswith(f"{LITTLE}: ")
    limits = [re.findall(r"\d+", line) for line in said if line is not retried]
    assert limits == [["0", "2"], ["0", "3"], ["0", "4"], ["0", "3"]]  # of GPU 0


def test_several_failures_at_once_lower_the_limit_once(scripted: Scripted) -> None:
    scripted.outcome = lambda job, beside: CROWDED if job.identity in {"20", "21", "22"} and beside else None
    ended, at_once = all_of(SharedGpus(1, 4, read=idle), jobs(40))
    assert sorted(ended) == sorted((job.identity, None) for job in jobs(40))
    begun = [identity for identity, _ in scripted.begun]
    assert begun[20:28] == ["20", "21", "22", "23", "20", "21", "22", "24"]
    assert max(at_once[-12:]) == 3


def test_other_failure_of_a_retry_keeps_the_limit(scripted: Scripted) -> None:
    scripted.outcome = lambda job, beside: (CROWDED if beside else "ValueError: no") if job.identity == "20" else None
    ended, at_once = all_of(SharedGpus(1, 4, read=idle), jobs(40))
    assert ("20", "ValueError: no") in ended
    assert at_once[-5] == 4


@pytest.mark.parametrize(("fails", "order"), [("0", ["1", "2", "0"]), ("2", ["0", "1", "2"])])
def test_every_evaluation_that_ran_beside_a_failed_one_counts(fails: str, order: list[str], scripted: Scripted) -> None:
    pool = SharedGpus(1, 3, read=idle)
    scripted.quiet = 3
    for job in jobs(3):
        pool.submit(job)
        pool.collect(patience=0.0)
    # The first one began alone, and the last one ends alone.
    scripted.outcome = lambda job, beside: CROWDED if job.identity == fails and not scripted.emptied else None
    assert pool.capacity == 3
    assert [job.identity for _ in range(3) for job, row in pool.collect() if row.status == "complete"] == order
    assert [identity for identity, _ in scripted.begun] == ["0", "1", "2", fails]
    assert pool.capacity == 2


def test_out_of_memory_alone_fails_and_keeps_the_limit(scripted: Scripted) -> None:
    scripted.outcome = lambda job, beside: CROWDED if job.identity in {"3", "7"} else None
    ended, at_once = all_of(SharedGpus(1, 2, read=idle), jobs(20))
    assert {identity for identity, error in ended if error} == {"3", "7"}
    assert (len(ended), len(scripted.begun)) == (20, 22)
    assert at_once[-5] == 2


def test_nothing_is_retried_if_nothing_was_shared(scripted: Scripted) -> None:
    scripted.outcome = lambda job, beside: CROWDED if job.identity == "3" else None
    ended, _ = all_of(SharedGpus(1, 1, read=idle), jobs(10))
    assert ("3", CROWDED) in ended
    assert len(scripted.begun) == 10


def test_retry_empties_one_gpu_while_the_other_goes_on(scripted: Scripted) -> None:
    scripted.outcome = lambda job, beside: CROWDED if job.identity == "10" and beside else None
    ended, _ = all_of(SharedGpus(2, 4, read=idle), jobs(30))
    assert len(ended) == len({identity for identity, error in ended if not error}) == 30
    (first, where), (again, there) = (one for one in scripted.begun if one[0] == "10")
    assert (first, where) == (again, there)
    assert scripted.emptied == [where]
    assert max(sum(place == there for place in places) for places in scripted.looks[-6:]) == 1
    assert max(sum(place != there for place in places) for places in scripted.looks[-12:]) == 3


def test_failures_that_are_not_of_cuda_are_not_retried(scripted: Scripted) -> None:
    errors = {"5": f"{OUT_OF_MEMORY}: MemoryError", "6": "ValueError: no", "7": f"{TIMED_OUT}: too late"}
    scripted.outcome = lambda job, beside: errors.get(job.identity)
    ended, _ = all_of(SharedGpus(1, 4, read=idle), jobs(10))
    assert {identity: error for identity, error in ended if error} == errors
    assert len(scripted.begun) == 10


def test_limit_stays_if_a_gpu_stops_telling_its_load(scripted: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    looks = []

    def read(gpu: int) -> GpuLoad:
        looks.append(gpu)
        if len(looks) == 4:
            raise UserError("needs-system", "NVML is gone.")
        return idle(gpu)

    ended, at_once = all_of(SharedGpus(1, 8, read=read), jobs(30))
    assert len(ended) == 30
    assert (max(at_once), len(looks)) == (3, 4)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("NVML is gone. ")
    assert re.findall(r"\d+", last) == ["3"]


def test_load_is_measured_only_at_full_occupancy(scripted: Scripted) -> None:
    pool, (first, second) = SharedGpus(1, 8, read=idle), jobs(2)
    pool.submit(first)
    scripted.quiet = 10
    assert (pool.collect(), pool.capacity) == ([], 2)
    assert (pool.collect(patience=0.0), pool.capacity) == ([], 2)  # one trains, and there may be two
    pool.submit(second)
    assert (pool.collect(), pool.capacity) == ([], 3)


def test_load_is_measured_only_once_training_has_begun(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shared_gpus, "STARTING_S", 1000.0)
    pool, job = SharedGpus(1, 8, read=idle), replace(JOB, identity="0", folder=str(tmp_path))
    pool.submit(job)
    scripted.quiet = 5
    assert (pool.collect(patience=0.0), pool.capacity) == ([], 1)
    (tmp_path / "steps").write_text("1 10\n")
    assert (pool.collect(patience=0.0), pool.capacity) == ([], 2)


def searched(tmp_path: Path, **arguments: Any) -> None:
    """Begin a search with shared GPUs, which is refused and leaves nothing."""
    nas.search(f"{TOYS}:Toy", preset="smoke", storage=f"sqlite:///{tmp_path}/s.db", **arguments)


def test_shared_gpus_refuse_measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    wanting: list[tuple[dict[str, Any], str]] = [
        ({"objectives": "accuracy,latency_ms"}, "latency_ms"),
        ({"budget": "step_ms<=5"}, "step_ms"),
        ({"profile": True}, "--profile"),
    ]
    for arguments, named in wanting:
        with raises("conflict", option="--trial-gpus", value="auto", excludes=(named,)):
            searched(tmp_path, resources=nas.Resources(trial_gpus="auto"), **arguments)
    assert not list(tmp_path.iterdir())


def test_missing_gpus_are_refused_before_a_study_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for gpus in ("auto", 0.5, 2):
        with raises("needs-system", option="--trial-gpus", value=gpus):
            searched(tmp_path, resources=nas.Resources(trial_gpus=gpus))
    assert not list(tmp_path.iterdir())


def test_shared_gpus_give_the_same_rows_as_one_process(forks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_processes, "ProcessPoolExecutor", forks)
    at_every_look(monkeypatch)
    wanted, found = jobs(4), {}
    with ThisProcess() as alone:
        for job in wanted:
            alone.submit(job)
            ((_, row),) = alone.collect()
            found[job.identity] = row
    shared: dict[str, Row] = {}
    with SharedGpus(1, 2, read=lambda gpu: GpuLoad(0.1, 0.1)) as pool:
        waiting, most = list(wanted), 0
        while len(shared) < len(wanted):
            while waiting and len(wanted) - len(waiting) - len(shared) < pool.capacity:
                pool.submit(waiting.pop(0))
            most = max(most, len(wanted) - len(waiting) - len(shared))
            shared.update({job.identity: row for job, row in pool.collect()})
    assert most > 1
    assert {name: (row.metrics, row.test, row.status) for name, row in shared.items()} == {
        name: (row.metrics, row.test, row.status) for name, row in found.items()
    }
