"""Heartbeats of trainings: each writes its step to a file of its folder, which whoever waits for it reads.

Its process may be any one of this machine or of a cluster; the folder is seen by both.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import final

FILE = "steps"
"""The file's name in the folder of a training."""

EVERY_S = 1.0
"""Seconds between two times that a training says it; one that takes less never does."""


@final
class Heartbeat:
    """A callback of a training: writes its step and the number of steps to a file.

    Args:
        folder: Its own, or None where nobody is told.
    """

    def __init__(self, folder: str | None) -> None:
        self._path = None if folder is None else Path(folder, FILE)
        self._next = time.monotonic() + EVERY_S

    def __call__(self, step: int, steps: int) -> None:
        """Say it, unless it was said just now."""
        now = time.monotonic()
        if self._path is not None and now >= self._next:
            self._next = now + EVERY_S
            with suppress(OSError):  # nothing rests on it
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._path.write_text(f"{step} {steps}\n")

    def forget(self) -> None:
        """The training has ended."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


def has_recent_heartbeat(folder: str | None, within_s: float = 10 * EVERY_S) -> bool:
    """Whether a training has said lately how far it is: what was said before, a process that died may have left."""
    if folder is None:
        return False
    try:
        return time.time() - Path(folder, FILE).stat().st_mtime <= within_s
    except OSError:
        return False


def read_heartbeat(folder: str | None, max_steps: int | None = None) -> tuple[int, int] | None:
    """The step that a training has taken and how many it will, at most `max_steps`; None where it says nothing."""
    if folder is None:
        return None
    try:
        step, steps = map(int, Path(folder, FILE).read_text().split())
    except (OSError, ValueError):  # it is written anew at this moment, for one
        return None
    return step, steps if max_steps is None else min(steps, max_steps)
