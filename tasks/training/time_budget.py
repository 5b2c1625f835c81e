"""Time limits of trainings: the time spent, and the number of steps expected."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import final

from search_spaces.support.rank import RankInfo

_HOUR = 3_600_000


@final
class TrainingClock:
    """The clock of a training with a time limit; it counts only time inside `running`.

    Args:
        hours: The time limit.

    Attributes:
        limit_ms: The time limit in milliseconds.
        elapsed_ms: Milliseconds spent at the last update, at most `limit_ms`.
    """

    def __init__(self, hours: float) -> None:
        self.limit_ms = max(1, round(hours * _HOUR))
        self.elapsed_ms = 0
        self._local_ms = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time spent in this context."""
        began = perf_counter()
        try:
            yield
        finally:
            self._local_ms += 1e3 * (perf_counter() - began)

    def update(self, rank_info: RankInfo) -> None:
        """Read the clock. All ranks must call this; the first rank's clock holds for all."""
        self.elapsed_ms = min(self.limit_ms, rank_info.first(int(self._local_ms)))

    def resume(self, elapsed_ms: int) -> None:
        self.elapsed_ms, self._local_ms = elapsed_ms, float(elapsed_ms)

    def part(self, parts: int) -> int:
        """Return how many of `parts` equal parts have passed."""
        return self.elapsed_ms * parts // self.limit_ms

    def steps(self, step: int) -> int:
        """Return the expected total number of steps at the pace so far; `step` once the time is up."""
        return (
            step if self.elapsed_ms == self.limit_ms else max(step + 1, step * self.limit_ms // max(1, self.elapsed_ms))
        )
