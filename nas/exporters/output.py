"""The file or folder that an export writes: it appears at its place only if it is complete and checked."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from search_spaces.support.errors import UserError
from search_spaces.support.files import PARTIAL, atomic_replace, flush_to_disk, partial_file


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside a file; what is written there replaces the file at the end.

    Raises:
        OSError: It cannot be written.
    """
    with partial_file(path) as partial:
        partial.touch()  # fails before any work
        mode = partial.stat().st_mode
        yield partial
        partial.chmod(mode)  # safetensors makes files private to their owner
        atomic_replace(partial, path)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside a new or empty one; it is renamed to that at the end.

    Raises:
        OSError: It cannot be written.
        UserError: There is another file or folder.
    """
    check_new_folder(path)
    partial = path.absolute().with_name(f"{path.name}.{uuid4().hex[:8]}{PARTIAL}")
    partial.mkdir(parents=True)
    try:
        mode = partial.stat().st_mode & 0o666  # of a folder without the permissions to enter it
        yield partial
        for file in partial.iterdir():
            file.chmod(mode)
            flush_to_disk(file)  # before the folder has its name
        partial.replace(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_new_folder(path: Path, remedy: str = "Give another folder, or remove it.") -> None:
    """Raise UserError if there is something at the path other than an empty folder; the message ends with `remedy`."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        message = f"--to must name a new or empty folder, got {path}. {remedy}"
        raise UserError("exists", message, option="--to", path=str(path))
