"""Timing of a call: after a warm-up, synchronized, without a profiler."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

WARM_UP_CALLS, WARM_UP_S = 3, 0.3
MIN_CALLS, MAX_CALLS, MEASURE_S = 10, 1000, 1.5

MIN_SLOW_CALLS, PATIENCE_S = 3, 20.0
"""After PATIENCE_S seconds, MIN_SLOW_CALLS calls are enough."""


@dataclass(frozen=True, slots=True)
class Times:
    """Quartiles of a call's duration in milliseconds, and the number of calls."""

    median: float
    q1: float
    q3: float
    calls: int


def time_call(call: Callable[[], None], device: torch.device) -> Times:
    """Warm up, then time single calls: at least MIN_CALLS, for MEASURE_S seconds or MAX_CALLS calls.

    Slow calls are timed at least MIN_SLOW_CALLS times, after a warm-up of at least one call.
    """
    begin, calls = time.perf_counter(), 0
    while not calls or (
        time.perf_counter() - begin < PATIENCE_S / 4
        and (calls < WARM_UP_CALLS or time.perf_counter() - begin < WARM_UP_S)
    ):
        call()
        synchronize(device)
        calls += 1
    durations: list[float] = []
    while not _enough(len(durations), sum(durations)):
        start = time.perf_counter()
        call()
        synchronize(device)
        durations.append(time.perf_counter() - start)
    q1, median, q3 = statistics.quantiles(durations, n=4)
    return Times(1e3 * median, 1e3 * q1, 1e3 * q3, len(durations))


def _enough(calls: int, seconds: float) -> bool:
    if seconds >= PATIENCE_S and calls >= MIN_SLOW_CALLS:
        return True
    return calls >= MIN_CALLS and (seconds >= MEASURE_S or calls >= MAX_CALLS)


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
