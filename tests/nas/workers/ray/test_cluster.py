"""RayCluster: late, silent and lost heads, and room on nodes; real clusters are in tests/chaos."""

import atexit
import socket
import sys
import time
from typing import Any

import pytest

from expect import raises

ray: Any = pytest.importorskip("ray")
grpc: Any = pytest.importorskip("grpc")
ray_cluster: Any = pytest.importorskip("nas.workers.ray.cluster")

CONNECTION_ERRORS = [grpc.RpcError("unavailable"), ValueError("Cannot invoke RPC on closed channel!")]
NODE = {"Alive": True, "Resources": {"CPU": 8.0, "GPU": 3.0, "memory": 32e9}}
CLIENT = "ray://one:10001"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The caller's cluster of one node."""
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "nodes", lambda: [NODE])
    monkeypatch.setattr(ray_cluster, "_AGAIN_S", 0.01)
    monkeypatch.setattr(ray_cluster, "STUCK_THREADS", [])
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # restored in any case
    return ray_cluster.RayCluster(CLIENT)


def test_room_counts_living_nodes_by_cpus_gpus_and_memory(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    room: list[tuple[dict[str, float], int]] = [
        ({"CPU": 1}, 8),
        ({"CPU": 3}, 2),
        ({"CPU": 1, "GPU": 1}, 3),
        ({"CPU": 1, "GPU": 0.4}, 6),
        ({"CPU": 1, "GPU": 2}, 1),
        ({"CPU": 1, "GPU": 4}, 0),
        ({"CPU": 1, "memory": 6e9}, 5),
    ]
    assert [(request, cluster.room(request)) for request, _ in room] == room
    monkeypatch.setattr(ray, "nodes", lambda: [NODE, NODE, {**NODE, "Alive": False}])
    assert [(request, cluster.room(request) // 2) for request, _ in room] == room


def test_broken_connection_of_a_client_has_a_retry(cluster: Any) -> None:
    errors = list(CONNECTION_ERRORS)

    def ask() -> str:
        if errors:
            raise errors.pop()
        return "here"

    assert cluster.answer(ask) == "here"


def test_lost_or_silent_head_is_a_user_error(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_or_hang(error: Exception | None) -> None:
        if error is None:
            time.sleep(60)
        else:
            raise error

    monkeypatch.setattr(atexit, "unregister", lambda function: None)
    with raises("unavailable", cluster=CLIENT, seconds=None):
        cluster.answer(lambda: fail_or_hang(ConnectionError("it is over")))
    monkeypatch.setattr(ray_cluster, "HEAD_PATIENCE_S", 0.1)
    for error in (*CONNECTION_ERRORS, None):
        with raises("unavailable", cluster=CLIENT, seconds=0.1):
            cluster.answer(lambda error=error: fail_or_hang(error))


def test_other_errors_of_ray_are_raised_as_they_are(cluster: Any) -> None:
    wrong = ValueError("what is this")
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the same object
        cluster.answer(lambda: (_ for _ in ()).throw(wrong))
    assert error.value is wrong


def test_hanging_cluster_does_not_delay_the_end(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    unregister_calls: list[Any] = []
    errors = [None, ConnectionError("it is over")]

    def cancel(task: str, force: bool) -> None:
        if error := errors.pop():
            raise error
        time.sleep(60)

    monkeypatch.setattr(ray, "cancel", cancel)
    monkeypatch.setattr(atexit, "unregister", unregister_calls.append)
    cluster.close(["a task"])
    assert (unregister_calls, ray_cluster.STUCK_THREADS) == ([], [])
    monkeypatch.setattr(ray_cluster, "LEAVE_PATIENCE_S", 0.1)
    cluster = ray_cluster.RayCluster(CLIENT)
    cluster.close(["a task"])
    assert (unregister_calls, len(ray_cluster.STUCK_THREADS)) == ([ray.shutdown], 1)


def test_close_cancels_evaluations(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    unregister_calls: list[Any] = []
    calls: list[Any] = []
    monkeypatch.setattr(ray, "cancel", lambda task, force: calls.append((task, force)))
    monkeypatch.setattr(atexit, "unregister", unregister_calls.append)
    cluster.close(["a task"])
    assert (calls, unregister_calls) == ([("a task", True)], [])


def test_standard_output_is_restored_if_joining_fails(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ConnectionError("it is over")

    monkeypatch.setattr(ray, "nodes", fail)
    before = sys.stdout
    with raises("unavailable", seconds=None):
        ray_cluster.RayCluster("ray")
    assert sys.stdout is before


@pytest.mark.usefixtures("cluster")
def test_failed_start_of_a_client_server_has_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses: list[str] = []
    failures = 0

    def init(address: str, **options: Any) -> None:
        addresses.append(address)
        if len(addresses) <= failures:
            raise ConnectionAbortedError("Initialization failure:\nStarting Ray client server failed. See x.")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(socket, "create_connection", lambda *where, timeout: socket.socket())
    for failures in (1, 4):
        addresses.clear()
        ray_cluster.RayCluster(CLIENT)
        assert addresses == [CLIENT] * (failures + 1)
    failures = 5
    addresses.clear()
    with raises("unavailable", option="--workers", cluster=CLIENT):
        ray_cluster.RayCluster(CLIENT)
    assert addresses == [CLIENT] * 5


@pytest.mark.usefixtures("cluster")
def test_other_failures_to_join_are_raised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = []

    def init(address: str, **options: Any) -> None:
        addresses.append(address)
        raise ConnectionError("no")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    with raises("unavailable", option="--workers", cluster="auto"):
        ray_cluster.RayCluster("auto")
    assert addresses == ["auto"]


def test_cluster_that_is_not_there_is_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    for address, cluster in (("ray://127.0.0.1:1", "ray://127.0.0.1:1"), ("ray", "127.0.0.1:1")):
        with raises("unavailable", option="--workers", cluster=cluster) as error:
            ray_cluster.RayCluster(address)
        assert isinstance(error.value.__cause__, ConnectionRefusedError)
