"""Random disturbances of a search. Each scenario raises AssertionError if the search does not recover."""

import random
import signal
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from postgres_scenario import several_coordinators
from real_searches import Place, Process, is_alive, kill, outcomes
from waiting import until

Reference = Callable[[int], list[tuple[Any, ...]]]
"""Seed of a search -> its outcomes without a disturbance."""

Scenario = Callable[[Place, random.Random, Reference], None]

TRIALS = "5"


def kill_coordinator(place: Place, draw: random.Random, reference: Reference) -> None:
    """Kill a search of one worker up to six times."""
    seed = draw.randrange(3)
    for _ in range(draw.randint(1, 6)):
        search = _begin(place, seed, "1")
        time.sleep(draw.uniform(0, 1.5))
        kill(search.pid)
        search.wait()
    _finish(place, seed, reference)


def kill_pool(place: Place, draw: random.Random, reference: Reference) -> None:
    """Kill the coordinator of two workers; its workers must end."""
    seed = draw.randrange(3)
    search = _begin(place, seed, "2")
    time.sleep(draw.uniform(0, 12))
    kill(search.pid)
    search.wait()
    until(lambda: not any(map(is_alive, place.pids())), "the workers had ended")
    _finish(place, seed, reference, "2")


def kill_workers(place: Place, draw: random.Random, reference: Reference) -> None:
    """Kill one of two workers now and then; no trial may fail."""
    seed, kills = draw.randrange(3), 0
    search = _begin(place, seed, "2", step_s=0.2)
    until(lambda: place.steps() or not is_alive(search.pid), "a training went on")
    while kills < 2 and is_alive(search.pid):
        time.sleep(draw.uniform(0, 2))
        alive = sorted(filter(is_alive, place.pids()))
        if alive:
            kill(draw.choice(alive))
            kills += 1
    assert place.wait(search)[0] == 0
    _holds(place, seed, reference, "2")


def send_signal(place: Place, draw: random.Random, reference: Reference) -> None:
    """Send SIGTERM, SIGINT or SIGHUP at any moment."""
    seed, number = draw.randrange(3), draw.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    search = _begin(place, seed, "1")
    time.sleep(draw.uniform(0, 1.5))
    search.send_signal(number)
    status, output = place.wait(search)
    assert status in (0, 128 + number, -number), output
    # Before handlers are set, Python may drop Ctrl-C in a destructor and print a line.
    assert "Traceback" not in output or status == -number or "\nKeyboardInterrupt" in output, output
    _finish(place, seed, reference)


def damage_files(place: Place, draw: random.Random, reference: Reference) -> None:
    """Kill a search and damage files of its unfinished evaluations."""
    seed = draw.randrange(3)
    search = _begin(place, seed, "1", step_s=0.1)
    until(lambda: place.steps() or not is_alive(search.pid), "a training went on")
    time.sleep(draw.uniform(0, 1))
    kill(search.pid)
    search.wait()
    files = [path for path in sorted(place.folder.glob("store/unfinished/**/*")) if path.is_file()]
    for path in files if draw.random() < 0.5 else draw.sample(files, min(1, len(files))):
        _damage(path, draw)
    _finish(place, seed, reference)


def two_coordinators(place: Place, draw: random.Random, reference: Reference) -> None:
    """Run two searches of one study and one of another study in the same store; kill one of them at times."""
    seed = draw.randrange(3)
    searches = [_begin(place, seed, "1"), _begin(place, seed, "1"), _begin(place, seed, "1", study="other")]
    time.sleep(draw.uniform(0, 1))
    if draw.random() < 0.5:
        kill(draw.choice(searches).pid)
    for search in searches:
        status, output = place.wait(search)
        in_use = status == 2 and "studies.db" in output.splitlines()[-1]
        assert status in (0, -9) or in_use, output
    _finish(place, seed, reference)
    assert len({row.identity() for row in place.rows("s")}) == len(place.rows("s"))


def on_a_server(place: Place, draw: random.Random, reference: Reference) -> None:
    """Run four coordinators on PostgreSQL under kills, halts and outages."""
    several_coordinators(draw, place.folder)


def _begin(place: Place, seed: int, workers: str, *, study: str = "s", step_s: float = 0.02) -> Process:
    options = ("--trials", TRIALS, "--seed", str(seed), "--workers", workers, "--study", study)
    return place.begin(*options, step_s=step_s)


def _finish(place: Place, seed: int, reference: Reference, workers: str = "1") -> None:
    """Run the same command to its end and compare with the reference."""
    status, output = place.wait(_begin(place, seed, workers))
    assert status == 0, output
    _holds(place, seed, reference, workers)


def _holds(place: Place, seed: int, reference: Reference, workers: str) -> None:
    rows, expected = outcomes(place.rows()), reference(seed)
    if workers == "1":
        assert rows == expected
    else:  # the order of trials changes only the proposals
        by_architecture = {row[0]: row for row in expected}
        assert len(rows) == len(expected)
        assert all(by_architecture.get(row[0], row) == row for row in rows)
        assert {row[1] for row in rows} == {"complete"}, rows
    with sqlite3.connect(place.folder / "store" / "studies.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        numbers = [number for (number,) in connection.execute("SELECT number FROM nas_rows WHERE study = 's'")]
        states = {state for (state,) in connection.execute("SELECT state FROM trials")}
    assert sorted(numbers) == list(range(len(expected)))
    assert states <= {"COMPLETE", "RUNNING"}  # of the other study, where that was killed
    if not place.folder.joinpath("store/unfinished").is_dir():
        return
    unfinished = [path for path in place.folder.glob("store/unfinished/*/*") if path.suffix != ".bad"]
    assert len(unfinished) == 0 or "RUNNING" in states, unfinished
    assert not any(map(is_alive, place.pids()))


def _damage(path: Path, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    match draw.randrange(4):
        case 0 if content:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            path.write_bytes(content)
        case 1:
            path.write_bytes(content[: draw.randrange(len(content) + 1)])
        case 2:
            path.write_bytes(b"")
        case _:
            path.unlink()


SCENARIOS: Mapping[str, tuple[int, Scenario]] = {
    "coordinator-killed": (30, kill_coordinator),
    "pool-killed": (8, kill_pool),
    "worker-killed": (7, kill_workers),
    "asked-to-end": (20, send_signal),
    "damaged": (20, damage_files),
    "two-coordinators": (10, two_coordinators),
    "on-a-server": (5, on_a_server),
}
"""Name -> frequency in percent, and scenario."""
