"""What other programs ask of a command: to end, as Ctrl-C does. A scheduler that preempts jobs sends SIGTERM."""

import signal
from types import FrameType


class Terminated(KeyboardInterrupt):
    """Somebody has asked this process to end."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


def end_when_asked() -> None:
    """Have SIGTERM and SIGHUP raise Terminated in the main thread, so that everything is closed; a second one kills."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _raise)


def _raise(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise Terminated(signal.Signals(number))
