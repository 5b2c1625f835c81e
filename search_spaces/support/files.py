"""Atomic, checked files: written whole or not at all, verified when read, and quarantined if damaged.

Machines stop, disks fill up, and bits flip. Rows, caches and checkpoints are written and read by these functions.
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
"""Suffix of a file that is being written."""

BAD = ".bad"
"""Suffix of a quarantined file."""

_DIGITS = 64
"""Hex digits of a SHA-256; a checked file starts with them and a newline."""


def flush_to_disk(file: Path) -> None:
    """Wait until the bytes of a written file are on disk."""
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())


def atomic_replace(partial: Path, path: Path) -> None:
    """Move a written file to its final path atomically, after its bytes are on disk."""
    flush_to_disk(partial)
    partial.replace(path)
    with suppress(OSError):  # not every system can open folders
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def partial_file(path: Path) -> Iterator[Path]:
    """Yield a unique temporary path beside `path` for `atomic_replace`; remove it at the end if it still exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid4().hex[:8]}{PARTIAL}")
    try:
        yield partial
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def check_writable(file: Path) -> None:
    """Raise UserError if a file cannot be written, before hours of work are lost."""
    try:
        if file.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        with partial_file(file) as partial:
            partial.touch()
    except OSError as error:
        raise unwritable(file, error) from error


def unwritable(path: str | Path, error: OSError, option: str | None = None) -> UserError:
    """Return the error of an unwritable file; `option` is the option that named it."""
    fields = {"path": str(path)} if option is None else {"path": str(path), "option": option}
    another = "another path" if option is None else f"another {option}"
    message = f"{path} cannot be written: {error.strerror or error}. Give {another}."
    return UserError("unwritable", message, **fields)


def check_folder(file: Path, option: str | None = None) -> None:
    """Raise UserError if a file's folder does not exist; `option` is the option that named the file."""
    if not file.absolute().parent.is_dir():
        message = f"{file} cannot be written: folder {file.parent} does not exist. Create it, or give another path."
        fields = {"path": str(file), "folder": str(file.parent)} | ({} if option is None else {"option": option})
        raise UserError("unwritable", message, **fields)


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file atomically, and create its folder. Raises OSError if it cannot be written."""
    with partial_file(path) as partial:
        partial.write_bytes(content)
        atomic_replace(partial, path)


@contextmanager
def atomic_open(path: Path) -> Iterator[IO[bytes]]:
    """Open a file whose bytes replace `path` atomically at the end; no folder is created.

    A link is followed, and its target is replaced. Anything but a regular file (/dev/null, a pipe) is written in place.

    Raises:
        OSError: The file cannot be written; the previous one is unchanged.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    if not target.parent.is_dir():  # a typing error must not create folders
        raise FileNotFoundError(ENOENT, "its folder does not exist")
    with partial_file(target) as partial:
        with partial.open("wb") as file:
            yield file
        atomic_replace(partial, target)


def write_checked(path: Path, content: bytes) -> None:
    """Write bytes after a line with their SHA-256, for `read_checked`. Raises OSError."""
    atomic_write(path, hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def read_checked(path: Path) -> bytes | None:
    """Read what `write_checked` wrote; None if there is no file, or if it is damaged, which quarantines it."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, rest = content[: _DIGITS + 1], content[_DIGITS + 1 :]
    if digest == hashlib.sha256(rest).hexdigest().encode() + b"\n":
        return rest
    quarantine(path, "its checksum does not match")
    return None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file of any size, in hex. Raises OSError if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def quarantine(path: Path, problem: str) -> None:
    """Rename an unusable file, replacing an earlier quarantined one, with a Notice that says why."""
    message = f"{path} is renamed and made again: {problem}."
    warnings.warn(Notice("bad-file", message, path=str(path)), stacklevel=3)
    with suppress(OSError):
        path.replace(path.with_suffix(BAD))


def kind_of_read_error(error: Exception) -> Kind:
    """Return the kind of error for an unreadable file: missing, too large, or bad."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "missing-file"
    return "too-large" if isinstance(error, UserError) and error.kind == "too-large" else "bad-file"


def check_regular_file(path: Path, most: int | None = None) -> Path:
    """Return the path if it leads to a regular file of at most `most` bytes.

    Data and checkpoint files are checked so before they are opened: a pipe would block, and a device never ends. Links
    may lead anywhere, as in the hub's cache; their targets are read and never executed.

    Raises:
        OSError: There is nothing at the path.
        UserError: It is no regular file (a pipe, a socket, a device, a folder), or it is too large.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        message = f"data must be in regular files, got {str(path)!r}. Give a file, or remove it from its folder."
        raise UserError("bad-file", message, path=str(path))
    if most is not None and status.st_size > most:
        message = f"{str(path)!r} has {status.st_size} bytes; the limit is {most}. Check that it is the right file."
        raise UserError("too-large", message, path=str(path), size=status.st_size, most=most)
    return path
