"""The quiet time before the first status line."""

import pytest

from search_spaces.support.quiet_timer import QUICK_S, SILENCE_S, QuietTimer


def test_the_quiet_time_covers_all_steps_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("search_spaces.support.quiet_timer.time.monotonic", lambda: now[0])
    silence = QuietTimer(since=0.0)
    with silence.accumulate():
        now[0] += 0.5
        assert silence.remaining() == SILENCE_S - 0.5
        now[0] += 1
        assert silence.remaining() == SILENCE_S - 1.5
        now[0] += 5
        assert silence.remaining() == QUICK_S
        silence.reset()
        now[0] += 0.25
        assert silence.remaining() == SILENCE_S - 0.25
    assert silence.remaining() == SILENCE_S


def test_outside_a_command_every_step_has_the_whole_time() -> None:
    assert QuietTimer(since=0.0).remaining() == SILENCE_S
