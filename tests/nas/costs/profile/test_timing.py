"""Timing: calls to warm up, then quartiles."""

import time

import pytest
import torch

from nas.costs.profile import timing
from nas.costs.profile.timing import time_call

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "WARM_UP_S", 0.0)
    monkeypatch.setattr(timing, "MEASURE_S", 0.0)


def test_quartiles_are_ordered_and_at_least_the_sleep_of_a_call() -> None:
    times = time_call(lambda: time.sleep(0.002), CPU)
    assert 2.0 <= times.q1 <= times.median <= times.q3


def test_slow_first_calls_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = [0.0], [0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def call() -> None:
        calls[0] += 1
        clock[0] += 1.0 if calls[0] <= timing.WARM_UP_CALLS else 0.001

    times = time_call(call, CPU)
    assert calls[0] == timing.WARM_UP_CALLS + timing.MIN_CALLS
    assert times.q3 == pytest.approx(1.0)


def test_slow_steps_are_measured_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = [0.0], [0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def call() -> None:
        calls[0] += 1
        clock[0] += timing.PATIENCE_S

    assert time_call(call, CPU).calls == 3
    assert calls[0] == 1 + 3
