"""Heartbeats of trainings: each writes its step to a file in its folder, for processes that wait for it.

They may be on this machine or in a cluster, as long as both see the folder.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import final

FILE = "steps"
"""Name of the file in a training's folder."""

EVERY_S = 1.0
"""Seconds between heartbeats; a shorter training writes none."""


@final
class Heartbeat:
    """A training callback that writes the step and the number of steps to a file.

    Args:
        folder: Folder of the training; None writes nothing.
    """

    def __init__(self, folder: str | None) -> None:
        self._path = None if folder is None else Path(folder, FILE)
        self._next = time.monotonic() + EVERY_S

    def __call__(self, step: int, steps: int) -> None:
        """Write the step if EVERY_S seconds have passed."""
        now = time.monotonic()
        if self._path is not None and now >= self._next:
            self._next = now + EVERY_S
            with suppress(OSError):  # heartbeats are optional
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._path.write_text(f"{step} {steps}\n")

    def forget(self) -> None:
        """Delete the file at the end of a training."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


def has_recent_heartbeat(folder: str | None, within_s: float = 10 * EVERY_S) -> bool:
    """Return whether a training wrote a heartbeat recently. An old one may be from a process that died."""
    if folder is None:
        return False
    try:
        return time.time() - Path(folder, FILE).stat().st_mtime <= within_s
    except OSError:
        return False


def read_heartbeat(folder: str | None, max_steps: int | None = None) -> tuple[int, int] | None:
    """Return the step and the number of steps of a training, at most `max_steps`; None without a heartbeat."""
    if folder is None:
        return None
    try:
        step, steps = map(int, Path(folder, FILE).read_text().split())
    except (OSError, ValueError):  # for example while it is being written
        return None
    return step, steps if max_steps is None else min(steps, max_steps)
