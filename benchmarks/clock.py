"""A timer of training steps that leaves out start and end."""

import time

import torch

WARM = 3
"""Untimed steps at the start of a training."""


class Clock:
    """A timer of the passes after the warm-up; it synchronizes the device only at their start and end."""

    def __init__(self, passes: int) -> None:
        self.last = passes
        self.passes = 0
        self.times: list[float] = []

    def tick(self) -> None:
        """Count a forward pass."""
        self.passes += 1
        if self.passes in (WARM, self.last):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.times.append(time.perf_counter())

    def passes_per_second(self) -> float:
        """Return the speed of the passes after the warm-up."""
        start, end = self.times
        return (self.last - WARM) / (end - start)
