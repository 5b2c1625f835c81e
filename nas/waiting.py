"""What is shown while something takes longer than people wait in silence."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rich.console import Console

SILENCE_S = 2.0
"""Seconds after which something is said."""


@contextmanager
def said_if_slow(message: str) -> Iterator[None]:
    """Say on standard error what is being done, once it has taken two seconds: in a terminal as long as it takes.

    It moves once a second, for what is done meanwhile may be timed.
    """
    console, over = Console(stderr=True), Event()

    def speak() -> None:
        if over.wait(SILENCE_S):
            return
        if not console.is_terminal:
            console.print(message, highlight=False, markup=False, soft_wrap=True)
            return
        with console.status(message, refresh_per_second=1):
            over.wait()

    speaker = Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        over.set()
        speaker.join()
