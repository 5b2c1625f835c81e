"""Kills lose no finished trial, leave no process and fail no trial."""

import re
import sqlite3

import pytest

from nas.workers.attempts import MAX_DEATHS, PROCESS_DIED
from real_searches import Place, is_alive, kill, outcomes
from waiting import until


def test_repeated_kills_of_a_search_give_the_same_rows(place: Place, elsewhere: Place) -> None:
    assert elsewhere.search()[0] == 0
    for _ in range(MAX_DEATHS + 1):  # more often than a worker may die
        before = len(place.log)
        search = place.begin(step_s=0.3)
        until(lambda before=before: len(place.log) > before + 1, "a training went on")
        kill(search.pid)
        search.wait()
    assert place.search()[0] == 0
    assert outcomes(place.rows()) == outcomes(elsewhere.rows())
    assert not list(place.folder.glob("store/unfinished/*"))


@pytest.mark.slow
def test_workers_end_with_a_killed_search_and_finished_trials_are_kept(place: Place, elsewhere: Place) -> None:
    assert elsewhere.search("--trials", "6")[0] == 0
    search = place.begin("--trials", "6", "--workers", "2", step_s=0.3)
    until(lambda: len({pid for _, pid in place.steps()}) == 2, "both workers trained")
    kill(search.pid)
    workers = {pid for _, pid in place.starts()}
    until(lambda: not any(map(is_alive, workers)), "the workers had ended")
    assert place.search("--trials", "6", "--workers", "2")[0] == 0
    assert {row.status for row in place.rows()} == {"complete"}
    metrics = {row.architecture: row.metrics for row in elsewhere.rows()}
    rows = [row for row in place.rows() if row.architecture in metrics]
    assert rows
    assert all(row.metrics == metrics[row.architecture] for row in rows)


def test_trial_of_a_killed_worker_resumes_from_its_checkpoint(place: Place) -> None:
    search = place.begin("--trials", "3", "--workers", "2", step_s=0.3)
    _, victim = until(lambda: [step for step in place.steps() if step[0] == 4], "a training was well on its way")[0]
    kill(victim)
    status, output = place.wait(search)
    assert status == 0
    assert re.search(r"^depth=.*SIGKILL\(-9\)", output, re.MULTILINE)  # the notice of the resumed architecture
    assert [row.status for row in place.rows()] == ["complete"] * 3
    key = next(key for key, pid in place.starts() if pid == victim)
    retries = [pid for name, pid in place.starts() if name == key and pid != victim]
    assert min(number for number, pid in place.steps() if pid in retries) > 1


@pytest.mark.slow
def test_trial_that_kills_its_process_fails_alone(place: Place) -> None:
    assert place.search("--workers", "2", "--trials", "8", deed="die")[0] == 0
    for row in place.rows():
        if row.architecture.depth == 1:
            assert row.status == "failed"
            assert str(row.error).startswith(f"{PROCESS_DIED} (SIGKILL(-9))")
            assert f" {MAX_DEATHS} " in str(row.error)
        else:
            assert row.status == "complete"
    assert {row.status for row in place.rows()} == {"failed", "complete"}


@pytest.mark.slow
def test_trial_that_kills_the_search_fails_after_resume(place: Place) -> None:
    options = ("--trials", "2", "--space", "head-dim", "--arch", "depth=1")
    assert place.search(*options, deed="die")[0] == -9
    assert place.search(*options, deed="die")[0] == 2  # there is no complete row to show
    assert {row.status for row in place.rows()} == {"failed"}


@pytest.mark.slow
def test_database_of_a_killed_search_is_whole(place: Place) -> None:
    search = place.begin("--trials", "40", step_s=0.0)
    until(lambda: len(place.starts()) > 5, "some trials were done")
    kill(search.pid)
    search.wait()
    with sqlite3.connect(place.folder / "store" / "studies.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
