"""Settings of glibc's allocator that reuse freed memory between training steps.

By default glibc returns memory to the system as soon as the end of its heap is free, a few MB at a time. A training
step frees all its activations and requests as many at once, and the system zeroes every page again.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
_NEVER = -1
_MAX_HEAP_BLOCK = 32 * 2**20  # the 64-bit maximum, which glibc's dynamic threshold may also reach
_TRIM_AFTERWARDS = 2 * _MAX_HEAP_BLOCK  # the end of the dynamic threshold's range

_USER_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""Environment variables by which users set the thresholds."""

_inside = 0
_lock = Lock()


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Keep freed memory in the process until the outermost context ends.

    Does nothing without glibc, or if the user's environment sets the thresholds. Afterwards the thresholds stay at the
    maximum of glibc's dynamic range.
    """
    libc = None if any(os.environ.get(name) for name in _USER_SETTINGS) else _library()
    if libc is None:
        yield
        return
    _enter(libc)
    try:
        yield
    finally:
        _leave(libc)


def _enter(libc: ctypes.CDLL) -> None:
    global _inside  # the thresholds belong to the process, and so does the number of open contexts
    with _lock:
        _inside += 1
        libc.mallopt(_MMAP_THRESHOLD, _MAX_HEAP_BLOCK)
        libc.mallopt(_TRIM_THRESHOLD, _NEVER)


def _leave(libc: ctypes.CDLL) -> None:
    global _inside
    with _lock:
        _inside -= 1
        if not _inside:
            libc.mallopt(_TRIM_THRESHOLD, _TRIM_AFTERWARDS)
            libc.malloc_trim(0)


def _library() -> ctypes.CDLL | None:
    """Return the C library if it has glibc's calls, else None."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
