"""Ends that were asked for, and limits: each is told as what it was, and what was under way can be gone on with."""

import signal

import pytest

from real_searches import Place, found, is_alive
from waiting import until


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_a_search_cleanly_and_says_so(
    place: Place, workers: str, number: signal.Signals, status: int
) -> None:
    if (workers, number) == ("2", signal.SIGHUP):
        pytest.skip("as with one worker, and with SIGTERM")
    search = place.begin("--workers", workers, step_s=0.2)
    until(lambda: len(place.log) > 3, "a training went on")
    search.send_signal(number)
    code, said = place.ended(search)
    assert code == status
    assert f"nas: ended by {number.name}; the same command goes on from here." in said
    assert "Traceback" not in said
    pids = place.pids()
    until(lambda: not any(map(is_alive, pids)), "the workers had ended")
    assert place.searched()[0] == 0
    assert [row.status for row in place.rows()] == ["complete"] * 4


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_task_that_exits_fails_its_own_trial(place: Place, workers: str) -> None:
    assert place.searched("--workers", workers, "--trials", "8", deed="exit")[0] == 0
    shallow = [row for row in place.rows() if row.architecture.depth == 1]
    assert shallow
    assert all(row.status == "failed" and str(row.error).startswith("SystemExit: 0 (") for row in shallow)
    assert len(place.rows()) == 8


def test_a_trial_that_hangs_is_ended_and_the_others_go_on(place: Place) -> None:
    status, _ = place.searched("--trials", "8", "--trial-timeout", "8s", deed="hang")
    assert status == 0
    hung = [row for row in place.rows() if row.architecture.depth == 1]
    assert hung
    assert {row.error for row in hung} == {"timed-out: it was not done after 8 s (--trial-timeout)"}
    assert {row.status for row in place.rows()} == {"failed", "complete"}
    pids = place.pids()
    assert not any(map(is_alive, pids))


def test_a_search_whose_time_is_up_ends_well_and_goes_on(place: Place, elsewhere: Place) -> None:
    assert elsewhere.searched()[0] == 0
    status, said = place.searched("--timeout", "12", step_s=0.9)
    assert "the time is up (--timeout) after" in said
    assert status == (0 if place.rows() else 2)
    assert len(place.rows()) < 4
    assert place.searched()[0] == 0
    assert found(place.rows()) == found(elsewhere.rows())


def test_memory_beyond_what_was_allowed_fails_its_trial_and_the_next_is_clean(place: Place) -> None:
    options = ("--trials", "8", "--trial-memory", "1G")
    assert place.searched(*options, deed="swell")[0] == 0
    for row in place.rows():
        if row.architecture.depth == 1:
            assert row.status == "failed"
            assert str(row.error).startswith("out-of-memory: RuntimeError: ")
            assert str(row.error).endswith(" (--trial-memory)")
        else:
            assert row.status == "complete"
    pids = place.pids()
    assert len(pids) == 1  # the process that was short of memory went on with the next trial
