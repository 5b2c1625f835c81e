"""Loading PyTorch and what else a function of `nas` needs: shown if it is slow, and timed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from search_spaces.support.progress import LOADING, status_if_slow

_SECONDS: dict[str, float] = {}
"""Function -> seconds of its loading, until they are reported."""


@contextmanager
def loading(function: str) -> Iterator[None]:
    """A context in which the modules of a function are loaded."""
    began = time.perf_counter()
    try:
        with status_if_slow(LOADING):
            yield
    finally:
        _SECONDS[function] = time.perf_counter() - began


def pop_loading_seconds(function: str) -> float:
    """Seconds that loading a function took; 0 from the second call on."""
    return _SECONDS.pop(function, 0.0)
