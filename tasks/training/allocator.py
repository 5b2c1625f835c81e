"""glibc's allocator while a network is trained: what a step frees is kept for the next one.

By its own rules glibc gives memory back to the system as soon as the end of its heap is free, a few MB at a time. A
training step frees all its activations and asks for as many at once, and the system fills every page with zeros anew.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_NEVER = -1
_MAX_HEAP_BLOCK = 32 * 2**20  # glibc takes no larger one with 64 bits, and comes to it by its own rules as well
_TRIM_AFTERWARDS = 2 * _MAX_HEAP_BLOCK  # where those rules end

_USER_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
"""By which somebody has set these for the process."""

_inside = 0
_lock = Lock()


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Keep what is freed, and give it back at the end of the outermost of these.

    Nothing is done without glibc, or where the environment chooses. Afterwards the two thresholds stay where glibc's
    own rules take them at most.
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
    global _inside  # thresholds are the process's, and so is how many want them
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
    """The C library, where it is glibc, or takes the same calls."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
