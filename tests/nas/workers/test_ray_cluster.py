"""What is made of a head that answers late, never, or is gone; real ones are in tests/chaos."""

import atexit
import socket
import sys
import time
from typing import Any

import pytest

from search_spaces.errors import UserError

ray: Any = pytest.importorskip("ray")
grpc: Any = pytest.importorskip("grpc")
ray_cluster: Any = pytest.importorskip("nas.workers.ray_cluster")

BROKEN = [grpc.RpcError("unavailable"), ValueError("Cannot invoke RPC on closed channel!")]
NODE = {"Alive": True, "Resources": {"CPU": 2.0}}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The caller's, of one node."""
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "nodes", lambda: [NODE])
    monkeypatch.setattr(ray_cluster, "HEAD_PATIENCE_S", 0.5)
    monkeypatch.setattr(ray_cluster, "LEAVE_PATIENCE_S", 0.5)
    monkeypatch.setattr(ray_cluster, "_AGAIN_S", 0.01)
    monkeypatch.setattr(ray_cluster, "LEFT_BEHIND", [])
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # given back in any case
    return ray_cluster.RayCluster("ray://one:10001")


def test_a_client_whose_connection_breaks_is_asked_again(cluster: Any) -> None:
    errors = list(BROKEN)

    def ask() -> str:
        if errors:
            raise errors.pop()
        return "here"

    assert cluster.answer(ask) == "here"


@pytest.mark.parametrize("error", [*BROKEN, ConnectionError("it is over"), None])
def test_a_head_that_is_gone_or_silent_is_told_in_a_line(
    cluster: Any, error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask() -> None:
        if error is None:
            time.sleep(60)
        else:
            raise error

    monkeypatch.setattr(atexit, "unregister", lambda function: None)
    with pytest.raises(UserError, match=r"^the head of the Ray cluster ray://one:10001 (has not|is gone: it)"):
        cluster.answer(ask)


def test_what_is_no_matter_of_the_head_is_raised_as_it_is(cluster: Any) -> None:
    with pytest.raises(ValueError, match=r"^what is this$"):
        cluster.answer(lambda: (_ for _ in ()).throw(ValueError("what is this")))


@pytest.mark.parametrize("error", [None, ConnectionError("it is over")])
def test_a_cluster_that_cannot_be_left_does_not_hold_up_the_end(
    cluster: Any, error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancel(task: str, force: bool) -> None:
        if error is None:
            time.sleep(60)
        else:
            raise error

    skipped: list[Any] = []
    monkeypatch.setattr(ray, "cancel", cancel)
    monkeypatch.setattr(atexit, "unregister", skipped.append)
    cluster.close(["a task"])
    assert skipped == ([ray.shutdown] if error is None else [])
    assert len(ray_cluster.LEFT_BEHIND) == len(skipped)


def test_a_cluster_that_is_left_is_left_to_ray(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    skipped: list[Any] = []
    cancelled: list[Any] = []
    monkeypatch.setattr(ray, "cancel", lambda task, force: cancelled.append((task, force)))
    monkeypatch.setattr(atexit, "unregister", skipped.append)
    cluster.close(["a task"])
    assert (cancelled, skipped) == ([("a task", True)], [])


def test_a_head_that_is_lost_while_it_is_joined_gives_standard_output_back(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise ConnectionError("it is over")

    monkeypatch.setattr(ray, "nodes", gone)
    before = sys.stdout
    with pytest.raises(UserError, match="it is over"):
        ray_cluster.RayCluster("ray")
    assert sys.stdout is before


@pytest.mark.parametrize(("failures", "joined"), [(1, True), (4, True), (5, False)])
def test_a_server_for_a_client_that_dies_as_it_is_forked_is_asked_for_again(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, failures: int, joined: bool
) -> None:
    asked = []

    def init(address: str, **options: Any) -> None:
        asked.append(address)
        if len(asked) <= failures:
            raise ConnectionAbortedError("Initialization failure:\nStarting Ray client server failed. See x.")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(socket, "create_connection", lambda *where, timeout: socket.socket())
    if joined:
        ray_cluster.RayCluster("ray://one:10001")
    else:
        with pytest.raises(UserError, match="client server failed"):
            ray_cluster.RayCluster("ray://one:10001")
    assert asked == ["ray://one:10001"] * min(failures + 1, 5)


def test_what_else_keeps_from_joining_is_told_at_once(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def init(address: str, **options: Any) -> None:
        asked.append(address)
        raise ConnectionError("no")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(UserError, match="could not be joined: no"):
        ray_cluster.RayCluster("auto")
    assert asked == ["auto"]
