"""Arrays that are made once and read again, with a checksum: what was damaged is made anew."""

import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.numpy import load, save

from search_spaces.errors import Notice
from tasks.cache import cache_folder

Arrays = dict[str, np.ndarray[Any, Any]]

_DIGEST = 32
"""Bytes of the SHA-256 that a file begins with, of all that follows."""


def kept(name: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays kept under `name`, made and kept where there are none yet or where they are damaged.

    `name` holds a digest of all that `make` depends on. Of several processes that want the same arrays, one makes them
    and the others wait. A cache that cannot be written to costs time, not the run.
    """
    path = cache_folder() / name
    found = _read(path)
    if found is not None:
        return found
    lock = FileLock(f"{path}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        _not_kept(path, error)
        return make()
    try:
        found = _read(path)  # somebody else may have made them meanwhile
        if found is None:
            if path.exists():
                warnings.warn(f"{path} is damaged: its checksum is another. It is made again.", Notice, 2)
            found = make()
            _write(path, found)
        return found
    finally:
        lock.release()


def _read(path: Path) -> Arrays | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, body = content[:_DIGEST], memoryview(content)[_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        return None
    try:
        return dict(load(bytes(body)))
    except SafetensorError:  # of another version
        return None


def _write(path: Path, arrays: Arrays) -> None:
    """Whole or not at all: a machine may stop at any moment."""
    body = save(arrays)
    try:
        with NamedTemporaryFile("wb", dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(body).digest())
            file.write(body)
        Path(file.name).replace(path)
    except OSError as error:
        _not_kept(path, error)


def _not_kept(path: Path, error: Exception) -> None:
    warnings.warn(f"{path} could not be kept, and is made anew each time: {error}", Notice, 3)
