"""What people and other programs ask of a command: to end. A scheduler that preempts jobs sends SIGTERM."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """Somebody has asked this process to end."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


GRACE_S = 2.0
"""For so long after the first signal another one is the same: `timeout` signals a process, and then its group."""

_ASKED: list[tuple[signal.Signals, float]] = []
"""What this process was asked with, and when. It may not have heard: Python drops what is raised in a destructor."""


@contextmanager
def termination_signals() -> Iterator[None]:
    """Have SIGINT, SIGTERM and SIGHUP raise Terminated in the main thread, so that all is closed; a later one kills."""
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has no SIGHUP
    before = {signal.Signals[name]: signal.getsignal(signal.Signals[name]) for name in names}
    listened = [number for number, handler in before.items() if handler is not signal.SIG_IGN]  # as nohup has it
    told = sys.unraisablehook
    sys.unraisablehook = lambda dropped: None if issubclass(dropped.exc_type, Terminated) else told(dropped)
    try:
        for number in listened:
            signal.signal(number, _raise)
        yield
    finally:
        sys.unraisablehook = told
        for number in listened:
            signal.signal(number, before[number])
        _ASKED.clear()


def raise_if_terminated() -> None:
    """Raise Terminated where this process was asked to end and goes on: what was raised then came to nobody."""
    if _ASKED:
        raise Terminated(_ASKED[0][0])


def _raise(number: int, frame: FrameType | None) -> None:
    if not _ASKED:
        _ASKED.append((signal.Signals(number), time.monotonic()))
        raise Terminated(signal.Signals(number))
    if time.monotonic() - _ASKED[0][1] >= GRACE_S:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
