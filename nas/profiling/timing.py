"""How long a call takes: warmed up, synchronised, and without a profiler in the way."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

WARM_UP_CALLS, WARM_UP_S = 3, 0.3
LEAST_CALLS, MOST_CALLS, MEASURED_S = 10, 1000, 1.5


@dataclass(frozen=True, slots=True)
class Times:
    """Quartiles of a call's duration, in milliseconds."""

    median: float
    q1: float
    q3: float


def timed(call: Callable[[], None], device: torch.device) -> Times:
    """Call until it is warm, then at least ten times and for a second and a half, each by itself."""
    begin, calls = time.perf_counter(), 0
    while calls < WARM_UP_CALLS or time.perf_counter() - begin < WARM_UP_S:
        call()
        synchronise(device)
        calls += 1
    durations: list[float] = []
    while len(durations) < LEAST_CALLS or (sum(durations) < MEASURED_S and len(durations) < MOST_CALLS):
        start = time.perf_counter()
        call()
        synchronise(device)
        durations.append(time.perf_counter() - start)
    q1, median, q3 = statistics.quantiles(durations, n=4)
    return Times(1e3 * median, 1e3 * q1, 1e3 * q3)


def synchronise(device: torch.device) -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
