"""Evaluations on Ray, in the worker and in the coordinator; real clusters are in tests/chaos."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from expect import check, raises, warns
from nas.evaluation.evaluate import evaluate
from nas.request.job import EvaluationJob, identity, reload_task
from nas.workers.attempts import MAX_NODES, NODE_DIED
from nas.workers.pool import make_pool
from nas.workers.ray import task
from nas.workers.ray.task import Assignment, evaluate_assignment, has_begun, stamp_of
from nas.workers.resources import Resources
from results.records.row import Row
from search_spaces.support.errors import Notice, UserError
from toy_rows import a_row
from toy_searches import TOYS


def assignment_in(folder: Path, kind: str, memory: int | None = None, **changes: Any) -> Assignment:
    """An evaluation of a toy task; its stamp is in the shared folder."""
    task = reload_task(f"{TOYS}:{kind}", None)
    architecture = replace(task.base, **changes)
    job = EvaluationJob(task=f"{TOYS}:{kind}", architecture=architecture, preset="smoke", folder=str(folder / "one"))
    stamp_of(job, "first").touch()
    return Assignment(replace(job, identity=identity(job)), "first", memory, 0, False)


@pytest.fixture
def assignment_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Assignment]:
    monkeypatch.setattr(task, "_prepare", lambda *words: None)  # this process is no worker
    monkeypatch.setattr(platform, "node", lambda: "a-node")
    return partial(assignment_in, tmp_path)


def test_worker_marks_its_beginning_and_gives_the_same_row(assignment_of: Callable[..., Assignment]) -> None:
    assignment = assignment_of("Toy")
    assert not has_begun(assignment.job, "first")
    row, notices = evaluate_assignment(assignment)
    assert row.metrics == evaluate(replace(assignment.job, folder=None)).metrics
    assert notices == []
    assert has_begun(assignment.job, "first")
    assert not has_begun(assignment.job, "second")


def test_error_of_a_node_without_the_shared_folder_names_node_and_folder(
    assignment_of: Callable[..., Assignment], tmp_path: Path
) -> None:
    assignment = assignment_of("Toy")
    stamp_of(assignment.job, "first").rename(tmp_path / "elsewhere")
    with raises("missing-file", option="--storage", path=str(tmp_path), node="a-node"):
        evaluate_assignment(assignment)


def test_each_attempt_has_its_own_stamp(assignment_of: Callable[..., Assignment]) -> None:
    assignment = assignment_of("Toy")
    stamp_of(assignment.job, "second").touch()
    evaluate_assignment(assignment)
    shutil.rmtree(str(assignment.job.folder), ignore_errors=True)  # as if the first one's Row were stored
    assert not has_begun(assignment.job, "second")
    evaluate_assignment(replace(assignment, attempt="second"))
    assert has_begun(assignment.job, "second")


def test_error_of_a_node_with_another_file_of_the_task_names_both(
    assignment_of: Callable[..., Assignment], tmp_path: Path
) -> None:
    other_file, assignment = tmp_path / "toy_tasks.py", assignment_of("Toy")
    other_file.write_text(f"{TOYS.read_text()}\n# changed\n")
    with raises("mismatch", option="task", value=f"{other_file}:Toy", node="a-node"):
        evaluate_assignment(replace(assignment, job=replace(assignment.job, task=f"{other_file}:Toy")))


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded on Linux")


@LINUX
def test_notices_travel_with_the_row(
    assignment_of: Callable[..., Assignment], forks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "ProcessPoolExecutor", forks)
    for memory in (None, 10**9):  # in this process, and in one of its own
        assignment = assignment_of("Noticing", memory)
        row, notices = evaluate_assignment(assignment)
        assert row.status == "complete"
        (notice,) = notices
        check(notice, "skipped")
        shutil.rmtree(str(assignment.job.folder))


@LINUX
def test_death_of_the_process_of_bounded_memory_ends_the_worker(
    assignment_of: Callable[..., Assignment], forks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, leave = os.getpid(), os._exit
    monkeypatch.setattr(task, "ProcessPoolExecutor", forks)
    monkeypatch.setattr(os, "_exit", lambda status: sys.exit(status) if os.getpid() == here else leave(status))
    with pytest.raises(SystemExit) as end:
        evaluate_assignment(assignment_of("Deadly", 10**9, depth=1, heads=1))
    assert end.value.code == 1


def without_ray() -> None:
    """Import the search's modules anew, without Ray."""
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("nas", "ray"):
            del sys.modules[name]
    for name in ("nas.engine.run", "nas.api.compare", "nas.workers.ray.task"):
        import_module(name)
    assert "ray" not in sys.modules


def test_ray_is_imported_only_on_demand(status_of_fork: Callable[[Callable[[], object]], int | None]) -> None:
    assert status_of_fork(without_ray) == 0


def test_missing_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with raises("needs-extra", option="--workers", value="ray", extra="ray"):
        make_pool(Resources("ray"), 1)


class Cluster:
    """A fake cluster whose evaluations end with `outcomes`, one after the other."""

    has_gpus = False

    def __init__(self) -> None:
        self.free = 0
        self.outcomes: Iterator[Any] = iter(())
        self.assignments: list[Assignment] = []

    def room(self, request: Any) -> int:
        return self.free

    def answer(self, function: Any) -> tuple[object, "Future[Any]"]:
        outcome, future = next(self.outcomes), Future[Any]()
        if isinstance(outcome, KeyboardInterrupt):
            raise outcome
        self.assignments += function.args
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
        return object(), future

    def head_error(self, problem: str) -> UserError:
        return UserError("unavailable", f"the head {problem}.", cluster="ray://there")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def pool(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Workers on the fake cluster."""
    workers: Any = pytest.importorskip("nas.workers.ray.workers")
    monkeypatch.setattr(workers, "RayCluster", lambda address: cluster)
    return make_pool(Resources("ray"), 1)


def test_paths_of_a_job_are_absolute_on_nodes(
    cluster: Cluster, pool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("set").mkdir()
    base = reload_task(f"{TOYS}:Toy", None).base
    job = EvaluationJob(
        task="my.py:Toy",
        architecture=base,
        preset="smoke",
        data="set",
        folder="a/b",
        network_folder="n",
        store="sqlite:///x",
    )
    hub_job = replace(job, task="goal:FetchReach-v4", data="allenai/c4")
    cluster.outcomes = iter([None] * 3)
    for next_job in (job, hub_job, replace(job, task="digits-vit")):
        pool.submit(next_job)
    file_job, hub_job, digits_job = (assignment.job for assignment in cluster.assignments)
    assert file_job.task == f"{tmp_path}/my.py:Toy"
    assert (file_job.data, file_job.folder, file_job.network_folder) == (
        f"{tmp_path}/set",
        f"{tmp_path}/a/b",
        f"{tmp_path}/n",
    )
    assert file_job.store is None
    assert (hub_job.task, hub_job.data) == ("goal:FetchReach-v4", "allenai/c4")
    assert digits_job.task == "digits-vit"


def test_evaluation_fails_if_its_nodes_die_again_and_again(
    assignment_of: Callable[..., Assignment],
    cluster: Cluster,
    pool: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from ray.exceptions import NodeDiedError

    job, before = assignment_of("Toy").job, sorted(tmp_path.iterdir())
    cluster.outcomes = iter([NodeDiedError("gone")] * MAX_NODES)
    pool.submit(job)
    ((same_job, row),) = pool.collect()
    assert (same_job, row.status) == (job, "failed")
    assert str(row.error).startswith(NODE_DIED)
    assert f" {MAX_NODES} " in row.error
    assert len({assignment.attempt for assignment in cluster.assignments}) == MAX_NODES
    assert capsys.readouterr().err.count(f"{job.architecture}: ") == MAX_NODES - 1
    assert sorted(tmp_path.iterdir()) == before


def test_lack_of_room_for_another_evaluation_is_printed_once(
    cluster: Cluster, pool: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.free = 2
    assert pool.capacity == 3
    assert capsys.readouterr().err == ""
    cluster.free = 0
    assert [pool.capacity, pool.capacity] == [1, 1]
    (line,) = capsys.readouterr().err.splitlines()
    assert "CPU 1" in line


def test_interrupted_submission_leaves_nothing_to_begin(
    assignment_of: Callable[..., Assignment], cluster: Cluster, pool: Any, tmp_path: Path
) -> None:
    job, before = assignment_of("Toy").job, sorted(tmp_path.iterdir())
    cluster.outcomes = iter([KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        pool.submit(job)
    assert (sorted(tmp_path.iterdir()), pool.collect(patience=0.0)) == (before, [])


def test_finished_row_is_kept_if_another_evaluation_raises(
    assignment_of: Callable[..., Assignment], cluster: Cluster, pool: Any
) -> None:
    job, row = assignment_of("Toy").job, a_row()
    notice = Notice("skipped", "something was left out.", option="any")
    cluster.outcomes = iter([(row, [notice]), ConnectionError("gone")])
    for _ in range(2):
        pool.submit(job)
    with warns("skipped", option="any"):
        rows: list[tuple[EvaluationJob, Row]] = pool.collect()
    assert rows == [(job, row)]
    with raises("unavailable", cluster="ray://there"):
        pool.collect()


def test_errors_of_ray_and_of_its_workers_are_told_apart(
    assignment_of: Callable[..., Assignment], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers: Any = pytest.importorskip("nas.workers.ray.workers")
    from ray.exceptions import RayError, RayTaskError

    monkeypatch.setattr(workers, "RayCluster", lambda address: cluster)
    job = assignment_of("Toy").job

    def outcome(error: BaseException) -> Any:
        cluster.outcomes = iter([error])
        pool = workers.RayWorkers("ray", Resources())
        pool.submit(job)
        return pool.collect()

    with raises("failed", cause="RayError"):
        outcome(RayError("no"))
    with raises("needs-extra", module="there"):
        outcome(RayTaskError("call", "", ImportError("No module named 'there'", name="there")))
    with raises("mismatch", task="any"):
        outcome(RayTaskError("call", "", UserError("mismatch", "they are others.", task="any")))
    ((_, row),) = outcome(RayTaskError("call", "", KeyError("x")))
    assert (row.status, row.error) == ("failed", "KeyError: 'x'")
