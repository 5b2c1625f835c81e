"""Signals and limits end a search or a trial cleanly, and the same command resumes it."""

import signal

import pytest

from nas.evaluation.failures import OUT_OF_MEMORY, TIMED_OUT
from real_searches import Place, is_alive, outcomes
from waiting import until


@pytest.mark.parametrize(
    ("workers", "number"),
    [
        pytest.param("1", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("1", signal.SIGHUP, marks=pytest.mark.slow),
        pytest.param("1", signal.SIGINT, marks=pytest.mark.slow),
        ("2", signal.SIGTERM),
        pytest.param("2", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_signal_ends_a_search_cleanly(place: Place, workers: str, number: signal.Signals) -> None:
    search = place.begin("--workers", workers, step_s=0.2)
    until(lambda: len(place.log) > 3, "a training went on")
    search.send_signal(number)
    code, output = place.wait(search)
    assert code == 128 + number
    assert number.name in output
    assert "Traceback" not in output
    pids = place.pids()
    until(lambda: not any(map(is_alive, pids)), "the workers had ended")
    assert place.search()[0] == 0
    assert [row.status for row in place.rows()] == ["complete"] * 4


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_task_that_exits_fails_its_own_trial(place: Place, workers: str) -> None:
    assert place.search("--workers", workers, "--trials", "8", deed="exit")[0] == 0
    shallow = [row for row in place.rows() if row.architecture.depth == 1]
    assert shallow
    assert all(row.status == "failed" and str(row.error).startswith("SystemExit: 0 (") for row in shallow)
    assert len(place.rows()) == 8


@pytest.mark.slow
def test_hanging_trial_is_ended_and_the_others_go_on(place: Place) -> None:
    status, _ = place.search("--trials", "8", "--trial-timeout", "8s", deed="hang")
    assert status == 0
    hung = [row for row in place.rows() if row.architecture.depth == 1]
    assert hung
    (error,) = {str(row.error) for row in hung}
    assert error.startswith(f"{TIMED_OUT}: ")
    assert " 8 s " in error
    assert "--trial-timeout" in error
    assert {row.status for row in place.rows()} == {"failed", "complete"}
    pids = place.pids()
    assert not any(map(is_alive, pids))


@pytest.mark.slow
def test_search_ends_after_its_timeout_and_is_resumed(place: Place, elsewhere: Place) -> None:
    assert elsewhere.search()[0] == 0
    status, output = place.search("--timeout", "12", step_s=0.9)
    assert "--timeout" in output
    assert status == (0 if place.rows() else 2)
    assert len(place.rows()) < 4
    assert place.search()[0] == 0
    assert outcomes(place.rows()) == outcomes(elsewhere.rows())


@pytest.mark.slow
def test_trial_beyond_its_memory_fails_and_the_next_is_clean(place: Place) -> None:
    options = ("--trials", "8", "--trial-memory", "1G")
    assert place.search(*options, deed="swell")[0] == 0
    for row in place.rows():
        if row.architecture.depth == 1:
            assert row.status == "failed"
            assert str(row.error).startswith(f"{OUT_OF_MEMORY}: RuntimeError: ")
            assert str(row.error).endswith(" (--trial-memory)")
        else:
            assert row.status == "complete"
    pids = place.pids()
    assert len(pids) == 1  # the process that was short of memory went on with the next trial
