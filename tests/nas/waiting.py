"""Waiting for what other processes do."""

import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 240
"""How long is waited for what must happen: two cores may be busy with other things."""


def until(condition: Callable[[], Any], what: str) -> Any:
    """What a condition gives once that is something. Raises AssertionError where that takes too long."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"in {PATIENCE_S} s it did not happen that {what}")
