"""What a Ray worker does before and around an evaluation; real clusters are in tests/chaos."""

import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nas.evaluation import evaluate
from nas.jobs import EvaluationJob, fresh_task, identity
from nas.workers import ray_task
from nas.workers.attempts import MOST_NODES
from nas.workers.ray_task import Assignment, begun, evaluate_assignment, stamp_of
from nas.workers.resources import Resources
from search_spaces.errors import UserError
from toy_searches import TOYS


@pytest.fixture
def assigned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assignment:
    """An evaluation whose stamp is in the storage that is shared."""
    monkeypatch.setattr(ray_task, "_prepare", lambda *words: None)  # this process is not a worker's
    task = fresh_task(f"{TOYS}:Toy", None)
    job = EvaluationJob(task=f"{TOYS}:Toy", architecture=task.base, preset="smoke", folder=str(tmp_path / "one"))
    stamp_of(job, "first").touch()
    return Assignment(replace(job, identity=identity(job)), "first", None, 0, False)


def test_an_evaluation_that_begins_says_so_and_gives_the_row_of_any_process(assigned: Assignment) -> None:
    assert not begun(assigned.job, "first")
    row, notices = evaluate_assignment(assigned)
    assert row.metrics == evaluate(replace(assigned.job, folder=None)).metrics
    assert notices == []
    assert begun(assigned.job, "first")
    assert not begun(assigned.job, "second")


def test_a_node_that_sees_another_folder_is_named(assigned: Assignment, tmp_path: Path) -> None:
    stamp_of(assigned.job, "first").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=f"on node {platform.node()}: {tmp_path} .*--storage"):
        evaluate_assignment(assigned)


def test_another_attempt_at_the_same_evaluation_has_a_stamp_of_its_own(assigned: Assignment) -> None:
    stamp_of(assigned.job, "second").touch()
    evaluate_assignment(assigned)
    shutil.rmtree(str(assigned.job.folder), ignore_errors=True)  # as where the first one's Row is stored
    assert not begun(assigned.job, "second")
    evaluate_assignment(replace(assigned, attempt="second"))
    assert begun(assigned.job, "second")


def test_a_node_that_has_another_file_of_the_task_is_named(assigned: Assignment, tmp_path: Path) -> None:
    changed = tmp_path / "toy_tasks.py"
    changed.write_text(f"{TOYS.read_text()}\n# changed\n")
    with pytest.raises(UserError, match=f"on node {platform.node()}: task .* are others than the coordinator's"):
        evaluate_assignment(replace(assigned, job=replace(assigned.job, task=f"{changed}:Toy")))


MEMORY = pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded on Linux")


@pytest.mark.parametrize("memory", [None, pytest.param(10**9, marks=MEMORY)])
def test_notices_travel_with_the_row(assigned: Assignment, memory: int | None) -> None:
    noticing = replace(assigned.job, task=f"{TOYS}:Noticing")
    row, notices = evaluate_assignment(
        replace(assigned, job=replace(noticing, identity=identity(noticing)), memory=memory)
    )
    assert (row.status, notices) == ("complete", ["look here"])


@MEMORY
def test_where_a_process_of_bounded_memory_dies_so_does_rays(
    assigned: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    architecture = replace(assigned.job.architecture, depth=1, heads=1)
    deadly = replace(assigned.job, task=f"{TOYS}:Deadly", architecture=architecture)
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as ended:
        evaluate_assignment(replace(assigned, job=replace(deadly, identity=identity(deadly)), memory=10**9))
    assert ended.value.code == 1


def test_paths_of_a_job_mean_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workers: Any = pytest.importorskip("nas.workers.ray_workers")
    monkeypatch.chdir(tmp_path)
    Path("set").mkdir()
    base = fresh_task(f"{TOYS}:Toy", None).base
    job = EvaluationJob(
        task="my.py:Toy", architecture=base, preset="smoke", data="set", folder="a/b", network="n", store="sqlite:///x"
    )
    there = workers._anywhere(job)
    assert there.task == f"{tmp_path}/my.py:Toy"
    assert (there.data, there.folder, there.network) == (f"{tmp_path}/set", f"{tmp_path}/a/b", f"{tmp_path}/n")
    assert there.store is None
    named = workers._anywhere(replace(job, task="goal:FetchReach-v4", data="allenai/c4"))
    assert (named.task, named.data) == ("goal:FetchReach-v4", "allenai/c4")
    assert workers._anywhere(replace(job, task="digits-vit")).task == "digits-vit"


@pytest.mark.parametrize(
    ("request_", "room"),
    [
        ({"CPU": 1}, 8),
        ({"CPU": 3}, 2),
        ({"CPU": 1, "GPU": 1}, 3),
        ({"CPU": 1, "GPU": 0.4}, 6),
        ({"CPU": 1, "GPU": 2}, 1),
        ({"CPU": 1, "GPU": 4}, 0),
        ({"CPU": 1, "memory": 6e9}, 5),
    ],
)
def test_a_node_has_room_for_so_many(request_: dict[str, float], room: int) -> None:
    cluster: Any = pytest.importorskip("nas.workers.ray_cluster")
    assert cluster._room_on({"CPU": 8.0, "GPU": 3.0, "memory": 32e9}, request_) == room


def test_ray_is_not_imported_where_it_is_not_asked_for() -> None:
    script = "import nas.searching, nas.doors.compare, nas.workers.ray_task, sys; print('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from nas.workers.resources import Resources
    from nas.workers.workers import pool_of

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r'pip install "\.\[ray\]"'):
        pool_of(Resources("ray"), 1)


@pytest.mark.parametrize("address", ["ray://127.0.0.1:1", "ray"])
def test_a_cluster_that_is_not_there_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    cluster: Any = pytest.importorskip("nas.workers.ray_cluster")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(UserError, match=r"^the Ray cluster \S*127\.0\.0\.1:1 could not be joined: .*refused"):
        cluster.RayCluster(address)


def test_nodes_that_die_again_and_again_fail_what_they_evaluate(
    assigned: Assignment, capsys: pytest.CaptureFixture[str]
) -> None:
    workers: Any = pytest.importorskip("nas.workers.ray_workers")
    from ray.exceptions import NodeDiedError

    lost: Future[Any] = Future()
    lost.set_exception(NodeDiedError("gone"))
    attempt = workers._first_attempt(assigned.job)
    for _ in range(MOST_NODES - 1):
        row, attempt = workers.RayWorkers._outcome(None, lost, attempt)
        assert row is None
    assert capsys.readouterr().err.count("its node died. It goes on from its last checkpoint.") == MOST_NODES - 1
    row, _ = workers.RayWorkers._outcome(None, lost, attempt)
    assert row.error == "its node died, 10 times without a new checkpoint in between"


def test_one_evaluation_more_than_there_is_room_for_waits_and_what_it_wants_is_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    workers: Any = pytest.importorskip("nas.workers.ray_workers")
    pool = object.__new__(workers.RayWorkers)
    pool._resources, pool._gpus, pool._room, room = Resources(), 0.0, None, [2]
    pool._cluster = SimpleNamespace(room=lambda request: room[0])
    assert pool.capacity == 3
    room[0] = 0
    assert [pool.capacity, pool.capacity] == [1, 1]
    assert capsys.readouterr().err.count("has room for an evaluation (CPU 1): one is waited for.") == 1


def test_a_submission_that_fails_leaves_nothing_that_could_be_begun(assigned: Assignment, tmp_path: Path) -> None:
    workers: Any = pytest.importorskip("nas.workers.ray_workers")

    def interrupted(ask: Any) -> None:
        raise KeyboardInterrupt

    pool = object.__new__(workers.RayWorkers)
    pool._resources, pool._gpus, pool._running, pool._folder = Resources(), 0.0, {}, str(tmp_path)
    pool._cluster = SimpleNamespace(answer=interrupted)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        pool.submit(assigned.job)
    assert (sorted(tmp_path.iterdir()), pool._running) == (before, {})


def test_what_has_ended_is_not_lost_by_what_another_one_raises(assigned: Assignment) -> None:
    workers: Any = pytest.importorskip("nas.workers.ray_workers")
    row = evaluate(replace(assigned.job, folder=None))
    ended: Future[Any] = Future()
    ended.set_result((row, []))
    wrong: Future[Any] = Future()
    wrong.set_exception(ConnectionError("gone"))
    pool = object.__new__(workers.RayWorkers)
    pool._running = {future: workers._first_attempt(assigned.job) for future in (ended, wrong)}
    pool._cluster = SimpleNamespace(head_lost=UserError)
    assert pool._ended() == [(assigned.job, row)]
    with pytest.raises(UserError, match="gone"):
        pool._ended()
