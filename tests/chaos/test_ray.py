"""Searches on real local Ray clusters under kills of nodes, processes and heads."""

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

from nas.evaluation.failures import OUT_OF_MEMORY, TIMED_OUT
from nas.workers.attempts import MAX_DEATHS, NODE_DIED, PROCESS_DIED
from real_searches import Place, is_alive, outcomes
from waiting import until

pytest.importorskip("ray")

SMALL = {"object_store_memory": 80 * 2**20, "include_dashboard": False}


@pytest.fixture(autouse=True)
def own_clusters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Searches begin clusters of their own unless a test says otherwise, and nodes work here and log here."""
    set_environment(monkeypatch, tmp_path)


def set_environment(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Set the environment of nodes and searches."""
    for name, value in {
        "RAY_ADDRESS": "local",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "STEPWISE_LOG": str(folder / "log"),
        "STEPWISE_STEP_S": "0.4",
    }.items():
        patch.setenv(name, value)


class TwoNodes:
    """A cluster of two nodes with one CPU each, and a head without, started on demand.

    Its processes keep their first environment, so trainings log in the folder `current`.

    Attributes:
        nodes: Ray's cluster.
        client: The head's address for clients.
    """

    def __init__(self, folder: Path) -> None:
        self.current, self.nodes, self.client = folder / "current", None, ""

    def begin(self) -> None:
        from ray.cluster_utils import Cluster

        if self.nodes is not None:
            return
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.client = f"ray://127.0.0.1:{port}"
        with pytest.MonkeyPatch.context() as meanwhile:
            set_environment(meanwhile, self.current)
            self.nodes: Any = Cluster(True, head_node_args={**SMALL, "num_cpus": 0, "ray_client_server_port": port})
        for _ in range(2):
            self.add()

    def add(self) -> Any:
        """Add a node with one CPU."""
        with pytest.MonkeyPatch.context() as meanwhile:
            set_environment(meanwhile, self.current)
            return self.nodes.add_node(num_cpus=1, object_store_memory=SMALL["object_store_memory"])

    def end(self) -> None:
        if self.nodes is not None:
            self.nodes.shutdown()
            self.nodes = None


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    nodes = TwoNodes(tmp_path_factory.mktemp("cluster"))
    yield nodes
    nodes.end()


@pytest.fixture
def cluster(two_nodes: TwoNodes, place: Place, monkeypatch: pytest.MonkeyPatch) -> TwoNodes:
    """The shared cluster, with its trials in this test's folder."""
    two_nodes.current.unlink(missing_ok=True)
    two_nodes.current.symlink_to(place.folder)
    two_nodes.begin()
    monkeypatch.setenv("RAY_ADDRESS", two_nodes.nodes.address)
    return two_nodes


def on(node: Any) -> int:
    """The process of a node's raylet."""
    return int(node.all_processes["raylet"][0].process.pid)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def steps_of(place: Place, key: str) -> list[tuple[int, int]]:
    """Number and process of each step of an architecture; a process trains one architecture at a time."""
    trains: dict[str, str] = {}
    steps = []
    for event, subject, pid in place.log:
        if event == "began":
            trains[pid] = subject
        elif trains[pid] == key:
            steps.append((int(subject), int(pid)))
    return steps


def descendants(pid: int) -> dict[int, str]:
    """All child processes, recursively, with their names."""
    output = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 2) for line in output.splitlines()]
    below = {int(child): name for child, above, name in lines if int(above) == pid}
    return below | {grandchild: name for child in below for grandchild, name in descendants(child).items()}


def head_of(search: int) -> int:
    """The head process of a search's own cluster."""
    return next(pid for pid, name in descendants(search).items() if name == "gcs_server")


def test_trial_of_a_lost_node_resumes_on_another(place: Place, elsewhere: Place, cluster: TwoNodes) -> None:
    search = place.begin("--trials", "6", "--workers", "ray")
    until(lambda: len({pid for _, pid in place.steps()}) == 2, "both nodes trained")
    _, victim = until(lambda: [step for step in place.steps() if step[0] == 3], "a training was on its way")[-1]
    (victim_node,) = [node for node in cluster.nodes.worker_nodes if on(node) == parent(victim)]
    cluster.nodes.remove_node(victim_node, allow_graceful=False)
    new = on(cluster.add())
    until(lambda: any(is_alive(pid) and parent(pid) == new for pid in place.pids()), "the new node trained")
    status, output = place.wait(search)
    assert status == 0, output
    assert re.search(rf"^depth=.*: {NODE_DIED}", output, re.MULTILINE)  # the resume notice
    assert "raylet" not in output
    key = [key for key, pid in place.starts() if pid == victim][-1]
    assert min(number for number, pid in steps_of(place, key) if pid != victim) > 1
    assert elsewhere.search("--trials", "6")[0] == 0
    assert sorted(outcomes(place.rows()), key=str) == sorted(outcomes(elsewhere.rows()), key=str)
    assert not list(place.folder.glob("store/unfinished/*"))


@pytest.mark.slow
def test_client_searches_on_a_cluster(place: Place, cluster: TwoNodes) -> None:
    status, output = place.search("--trials", "3", "--workers", cluster.client)
    assert status == 0, output
    assert [row.status for row in place.rows()] == ["complete"] * 3


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_trial_that_kills_its_process_fails_alone(place: Place) -> None:
    assert place.search("--workers", "ray", "--trials", "4", deed="die")[0] == 0
    for row in place.rows():
        if row.architecture.depth == 1:
            assert row.status == "failed"
            assert str(row.error).startswith(PROCESS_DIED)
            assert f" {MAX_DEATHS} " in str(row.error)
        else:
            assert row.status == "complete"
    assert {row.status for row in place.rows()} == {"failed", "complete"}


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_hanging_trial_is_ended_and_the_others_go_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # workers do not import from here
    for name in ("copy", "difflib", "fractions", "statistics", "timeit"):
        (place.folder / f"{name}.py").write_text("raise SystemExit(1)")
    assert place.search("--workers", "ray", "--trials", "4", "--trial-timeout", "8s", deed="hang")[0] == 0
    for row in place.rows():
        error = str(row.error)
        hung = error.startswith(f"{TIMED_OUT}: ") and " 8 s " in error and "--trial-timeout" in error
        assert hung if row.architecture.depth == 1 else row.error is None
    assert {row.status for row in place.rows()} == {"failed", "complete"}
    assert not any(map(is_alive, place.pids()))


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_trial_beyond_its_memory_fails_and_the_others_go_on(place: Place) -> None:
    assert place.search("--workers", "ray", "--trials", "4", "--trial-memory", "1G", deed="swell")[0] == 0
    for row in place.rows():
        error = rf"{OUT_OF_MEMORY}: RuntimeError: .* \(--trial-memory\)" if row.architecture.depth == 1 else "None"
        assert re.fullmatch(error, str(row.error))
    assert {row.status for row in place.rows()} == {"failed", "complete"}


@pytest.mark.slow
def test_trial_fails_if_its_node_is_short_of_memory(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.001")  # always exceeded
    status, output = place.search("--workers", "ray", "--trials", "1")
    (row,) = place.rows()
    assert str(row.error).startswith(f"{OUT_OF_MEMORY}: ")
    assert f" {MAX_DEATHS} " in str(row.error)
    assert status == 2, output  # there is no complete row to show


@pytest.mark.parametrize(
    ("number", "everybody"),
    [
        pytest.param(signal.SIGTERM, False, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, True, marks=pytest.mark.slow),
        (signal.SIGKILL, False),
    ],
)
def test_cluster_of_a_search_ends_with_it(place: Place, number: signal.Signals, everybody: bool) -> None:
    search = place.begin("--workers", "ray", step_s=0.5)
    until(place.steps, "a training went on")
    below = descendants(search.pid)
    assert place.pids() <= set(below)
    for pid in below if everybody else ():  # as `timeout` and schedulers do
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    search.send_signal(number)
    status, output = place.wait(search)
    assert status == (143 if number == signal.SIGTERM else -9), output
    assert " head " not in output  # the search does not wait for the head
    assert "Traceback" not in output
    # Ray's dashboard and environment agents take a minute longer to end.
    pids = place.pids() | {pid for pid, name in below.items() if name in ("raylet", "gcs_server")}
    until(lambda: not any(map(is_alive, pids)), "the cluster had ended")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_search_ends_if_its_head_is_lost_and_is_resumed(place: Place, number: signal.Signals) -> None:
    search = place.begin("--workers", "ray", "--trials", "60", step_s=0.5)  # long enough to notice the loss
    until(lambda: len(place.starts()) > 2 and place.rows(), "a training had ended")
    head = head_of(search.pid)
    os.kill(head, number)
    status, output = place.wait(search)
    assert status == 2, output
    until(lambda: not is_alive(head), "its head had ended")  # the next search could connect to a stopped head
    assert output.splitlines()[-1].startswith("nas: ")
    assert " head " in output.splitlines()[-1]
    assert "Traceback" not in output
    until(lambda: not any(map(is_alive, place.pids())), "its trainings had ended")
    rows_before = len(place.rows())
    assert place.search("--trials", str(rows_before + 3))[0] == 0
    assert [row.status for row in place.rows()] == ["complete"] * (rows_before + 3)


@pytest.mark.slow
def test_search_ends_if_its_head_hangs(place: Place) -> None:
    search = place.begin("--workers", "ray", "--trials", "60", step_s=0.5)
    until(place.steps, "a training went on")
    os.kill(head_of(search.pid), signal.SIGSTOP)
    search.send_signal(signal.SIGINT)
    status, output = place.wait(search)
    assert status == 130, output
    last = output.splitlines()[-1]
    assert last.startswith("nas: ")
    assert "SIGINT" in last
    until(lambda: not any(map(is_alive, place.pids())), "its trainings had ended")


@pytest.mark.slow
def test_search_of_a_client_ends_if_the_head_is_lost(place: Place, cluster: TwoNodes) -> None:
    search = place.begin("--workers", cluster.client, "--trials", "60")
    until(lambda: len(place.starts()) > 2 and place.rows(), "a training had ended")
    cluster.nodes.remove_node(cluster.nodes.head_node, allow_graceful=False)
    status, output = place.wait(search)
    cluster.end()
    assert status == 2, output
    last = output.splitlines()[-1]
    assert last.startswith("nas: ")
    assert f" {cluster.client} " in last
