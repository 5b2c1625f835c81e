"""The time of a training's steps, without its beginning and its end."""

import time

import torch

WARM = 3
"""Steps at the start of a training that are not timed."""


class Clock:
    """Times a training between two of its passes, waiting for the device at these alone."""

    def __init__(self, passes: int) -> None:
        self.last = passes
        self.passes = 0
        self.times: list[float] = []

    def tick(self) -> None:
        """Say that a pass has its outputs."""
        self.passes += 1
        if self.passes in (WARM, self.last):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.times.append(time.perf_counter())

    def passes_per_second(self) -> float:
        """Of the passes behind the warm-up."""
        start, end = self.times
        return (self.last - WARM) / (end - start)
