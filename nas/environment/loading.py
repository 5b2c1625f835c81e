"""Loading PyTorch and what else a function needs: shown if it is slow, and timed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from search_spaces.support.progress import LOADING, status_if_slow

_SECONDS: list[float] = []
"""Seconds of each loading since the last report."""


@contextmanager
def loading() -> Iterator[None]:
    """A context in which modules are loaded."""
    began = time.perf_counter()
    try:
        with status_if_slow(LOADING):
            yield
    finally:
        _SECONDS.append(time.perf_counter() - began)


def pop_loading_seconds() -> float:
    """Seconds of loading since the last call."""
    seconds = sum(_SECONDS)
    _SECONDS.clear()
    return seconds
