"""What a Ray worker does before and around an evaluation; real clusters are in tests/chaos."""

import platform
import shutil
import subprocess
import sys
import warnings
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
from results.row import Row
from search_spaces.errors import Notice, UserError
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


def test_notices_travel_with_the_row(assigned: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    def noticing(job: EvaluationJob, processes: int) -> Row:
        warnings.warn("look here", Notice, 1)
        return evaluate(job)

    monkeypatch.setattr(ray_task, "evaluate_together", noticing)
    assert evaluate_assignment(assigned)[1] == ["look here"]


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
    with pytest.raises(UserError, match=r'pip install "nas-bench-wiring\[ray\]"'):
        pool_of(Resources("ray"), 1)


@pytest.mark.parametrize("address", ["ray://127.0.0.1:1", "ray"])
def test_a_cluster_that_is_not_there_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    cluster: Any = pytest.importorskip("nas.workers.ray_cluster")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(UserError, match=r"^the Ray cluster \S*127\.0\.0\.1:1 could not be joined: .*refused"):
        cluster.RayCluster(address)


@pytest.mark.parametrize("address", ["ray", "ray://one:10001"])
def test_a_clients_head_is_where_it_was_said_to_be(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    cluster: Any = pytest.importorskip("nas.workers.ray_cluster")
    monkeypatch.setenv("RAY_ADDRESS", "ray://one:10001")
    assert cluster._head(address) == ("one", 10001)


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
    pool._resources, pool._room, room = Resources(), None, [2]
    pool._cluster = SimpleNamespace(room=lambda request: room[0])
    assert pool.capacity == 3
    room[0] = 0
    assert [pool.capacity, pool.capacity] == [1, 1]
    assert capsys.readouterr().err.count("has room for an evaluation (CPU 1): one is waited for.") == 1
