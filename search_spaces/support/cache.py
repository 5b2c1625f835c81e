"""A file cache with checksums; damaged entries are made again."""

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from search_spaces.support.errors import Notice
from search_spaces.support.files import read_checked, write_checked

Arrays = dict[str, np.ndarray[Any, Any]]


def cache_folder() -> Path:
    """Return this platform's cache folder for the user, or NAS_CACHE if it is set."""
    folder = os.environ.get("NAS_CACHE")
    if folder:
        return Path(folder)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "nas-bench-wiring"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "nas-bench-wiring"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nas-bench-wiring"


def cache_bytes(name: str, make: Callable[[], bytes]) -> bytes:
    """Return the bytes cached under `name`; make and cache them if they are missing or damaged.

    `name` must contain a digest of all that `make` depends on, so that entries never become stale. If several processes
    need the same entry, one makes it and the others wait. If the cache is not writable, the run goes on with a Notice.
    """
    path = cache_folder() / name
    content = read_checked(path)
    if content is not None:
        return content
    from filelock import FileLock  # not needed for a cache hit

    lock = FileLock(f"{path}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        _warn_unwritable(path, error)
        return make()
    try:
        content = read_checked(path)  # another process may have made it meanwhile
        if content is None:
            content = make()
            try:
                write_checked(path, content)
            except OSError as error:
                _warn_unwritable(path, error)
        return content
    finally:
        lock.release()


def cache_arrays(name: str, make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays cached under `name`; make and cache them if they are missing, see `cache_bytes`."""
    from safetensors.numpy import load, save

    return dict(load(cache_bytes(name, lambda: save(make()))))


def _warn_unwritable(path: Path, error: Exception) -> None:
    message = f"{path} cannot be cached, and is computed again each time: {error}"
    warnings.warn(Notice("unwritable", message, path=str(path)), stacklevel=3)
