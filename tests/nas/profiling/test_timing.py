"""Timing: warmed up first, and the quartiles of what came after."""

import time

import pytest
import torch

from nas.profiling import timing
from nas.profiling.timing import timed

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "WARM_UP_S", 0.0)
    monkeypatch.setattr(timing, "MEASURED_S", 0.0)


def test_quartiles_are_in_order_and_no_less_than_what_a_call_sleeps() -> None:
    times = timed(lambda: time.sleep(0.002), CPU)
    assert 2.0 <= times.q1 <= times.median <= times.q3


def test_what_is_slow_at_first_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = [0.0], [0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def call() -> None:
        calls[0] += 1
        clock[0] += 1.0 if calls[0] <= timing.WARM_UP_CALLS else 0.001

    times = timed(call, CPU)
    assert calls[0] == timing.WARM_UP_CALLS + timing.LEAST_CALLS
    assert times.q3 == pytest.approx(1.0)


def test_steps_that_are_seconds_long_are_taken_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = [0.0], [0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def call() -> None:
        calls[0] += 1
        clock[0] += timing.PATIENCE_S

    assert timed(call, CPU).calls == 3
    assert calls[0] == 1 + 3
