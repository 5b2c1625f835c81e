"""A timer of how long nothing has been printed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

SILENCE_S = 2.0
"""Seconds of silence before something is printed."""

QUICK_S = 0.5
"""Shorter work prints nothing."""


@final
@dataclass
class QuietTimer:
    """A timer of how long nothing has been printed.

    Attributes:
        since: Time of the last output, on the clock of time.monotonic.
        accumulates: Whether the silence of consecutive tasks adds up, as in a command that a user waits for. In a
            script with many quick tasks, each starts anew.
    """

    since: float
    accumulates: bool = False

    def remaining(self) -> float:
        """Return the seconds until a task that starts now should print something."""
        return max(QUICK_S, self.since + SILENCE_S - time.monotonic()) if self.accumulates else SILENCE_S

    @contextmanager
    def accumulate(self) -> Iterator[None]:
        """Add up the silence of all tasks in this context, from now on."""
        self.accumulates, self.since = True, time.monotonic()
        try:
            yield
        finally:
            self.accumulates = False

    def reset(self) -> None:
        """Note that something was printed."""
        self.since = time.monotonic()


OUTPUT_TIMER = QuietTimer(since=0.0)
"""The timer of this process."""
