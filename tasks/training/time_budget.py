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
        whole: Milliseconds in all.
        gone: Milliseconds that were spent at the last look, at most all of them.
    """

    def __init__(self, hours: float) -> None:
        self.whole = max(1, round(hours * _HOUR))
        self.gone = 0
        self._spent = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what is done inside."""
        began = perf_counter()
        try:
            yield
        finally:
            self._spent += 1e3 * (perf_counter() - began)

    def look(self, share: RankInfo) -> None:
        """See how much is gone; of several processes, the first one's clock is everybody's, and all must look."""
        self.gone = min(self.whole, share.first(int(self._spent)))

    def go_on(self, gone: int) -> None:
        """Begin where so much was gone."""
        self.gone, self._spent = gone, float(gone)

    def part(self, of: int) -> int:
        """How many of so many equal parts are gone."""
        return self.gone * of // self.whole

    def steps(self, step: int) -> int:
        """How many steps a training will have that has taken so many: at the pace so far, and all where all is gone."""
        return step if self.gone == self.whole else max(step + 1, step * self.whole // max(1, self.gone))
