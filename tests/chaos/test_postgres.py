"""Several coordinators on PostgreSQL repeat no training and lose no row."""

import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinators import Coordinator, begin, check, none_left_behind, trained_keys
from nas.store.retry import BACK
from postgres_server import Server
from waiting import until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TOYS_SECONDS", "0.2")
    with none_left_behind():
        yield


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.database()


def trials_announced_by(coordinators: list[Coordinator]) -> int:
    """Number of trials in the output; lines of progress do not start with an architecture."""
    return sum(len(re.findall(r"^\d+/\d+ (?:\w+: )?depth=", each.output(), re.MULTILINE)) for each in coordinators)


def front_of(coordinator: Coordinator) -> tuple[str, ...]:
    """The printed rows of the front, each after its key."""
    return tuple(re.findall(r"^[0-9a-f]{10} .*$", coordinator.output(), re.MULTILINE))


@pytest.mark.slow
def test_four_coordinators_share_one_study(postgres: Server, url: str, tmp_path: Path) -> None:
    four = [begin(tmp_path / "here", url, apart=number == 0, trials=12) for number in range(4)]
    assert [coordinator.end() for coordinator in four] == [0, 0, 0, 0], "\n".join(each.output() for each in four)
    check(postgres, url, trials=12)
    assert set(Counter(trained_keys(tmp_path)).values()) == {1}
    assert len(trained_keys(tmp_path)) == trials_announced_by(four) == 12
    (front,) = {front_of(coordinator) for coordinator in four}
    assert front


@pytest.mark.slow
def test_overlapping_studies_train_each_architecture_once(postgres: Server, url: str, tmp_path: Path) -> None:
    names = ["a", "b", "c", "d"]
    four = [begin(tmp_path / name, url, study=name, budget="params<=1k") for name in names]  # no folder in common
    assert [coordinator.end() for coordinator in four] == [0, 0, 0, 0], "\n".join(each.output() for each in four)
    for name in names:
        check(postgres, url, name)
    assert set(Counter(trained_keys(tmp_path)).values()) == {1}
    assert len(trained_keys(tmp_path)) < 4 * 8


def test_trial_of_a_killed_coordinator_is_adopted(
    postgres: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOYS_SECONDS", "60")
    coordinator = begin(tmp_path / "here", url)
    until(lambda: trained_keys(tmp_path), "something was begun")
    coordinator.signal(signal.SIGKILL)
    monkeypatch.setenv("TOYS_SECONDS", "0.2")
    assert begin(tmp_path / "here", url).end() == 0
    check(postgres, url)
    assert sorted(Counter(trained_keys(tmp_path)).values()) == [1] * 7 + [2]  # the killed trial ran twice


@pytest.mark.slow
def test_interrupted_coordinator_releases_its_leases(
    postgres: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOYS_SECONDS", "60")
    coordinator = begin(tmp_path / "here", url)
    until(lambda: trained_keys(tmp_path), "something was begun")
    assert len(postgres.ask("SELECT name FROM nas_leases", url)) == 2
    coordinator.signal(signal.SIGTERM)
    assert coordinator.end() == 128 + signal.SIGTERM
    assert postgres.ask("SELECT name FROM nas_leases", url) == []


@pytest.mark.slow
def test_halted_coordinator_stores_nothing_twice(
    postgres: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOYS_SECONDS", "1")
    coordinator = begin(tmp_path / "here", url)
    until(lambda: trained_keys(tmp_path), "something was begun")
    coordinator.signal(signal.SIGSTOP)
    monkeypatch.setenv("TOYS_SECONDS", "0.1")
    assert begin(tmp_path / "elsewhere", url).end() == 0  # a folder that the halted search has not locked
    check(postgres, url)
    coordinator.signal(signal.SIGCONT)
    assert coordinator.end() == 0, coordinator.output()
    check(postgres, url)


def test_search_survives_restarts_of_the_server(postgres: Server, url: str, tmp_path: Path) -> None:
    four = [begin(tmp_path / "here", url, trials=16) for _ in range(4)]
    for done in (3, 8):
        until(lambda done=done: len(trained_keys(tmp_path)) >= done, "enough was trained")
        postgres.restart()
    assert [coordinator.end() for coordinator in four] == [0, 0, 0, 0], "\n".join(each.output() for each in four)
    check(postgres, url, trials=16)
    assert set(Counter(trained_keys(tmp_path)).values()) == {1}
    assert any(BACK in each.output().splitlines() for each in four)


@pytest.mark.slow
def test_search_ends_if_the_server_stays_away(postgres: Server, url: str, tmp_path: Path) -> None:
    coordinator = begin(tmp_path / "here", url, outage=1)
    until(lambda: len(trained_keys(tmp_path)) >= 2, "enough was trained")
    postgres.stop()
    try:
        assert coordinator.end() == 2
    finally:
        postgres.start()
    last = coordinator.output().splitlines()[-1]
    assert last.startswith("nas: ")
    assert "postgresql://nas:***@127.0.0.1" in last
    assert "Traceback" not in coordinator.output()
    assert begin(tmp_path / "here", url).end() == 0
    check(postgres, url)
    assert set(Counter(trained_keys(tmp_path)).values()) == {1}  # finished rows were saved locally
