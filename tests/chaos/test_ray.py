"""Searches on real Ray clusters of this machine: nodes, processes, coordinators and heads that are killed."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from real_searches import Place, found, is_alive
from waiting import until

pytest.importorskip("ray")

SMALL = {"object_store_memory": 80 * 2**20, "include_dashboard": False}


@pytest.fixture(autouse=True)
def own_clusters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Searches begin clusters of their own unless a test says otherwise, and nodes work here and log here."""
    for name, value in {
        "RAY_ADDRESS": "local",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "ENDURED_LOG": str(tmp_path / "log"),
        "ENDURED_STEP_S": "0.5",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def client() -> str:
    """Where the head of a cluster listens to clients."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"ray://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def cluster(client: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes with a CPU each, behind a head without."""
    from ray.cluster_utils import Cluster

    port = int(client.rpartition(":")[2])
    nodes = Cluster(True, head_node_args={**SMALL, "num_cpus": 0, "ray_client_server_port": port})
    for _ in range(2):
        added(nodes)
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    yield nodes
    nodes.shutdown()


def added(cluster: Any) -> Any:
    """Another node, with one CPU."""
    return cluster.add_node(num_cpus=1, object_store_memory=SMALL["object_store_memory"])


def on(node: Any) -> int:
    """The process of a node that has begun all that runs there."""
    return int(node.all_processes["raylet"][0].process.pid)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def steps_of(place: Place, key: str) -> list[tuple[int, int]]:
    """The number and the process of each step of an architecture: a process trains one after the other."""
    trains: dict[str, str] = {}
    steps = []
    for what, which, pid in place.log:
        if what == "began":
            trains[pid] = which
        elif trains[pid] == key:
            steps.append((int(which), int(pid)))
    return steps


def descendants(pid: int) -> dict[int, str]:
    """Every process that one has begun, and those have, with its name."""
    said = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
    every = [(int(own), int(above), name) for own, above, name in (line.split(None, 2) for line in said.splitlines())]
    below = {own: name for own, above, name in every if above == pid}
    return below | {one: name for child in below for one, name in descendants(child).items()}


def head_of(search: int) -> int:
    """The head of the cluster that a search has begun."""
    return next(pid for pid, name in descendants(search).items() if name == "gcs_server")


def test_a_node_that_is_killed_costs_nothing_but_its_time(
    place: Place, elsewhere: Place, cluster: Any, client: str
) -> None:
    search = place.begin("--trials", "8", "--workers", "ray")
    until(lambda: len({pid for _, pid in place.stepped()}) == 2, "both nodes trained")
    _, victim = until(lambda: [one for one in place.stepped() if one[0] == 3], "a training was on its way")[-1]
    (lost,) = [node for node in cluster.worker_nodes if on(node) == parent(victim)]
    cluster.remove_node(lost, allow_graceful=False)
    new = on(added(cluster))
    until(lambda: any(is_alive(pid) and parent(pid) == new for pid in place.pids()), "the new node trained")
    status, said = place.ended(search)
    assert status == 0, said
    assert "its node died. It goes on from its last checkpoint." in said
    assert "raylet" not in said
    key = [key for key, pid in place.began() if pid == victim][-1]
    assert min(number for number, pid in steps_of(place, key) if pid != victim) > 1
    os.environ["ENDURED_LOG"] = str(elsewhere.folder / "log")
    assert elsewhere.searched("--trials", "8")[0] == 0
    assert sorted(found(place.rows()), key=str) == sorted(found(elsewhere.rows()), key=str)
    assert not list(place.folder.glob("store/unfinished/*"))
    status, said = place.searched("--trials", "10", "--workers", client)
    assert status == 0, said
    assert [row.status for row in place.rows()] == ["complete"] * 10


def test_an_evaluation_that_takes_its_process_down_fails_truthfully_and_alone(place: Place) -> None:
    assert place.searched("--workers", "ray", "--trials", "4", deed="die")[0] == 0
    for row in place.rows():
        if row.architecture.depth == 1:
            assert row.status == "failed"
            assert row.error == "its process died, 3 times without a new checkpoint in between"
        else:
            assert row.status == "complete"
    assert {row.status for row in place.rows()} == {"failed", "complete"}


def test_an_evaluation_that_takes_too_long_is_ended_and_the_others_go_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # as the installed command has it: workers import nothing from here
    for name in ("copy", "difflib", "fractions", "statistics", "timeit"):
        (place.folder / f"{name}.py").write_text("raise SystemExit(1)")
    assert place.searched("--workers", "ray", "--trials", "4", "--trial-timeout", "8s", deed="hang")[0] == 0
    for row in place.rows():
        reason = "timed-out: it was not done after 8 s (--trial-timeout)" if row.architecture.depth == 1 else None
        assert row.error == reason
    assert {row.status for row in place.rows()} == {"failed", "complete"}
    assert not any(map(is_alive, place.pids()))


def test_an_evaluation_that_its_node_has_no_memory_for_says_so(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.001")  # of the machine's: it is always used
    status, said = place.searched("--workers", "ray", "--trials", "1")
    told = "out-of-memory: Ray ended its process, for its node was short of memory"
    assert [row.error for row in place.rows()] == [f"{told}, 3 times without a new checkpoint in between"]
    assert (status, "has no complete row yet" in said) == (2, True)


@pytest.mark.parametrize(
    ("number", "everybody"), [(signal.SIGTERM, False), (signal.SIGTERM, True), (signal.SIGKILL, False)]
)
def test_nothing_outlives_a_coordinator_that_ends(place: Place, number: signal.Signals, everybody: bool) -> None:
    search = place.begin("--workers", "ray", step_s=0.5)
    until(place.stepped, "a training went on")
    below = descendants(search.pid)
    assert place.pids() <= set(below)
    for pid in below if everybody else ():  # as `timeout` and schedulers do
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    search.send_signal(number)
    status, said = place.ended(search)
    assert status == (143 if number == signal.SIGTERM else -9), said
    assert "waiting for the head" not in said
    assert "Traceback" not in said
    # Ray's own agents for its dashboard and environments take a minute more, which is Ray's affair.
    own = place.pids() | {pid for pid, name in below.items() if name in ("raylet", "gcs_server")}
    until(lambda: not any(map(is_alive, own)), "the cluster had ended")


def test_memory_beyond_what_was_allowed_fails_its_trial_and_the_others_go_on(place: Place) -> None:
    assert place.searched("--workers", "ray", "--trials", "4", "--trial-memory", "1G", deed="swell")[0] == 0
    for row in place.rows():
        error = r"out-of-memory: RuntimeError: .* \(--trial-memory\)" if row.architecture.depth == 1 else "None"
        assert re.fullmatch(error, str(row.error))
    assert {row.status for row in place.rows()} == {"failed", "complete"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_head_that_is_lost_is_told_in_a_line_and_the_same_command_goes_on(
    place: Place, number: signal.Signals
) -> None:
    search = place.begin("--workers", "ray", "--trials", "60", step_s=0.5)  # it must not be done before it is noticed
    until(lambda: len(place.began()) > 2 and place.rows(), "a training had ended")
    head = head_of(search.pid)
    os.kill(head, number)
    status, said = place.ended(search)
    assert status == 2, said
    until(lambda: not is_alive(head), "its head had ended")  # stopped, it would let the next one connect to it
    assert said.splitlines()[-1].startswith("nas: the head of the Ray cluster")
    until(lambda: not any(map(is_alive, place.pids())), "its trainings had ended")
    kept = len(place.rows())
    assert place.searched("--trials", str(kept + 3))[0] == 0
    assert [row.status for row in place.rows()] == ["complete"] * (kept + 3)


def test_a_head_that_hangs_does_not_keep_a_search_from_ending(place: Place) -> None:
    search = place.begin("--workers", "ray", "--trials", "60", step_s=0.5)
    until(place.stepped, "a training went on")
    os.kill(head_of(search.pid), signal.SIGSTOP)
    search.send_signal(signal.SIGINT)
    status, said = place.ended(search)
    assert status == 130, said
    assert said.splitlines()[-1] == "nas: ended by SIGINT; the same command goes on from here."
    until(lambda: not any(map(is_alive, place.pids())), "its trainings had ended")


def test_a_clients_head_that_is_lost_is_told_in_a_line(place: Place, cluster: Any, client: str) -> None:
    search = place.begin("--workers", client, "--trials", "60", step_s=0.5)
    until(lambda: len(place.began()) > 2 and place.rows(), "a training had ended")
    cluster.remove_node(cluster.head_node, allow_graceful=False)
    status, said = place.ended(search)
    assert status == 2, said
    assert said.splitlines()[-1].startswith(f"nas: the head of the Ray cluster {client} ")
