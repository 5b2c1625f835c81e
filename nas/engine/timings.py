"""Timings of a search by activity."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self, final

from results.records.row import Row


@final
class Timings:
    """Wall-clock seconds since its creation by activity, and the time of workers by the Rows that they returned.

    As a context it prints them at its end if `verbose`. `loading` is the seconds spent before its creation.
    """

    def __init__(self, *, verbose: bool = False, loading: float | None = None) -> None:
        self._verbose, self._start = verbose, time.perf_counter() - (loading or 0.0)
        self._seconds: dict[str, float] = {} if loading is None else {"loading": loading}
        self._worker_seconds, self._evaluating, self._training = 0.0, 0.0, 0.0  # summed over all workers

    @contextmanager
    def track(self, activity: str, workers: int = 0) -> Iterator[None]:
        """Time an activity of the main thread; `workers` run meanwhile. Activities must not overlap."""
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            self._seconds[activity] = self._seconds.get(activity, 0.0) + seconds
            self._worker_seconds += workers * seconds

    def add(self, row: Row) -> None:
        """Add the time of a worker's evaluation, and of its training."""
        whole, training = (row.provenance.get(name) for name in ("wall_s", "fit_s"))
        self._evaluating += whole if isinstance(whole, float) else 0.0
        self._training += training if isinstance(training, float) else 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._verbose:
            print("\n".join(self.lines()), file=sys.stderr)

    def lines(self) -> list[str]:
        """Format the timings: fractions of wall-clock time, and of the time of all workers.

        Workers count while the search waits for them, and by the Rows that they returned: dropped trainings have none.
        """
        total, worker_seconds = time.perf_counter() - self._start, max(self._worker_seconds, self._evaluating)
        meanwhile = {
            "training": self._training,
            "counting, measuring, saving": self._evaluating - self._training,
            "unfinished, starting or idle": max(0.0, self._worker_seconds - self._evaluating),
        }
        return [
            f"{total:.1f} s of wall-clock time:",
            *_shares({**self._seconds, "other": total - sum(self._seconds.values())}, total),
            f"{worker_seconds:.1f} s of worker time:",
            *_shares(meanwhile, worker_seconds),
        ]


def _shares(seconds: Mapping[str, float], total: float) -> list[str]:
    return [f"  {activity:<30}{amount:9.1f} s {amount / max(total, 1e-9):6.1%}" for activity, amount in seconds.items()]
