"""Wait for other processes."""

import time
from collections.abc import Callable
from threading import Thread
from typing import Any

PATIENCE_S = 240
"""Long, since two cores may be busy with other things."""


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for a condition; return its value. Raises AssertionError if that takes too long."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"in {PATIENCE_S} s it did not happen that {what}")


def run_at_once(function: Callable[[int], object], number: int) -> None:
    """Call a function in so many threads, each with its number."""
    threads = [Thread(target=function, args=(thread,)) for thread in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
