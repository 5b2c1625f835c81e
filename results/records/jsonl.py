"""Read and write Rows as JSON Lines, one Row a line, lossless. Loads no torch.

Files that end in .gz are compressed. Reading reports bad lines and returns all others.
"""

import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any

from results.records.human_numbers import MAX_FILE
from results.records.row import Row
from results.records.strict_json import MAX_TEXT, BadRow
from search_spaces.support.errors import UserError, cause_fields
from search_spaces.support.files import atomic_open, check_regular_file, kind_of_read_error, unwritable

MAX_LINE = MAX_TEXT
"""Maximum size of a line in bytes."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no Row.

    Attributes:
        number: Line number, from 1.
        error: The reason.
    """

    number: int
    error: BadRow

    @property
    def reason(self) -> str:
        """The reason, in a few words."""
        return str(self.error)

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of an error that names this line: those of `error`, and the line number."""
        return {**cause_fields(self.error), "line": self.number}

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}"


def read(path: Path) -> tuple[list[Row], list[BadLine]]:
    """Read the Rows of a file in order, and its bad lines; empty lines are skipped.

    Raises:
        UserError: There is no such file, it is a pipe or a device, or it cannot be opened.
    """
    rows: list[Row] = []
    bad: list[BadLine] = []
    try:
        if path.exists() and not path.is_dir():
            check_regular_file(path)
        with _open(path) as file:
            for number, line in _lines(file):
                try:
                    rows.append(_row(line))
                except BadRow as error:
                    bad.append(BadLine(number, error))
    except OSError as error:
        message = f"{str(path)!r} cannot be read: {error.strerror or error}."
        raise UserError(kind_of_read_error(error), message, path=str(path)) from error
    return rows, bad


def write(rows: Iterable[Row], path: str | Path | None = None) -> None:
    """Write Rows to a file atomically, or without a path to standard output.

    Raises:
        UserError: The file cannot be written.
        TypeError, UserError: A Row cannot be serialized, see `Row.to_json`; nothing is written.
    """
    if path is None:
        text = "".join(f"{row.to_json()}\n" for row in rows)
        sys.stdout.flush()  # keep the order of earlier output
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    try:
        with atomic_open(target) as file:
            _write(rows, file, compress=target.resolve().suffix == ".gz")
    except OSError as error:
        raise unwritable(path, error) from error


def _write(rows: Iterable[Row], file: IO[bytes], *, compress: bool) -> None:
    """Write Rows; equal Rows give equal bytes, so a compressed file records no name or time."""
    if compress:
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as inner:
            inner.writelines(f"{row.to_json()}\n".encode() for row in rows)
    else:
        file.writelines(f"{row.to_json()}\n".encode() for row in rows)


def _open(path: Path) -> BufferedIOBase:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _lines(file: BufferedIOBase) -> Iterator[tuple[int, bytes | BadRow]]:
    """Yield non-empty lines with their numbers; for an unreadable line, the error."""
    number, remaining = 0, MAX_FILE
    while True:
        number += 1
        try:
            line, size = _line(file, remaining)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            reason = f"the compressed file is damaged from here: {error}"
            yield number, BadRow("bad-file", reason, cause=type(error).__name__)
            return
        if not size:
            return
        remaining -= size
        if remaining < 0:
            reason = f"the file exceeds {MAX_FILE >> 20} MiB, and the rest is not read"
            yield number, BadRow("too-large", reason, option="file", most=MAX_FILE)
            return
        if size > MAX_LINE:
            reason = f"it has {size} bytes; the limit is {MAX_LINE}"
            yield number, BadRow("too-large", reason, option="line", size=size, most=MAX_LINE)
        elif line.strip():
            yield number, line


def _line(file: BufferedIOBase, remaining: int) -> tuple[bytes, int]:
    """Read the next line and its size, counted up to about `remaining`; a line over MAX_LINE comes incomplete."""
    line = file.readline(MAX_LINE + 1)
    size = len(line)
    while size > MAX_LINE and not line.endswith(b"\n") and size <= remaining:
        line = file.readline(MAX_LINE)
        if not line:
            break
        size += len(line)
    return line, size


def _row(line: bytes | BadRow) -> Row:
    if isinstance(line, BadRow):
        raise line
    try:
        return Row.from_json(line.removeprefix(b"\xef\xbb\xbf").decode())
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8: byte {error.start + 1} is {line[error.start]:#04x}"
        raise BadRow("bad-syntax", reason, byte=error.start + 1) from None
    except BadRow as error:
        if not line.endswith(b"\n"):
            reason = f"{error}; it is the file's last line"
            raise BadRow(error.kind, reason, **error.fields, last=True) from None
        raise
