"""Files that stand there whole or not at all, and are those that were written, or are set aside.

A machine may stop, and a disk fill up, at any moment; disks and copies flip bits. What is kept to be read again (the
Row of an evaluation, caches, checkpoints) is written and read by these functions.
"""

import hashlib
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EISDIR, ENOENT
from pathlib import Path
from typing import IO
from uuid import uuid4

from search_spaces.support.errors import Kind, Notice, UserError

PARTIAL = ".partial"
"""What the name of a file ends in that is being written."""

BAD = ".bad"
"""What the name of a file ends in that was set aside."""

_DIGITS = 64
"""Of a SHA-256 in hex, which a kept file begins with, and a line end."""


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


def check_writable(file: Path) -> None:
    """Raise UserError where a file cannot be: what takes hours is not to be lost for want of it."""
    try:
        if file.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        with partial_file(file) as partial:
            partial.touch()
    except OSError as error:
        raise unwritable(file, error) from error


def unwritable(path: str | Path, error: OSError, option: str | None = None) -> UserError:
    """The error of a file that cannot be written, which `option` named."""
    fields = {"path": str(path)} if option is None else {"path": str(path), "option": option}
    another = "another" if option is None else f"another {option}"
    message = f"{path} cannot be written: {error.strerror or error}. Give {another}."
    return UserError("unwritable", message, **fields)


def check_folder(file: Path, option: str | None = None) -> None:
    """Raise UserError where the folder of a file, which `option` named, is not there."""
    if not file.absolute().parent.is_dir():
        message = f"{file} cannot be written: there is no folder {file.parent}. Make it, or give another."
        fields = {"path": str(file), "folder": str(file.parent)} | ({} if option is None else {"option": option})
        raise UserError("unwritable", message, **fields)


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; its folder is made. Raises OSError where it cannot be written."""
    with partial_file(path) as partial:
        partial.write_bytes(content)
        atomic_replace(partial, path)


@contextmanager
def atomic_open(path: Path) -> Iterator[IO[bytes]]:
    """An open file, whose bytes take the place of what stands at `path` once all are written; no folder is made.

    Of a link, what it points to is replaced. What is no file (/dev/null, a pipe) is written to, and stays what it is.

    Raises:
        OSError: It cannot be written; what stood there still does.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    if not target.parent.is_dir():  # a slip of the keyboard makes no folders
        raise FileNotFoundError(ENOENT, "there is no such folder")
    with partial_file(target) as partial:
        with partial.open("wb") as file:
            yield file
        atomic_replace(partial, target)


def write_checked(path: Path, content: bytes) -> None:
    """Write bytes with their SHA-256 in a line before them, for `read_checked`. Raises OSError."""
    atomic_write(path, hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def read_checked(path: Path) -> bytes | None:
    """What `write_checked` wrote, or None where nothing was; a damaged file is set aside, and is None."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, rest = content[: _DIGITS + 1], content[_DIGITS + 1 :]
    if digest == hashlib.sha256(rest).hexdigest().encode() + b"\n":
        return rest
    quarantine(path, "its bytes are not those that were written")
    return None


def digest_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex, of a file of any size. Raises OSError where it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def quarantine(path: Path, problem: str) -> None:
    """Give a file that cannot be used another name, in place of the one set aside before; a Notice says so and why."""
    message = f"{path} is set aside, and made again: {problem}."
    warnings.warn(Notice("bad-file", message, path=str(path)), stacklevel=3)
    with suppress(OSError):
        path.replace(path.with_suffix(BAD))


def kind_of_read_error(error: Exception) -> Kind:
    """The kind of mistake for a file that cannot be read: it is not there, it is too large, or else it is bad."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "missing-file"
    return "too-large" if isinstance(error, UserError) and error.kind == "too-large" else "bad-file"


def regular(path: Path, most: int | None = None) -> Path:
    """The path, where it leads to a file of at most so many bytes.

    Whatever is read of a folder of data or of a checkpoint is asked so before it is opened: a pipe would be waited for
    without end, a device read without end. Links may lead anywhere, as they do in the hub's cache and where data lie on
    another disk: what is there is read, and never run.

    Raises:
        OSError: There is nothing.
        UserError: It is no file (a pipe, a socket, a device, a folder), or larger.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        message = f"data must be in files, got {str(path)!r}, which is none. Give a file, or take it out of its folder."
        raise UserError("bad-file", message, path=str(path))
    if most is not None and status.st_size > most:
        message = f"{str(path)!r} has {status.st_size} bytes, and may have {most}. Is it what it should be?"
        raise UserError("too-large", message, path=str(path), size=status.st_size, most=most)
    return path
