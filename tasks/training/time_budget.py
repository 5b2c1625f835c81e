"""Trainings that last so many hours: how much of these they have spent, and how many steps that makes."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import final

from search_spaces.support.rank import RankInfo

_HOUR = 3_600_000


@final
class Clock:
    """The hours of a training, of which only counts what is done while it runs.

    Args:
        hours: How long the training lasts.

    Attributes:
        limit_ms: Milliseconds in all.
        elapsed_ms: Milliseconds that were spent at the last look, at most all of them.
    """

    def __init__(self, hours: float) -> None:
        self.limit_ms = max(1, round(hours * _HOUR))
        self.elapsed_ms = 0
        self._local_ms = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what is done inside."""
        began = perf_counter()
        try:
            yield
        finally:
            self._local_ms += 1e3 * (perf_counter() - began)

    def update(self, rank_info: RankInfo) -> None:
        """Read the clock; of several processes, the first one's clock is everybody's, and all must look."""
        self.elapsed_ms = min(self.limit_ms, rank_info.first(int(self._local_ms)))

    def resume(self, elapsed_ms: int) -> None:
        """Continue from a checkpoint's elapsed milliseconds."""
        self.elapsed_ms, self._local_ms = elapsed_ms, float(elapsed_ms)

    def part(self, parts: int) -> int:
        """How many of `parts` equal parts have passed."""
        return self.elapsed_ms * parts // self.limit_ms

    def steps(self, step: int) -> int:
        """How many steps the training will have in all, at the pace so far; `step` where the time is up."""
        return (
            step if self.elapsed_ms == self.limit_ms else max(step + 1, step * self.limit_ms // max(1, self.elapsed_ms))
        )
