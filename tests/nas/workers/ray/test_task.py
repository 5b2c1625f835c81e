"""Evaluations on Ray, on the side of the worker and of the coordinator; real clusters are in tests/chaos."""

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
from nas.workers.pool import pool_of
from nas.workers.ray import task
from nas.workers.ray.task import Assignment, evaluate_assignment, has_begun, stamp_of
from nas.workers.resources import Resources
from results.records.row import Row
from search_spaces.support.errors import Notice, UserError
from toy_rows import a_row
from toy_searches import TOYS


def assigned_to(folder: Path, kind: str, memory: int | None = None, **changes: Any) -> Assignment:
    """An evaluation of a toy task, whose stamp is in the folder that is shared."""
    task = reload_task(f"{TOYS}:{kind}", None)
    architecture = replace(task.base, **changes)
    job = EvaluationJob(task=f"{TOYS}:{kind}", architecture=architecture, preset="smoke", folder=str(folder / "one"))
    stamp_of(job, "first").touch()
    return Assignment(replace(job, identity=identity(job)), "first", memory, 0, False)


@pytest.fixture
def assigned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Assignment]:
    monkeypatch.setattr(task, "_prepare", lambda *words: None)  # this process is not a worker's
    monkeypatch.setattr(platform, "node", lambda: "a-node")
    return partial(assigned_to, tmp_path)


def test_worker_marks_its_beginning_and_gives_the_same_row(assigned: Callable[..., Assignment]) -> None:
    one = assigned("Toy")
    assert not has_begun(one.job, "first")
    row, notices = evaluate_assignment(one)
    assert row.metrics == evaluate(replace(one.job, folder=None)).metrics
    assert notices == []
    assert has_begun(one.job, "first")
    assert not has_begun(one.job, "second")


def test_error_of_a_node_without_the_shared_folder_names_node_and_folder(
    assigned: Callable[..., Assignment], tmp_path: Path
) -> None:
    one = assigned("Toy")
    stamp_of(one.job, "first").rename(tmp_path / "elsewhere")
    with raises("missing-file", option="--storage", path=str(tmp_path), node="a-node"):
        evaluate_assignment(one)


def test_each_attempt_has_its_own_stamp(assigned: Callable[..., Assignment]) -> None:
    one = assigned("Toy")
    stamp_of(one.job, "second").touch()
    evaluate_assignment(one)
    shutil.rmtree(str(one.job.folder), ignore_errors=True)  # as where the first one's Row is stored
    assert not has_begun(one.job, "second")
    evaluate_assignment(replace(one, attempt="second"))
    assert has_begun(one.job, "second")


def test_error_of_a_node_with_another_file_of_the_task_names_both(
    assigned: Callable[..., Assignment], tmp_path: Path
) -> None:
    changed, one = tmp_path / "toy_tasks.py", assigned("Toy")
    changed.write_text(f"{TOYS.read_text()}\n# changed\n")
    with raises("mismatch", task=f"{changed}:Toy", node="a-node"):
        evaluate_assignment(replace(one, job=replace(one.job, task=f"{changed}:Toy")))


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded on Linux")


@LINUX
def test_notices_travel_with_the_row(
    assigned: Callable[..., Assignment], forks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "ProcessPoolExecutor", forks)
    for memory in (None, 10**9):  # here, and in a process of its own
        one = assigned("Noticing", memory)
        row, notices = evaluate_assignment(one)
        assert row.status == "complete"
        (notice,) = notices
        check(notice, "skipped")
        shutil.rmtree(str(one.job.folder))


@LINUX
def test_death_of_the_process_of_bounded_memory_ends_the_worker(
    assigned: Callable[..., Assignment], forks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, leave = os.getpid(), os._exit
    monkeypatch.setattr(task, "ProcessPoolExecutor", forks)
    monkeypatch.setattr(os, "_exit", lambda status: sys.exit(status) if os.getpid() == here else leave(status))
    with pytest.raises(SystemExit) as ended:
        evaluate_assignment(assigned("Deadly", 10**9, depth=1, heads=1))
    assert ended.value.code == 1


def without_ray() -> None:
    """Import what searches need anew, beside the libraries that are there."""
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
        pool_of(Resources("ray"), 1)


class Cluster:
    """Stands for a cluster: `outcomes` are what evaluations end with, one after the other."""

    has_gpus = False

    def __init__(self) -> None:
        self.free = 0
        self.outcomes: Iterator[Any] = iter(())
        self.submitted: list[Assignment] = []

    def room(self, request: Any) -> int:
        return self.free

    def answer(self, ask: Any) -> tuple[object, "Future[Any]"]:
        outcome, future = next(self.outcomes), Future[Any]()
        if isinstance(outcome, KeyboardInterrupt):
            raise outcome
        self.submitted += ask.args
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
        return object(), future

    def head_error(self, how: str) -> UserError:
        return UserError("unavailable", f"the head {how}.", cluster="ray://there")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def pool(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Workers on that cluster."""
    workers: Any = pytest.importorskip("nas.workers.ray.workers")
    monkeypatch.setattr(workers, "RayCluster", lambda address: cluster)
    return pool_of(Resources("ray"), 1)


def test_paths_of_a_job_are_absolute_on_nodes(
    cluster: Cluster, pool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("set").mkdir()
    base = reload_task(f"{TOYS}:Toy", None).base
    job = EvaluationJob(
        task="my.py:Toy", architecture=base, preset="smoke", data="set", folder="a/b", network="n", store="sqlite:///x"
    )
    named = replace(job, task="goal:FetchReach-v4", data="allenai/c4")
    cluster.outcomes = iter([None] * 3)
    for each in (job, named, replace(job, task="digits-vit")):
        pool.submit(each)
    there, named, installed = (assignment.job for assignment in cluster.submitted)
    assert there.task == f"{tmp_path}/my.py:Toy"
    assert (there.data, there.folder, there.network) == (f"{tmp_path}/set", f"{tmp_path}/a/b", f"{tmp_path}/n")
    assert there.store is None
    assert (named.task, named.data) == ("goal:FetchReach-v4", "allenai/c4")
    assert installed.task == "digits-vit"


def test_evaluation_fails_if_its_nodes_die_again_and_again(
    assigned: Callable[..., Assignment],
    cluster: Cluster,
    pool: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from ray.exceptions import NodeDiedError

    job, before = assigned("Toy").job, sorted(tmp_path.iterdir())
    cluster.outcomes = iter([NodeDiedError("gone")] * MAX_NODES)
    pool.submit(job)
    ((ended, row),) = pool.collect()
    assert (ended, row.status) == (job, "failed")
    assert str(row.error).startswith(NODE_DIED)
    assert f" {MAX_NODES} " in row.error
    assert len({assignment.attempt for assignment in cluster.submitted}) == MAX_NODES
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
    assigned: Callable[..., Assignment], cluster: Cluster, pool: Any, tmp_path: Path
) -> None:
    job, before = assigned("Toy").job, sorted(tmp_path.iterdir())
    cluster.outcomes = iter([KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        pool.submit(job)
    assert (sorted(tmp_path.iterdir()), pool.collect(patience=0.0)) == (before, [])


def test_finished_row_is_kept_if_another_evaluation_raises(
    assigned: Callable[..., Assignment], cluster: Cluster, pool: Any
) -> None:
    job, row = assigned("Toy").job, a_row()
    notice = Notice("skipped", "something was left out.", option="any")
    cluster.outcomes = iter([(row, [notice]), ConnectionError("gone")])
    for _ in range(2):
        pool.submit(job)
    with warns("skipped", option="any"):
        finished: list[tuple[EvaluationJob, Row]] = pool.collect()
    assert finished == [(job, row)]
    with raises("unavailable", cluster="ray://there"):
        pool.collect()


def test_errors_of_ray_and_of_its_workers_are_told_apart(
    assigned: Callable[..., Assignment], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers: Any = pytest.importorskip("nas.workers.ray.workers")
    from ray.exceptions import RayError, RayTaskError

    monkeypatch.setattr(workers, "RayCluster", lambda address: cluster)
    job = assigned("Toy").job

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
