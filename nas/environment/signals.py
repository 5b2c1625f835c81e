"""Signals that end a command: SIGINT from Ctrl-C, SIGTERM from a scheduler that preempts jobs, and SIGHUP."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Termination(KeyboardInterrupt):
    """The exception for a signal that asks this process to end."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


GRACE_S = 2.0
"""Seconds in which a further signal counts as the first: `timeout` signals a process, then its process group."""

_SIGNALS: list[tuple[signal.Signals, float]] = []
"""The first signal and its time. Its exception may be lost: Python drops exceptions raised in destructors."""


@contextmanager
def termination_signals() -> Iterator[None]:
    """Raise Termination in the main thread on SIGINT, SIGTERM and SIGHUP. A later signal kills the process."""
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has no SIGHUP
    before = {signal.Signals[name]: signal.getsignal(signal.Signals[name]) for name in names}
    numbers = [number for number, handler in before.items() if handler is not signal.SIG_IGN]  # ignored under nohup
    hook = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: None if issubclass(unraisable.exc_type, Termination) else hook(unraisable)
    try:
        for number in numbers:
            signal.signal(number, _raise)
        yield
    finally:
        sys.unraisablehook = hook
        for number in numbers:
            signal.signal(number, before[number])
        _SIGNALS.clear()


def raise_pending_termination() -> None:
    """Raise Termination if a signal came and its exception was lost."""
    if _SIGNALS:
        raise Termination(_SIGNALS[0][0])


def _raise(number: int, frame: FrameType | None) -> None:
    if not _SIGNALS:
        _SIGNALS.append((signal.Signals(number), time.monotonic()))
        raise Termination(signal.Signals(number))
    if time.monotonic() - _SIGNALS[0][1] >= GRACE_S:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
