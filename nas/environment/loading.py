"""Loading of PyTorch and other modules of a function of `nas`: timed, with a status line if it is slow."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from search_spaces.support.progress import LOADING, status_if_slow

_SECONDS: dict[str, float] = {}
"""Function -> seconds that its loading took, until they are reported."""


@contextmanager
def loading(function: str) -> Iterator[None]:
    """Time the loading of a function's modules, and show a status line if it is slow."""
    began = time.perf_counter()
    try:
        with status_if_slow(LOADING):
            yield
    finally:
        _SECONDS[function] = time.perf_counter() - began


def pop_loading_seconds(function: str) -> float:
    """Return the seconds that loading a function took; 0 from the second call on."""
    return _SECONDS.pop(function, 0.0)
