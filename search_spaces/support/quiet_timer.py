"""How long nothing has been said to whoever waits."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

SILENCE_S = 2.0
"""Seconds after which something is said."""

QUICK_S = 0.5
"""What takes less is not said at all: it would flash by."""


@final
@dataclass
class QuietTimer:
    """How long nothing has been said.

    Attributes:
        since: When something was last said, on the clock of time.monotonic.
        lasts: Whether silence lasts over things that are done one after the other: in a command, which somebody waits
            for. A script may do a thousand quick things of which nothing is to be said.
    """

    since: float
    lasts: bool = False

    def remaining(self) -> float:
        """Seconds until something is to be said by what begins now."""
        return max(QUICK_S, self.since + SILENCE_S - time.monotonic()) if self.lasts else SILENCE_S

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """A context in which silence lasts over all that is done, and begins now."""
        self.lasts, self.since = True, time.monotonic()
        try:
            yield
        finally:
            self.lasts = False

    def reset(self) -> None:
        """Note that something was said until now."""
        self.since = time.monotonic()


SILENCE = QuietTimer(since=0.0)
"""Of this process."""
