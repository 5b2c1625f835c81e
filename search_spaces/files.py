"""Files that stand there whole or not at all: a machine may stop, and a disk fill up, at any moment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

PARTIAL = ".partial"
"""What the name of a file ends in that is being written."""


def atomic_replace(partial: Path, path: Path) -> None:
    """Move a written file into its place, whole or not at all, with its bytes on the disk before its name."""
    with partial.open("rb+") as file:
        os.fsync(file.fileno())
    partial.replace(path)
    with suppress(OSError):  # not every system lets folders be opened
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def partial_file(path: Path) -> Iterator[Path]:
    """A name of its own beside `path` to write to, for `atomic_replace`; what is left there at the end is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid4().hex[:8]}{PARTIAL}")
    try:
        yield partial
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; its folder is made. Raises OSError where it cannot be written."""
    with partial_file(path) as partial:
        partial.write_bytes(content)
        atomic_replace(partial, path)
