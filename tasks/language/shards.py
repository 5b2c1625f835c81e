"""Shards of documents: files of JSON lines or parquet as in C4 and the Hub, Hub streams, and memory.

A document's number in its shard is the same in every pass, so a training can resume from it.
"""

import gzip
import hashlib
import json
import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from search_spaces.support.errors import Kind, Notice, UserError
from search_spaces.support.rank import ALONE, RankInfo

MAX_LINE = 2**26
"""Maximum bytes of a line; longer documents are skipped."""

MAX_GROUP = 2**33
"""Maximum uncompressed bytes of the texts in a row group of a parquet file."""


class DamagedShardError(Exception):
    """The error raised if the rest of a shard cannot be read."""


class TextShard(ABC):
    """A part of a split.

    Attributes:
        name: Name for messages.
        in_memory: Whether reading all of it is almost free. Its tokens are then made before the first batch and cached,
            so the shard must be hashable and immutable.
    """

    name: str
    in_memory = False

    @abstractmethod
    def values(self, start: int, stride: int = 1) -> Iterator[object]:
        """Yield every `stride`-th document from number `start` on: a string, or anything else if it is unreadable.

        Raises:
            DamagedShardError: The rest cannot be read.
        """


def read(shard: TextShard, start: int = 0, rank_info: RankInfo = ALONE) -> Iterator[tuple[int, str | None]]:
    """Yield number and text of this rank's documents of a shard, from number `start` on.

    The text is None for an unreadable document, so that callers can count them. A damaged shard ends with one None, in
    the first rank only. The first None of a shard gives a warning.
    """
    number, warned_once = start + (rank_info.rank - start) % rank_info.world_size, False
    try:
        for value in shard.values(number, rank_info.world_size):
            if is_text(value):
                yield number, str(value)
            else:
                if not warned_once:
                    line = number + 1
                    message = f"{shard.name}: line {line} has no text; such lines are skipped and counted."
                    warn_once("skipped", message, shard.name, line)
                    warned_once = True
                yield number, None
            number += rank_info.world_size
    except DamagedShardError as error:
        message = f"{shard.name} is damaged: its first {number} documents are read, and the rest is skipped ({error})."
        warn_once("bad-file", message, shard.name, number)
        if rank_info.rank == 0:
            yield number, None


def read_texts(shards: Iterable[TextShard]) -> Iterator[str]:
    """Yield the texts of shards in order, without empty or unreadable ones."""
    return (text for shard in shards for _, text in read(shard) if text)


@lru_cache(maxsize=1024)
def warn_once(kind: Kind, message: str, shard: str, number: int) -> None:
    """Warn once per process, however many trainings meet the same problem."""
    position = {"line": number} if kind == "skipped" else {"texts": number}
    warnings.warn(Notice(kind, message, shard=shard, **position), stacklevel=3)


def is_text(value: object) -> bool:
    """Return whether the value is a string that UTF-8 can encode: JSON can contain half of a surrogate pair."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class MemoryShard(TextShard):
    """A shard of texts in memory."""

    in_memory = True

    texts: tuple[str, ...]
    name: str = "memory"

    def values(self, start: int, stride: int = 1) -> Iterator[object]:
        return iter(self.texts[start::stride])


@dataclass(frozen=True, slots=True)
class JsonShard(TextShard):
    """A file of JSON lines, gzip or plain: an object with its text in `column` per line.

    A line of more than MAX_LINE bytes, uncompressed, is skipped like any other without text.
    """

    path: Path
    column: str
    name: str

    def values(self, start: int, stride: int = 1) -> Iterator[object]:
        """Yield the texts; skipped lines are not parsed."""
        try:
            with gzip.open(self.path, "rb") if self.path.suffix == ".gz" else self.path.open("rb") as file:
                for line in islice(_lines(file), start, None, stride):
                    yield None if line is None else self._text(line)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DamagedShardError(str(error).rstrip(".")) from error

    def _text(self, line: bytes) -> object:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return record.get(self.column) if isinstance(record, dict) else None


def _no_column(name: str, column: str, columns: Iterable[str]) -> UserError:
    message = f"{name} has no column {column!r}. Its columns: {', '.join(columns)}."
    return UserError("bad-data", message, source=name, column=column, columns=tuple(columns))


def _lines(file: BufferedIOBase) -> Iterator[bytes | None]:
    """Yield the lines of a file, None for one that is too long, without reading it into memory whole."""
    while line := file.readline(MAX_LINE + 1):
        if len(line) <= MAX_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE)
        yield None


@dataclass(frozen=True, slots=True)
class ParquetShard(TextShard):
    """A parquet file with the texts in `column`."""

    path: Path
    column: str
    name: str

    def values(self, start: int, stride: int = 1) -> Iterator[object]:
        """Yield the texts; row groups before `start` are not read.

        Raises:
            UserError: The column does not exist.
        """
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                columns = file.schema_arrow.names
                if self.column not in columns:
                    raise _no_column(str(self.path), self.column, columns)
                for group in range(file.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    size = file.metadata.row_group(group).column(columns.index(self.column)).total_uncompressed_size
                    if size > MAX_GROUP:
                        raise DamagedShardError(f"a row group has {size} bytes of text; the limit is {MAX_GROUP}")
                    if start < rows:
                        yield from file.read_row_group(group, [self.column]).column(0)[start::stride].to_pylist()
                        start += -(-(rows - start) // stride) * stride
                    start -= rows
        except (pyarrow.ArrowException, OSError) as error:
            raise DamagedShardError(str(error).strip().splitlines()[0].rstrip(".")) from error


@dataclass(frozen=True, slots=True)
class HubShard(TextShard):
    """One shard of a streaming data set of Hugging Face's `datasets`."""

    dataset: Any
    column: str
    name: str

    def values(self, start: int, stride: int = 1) -> Iterator[object]:
        """Yield the texts. Raises UserError if the column does not exist."""
        for record in islice(self.dataset.skip(start), 0, None, stride):
            if self.column not in record:
                raise _no_column(self.name, self.column, record)
            yield record[self.column]


@dataclass(frozen=True, slots=True)
class HashSplitShard(TextShard):
    """The documents of a shard whose hash falls into [low, high) of [0, 1); the others are empty.

    A split by hash keeps a document and its duplicates on one side, whatever else the shard holds.
    """

    shard: TextShard
    low: float
    high: float

    @property
    def name(self) -> str:  # type: ignore[override]  # read only
        return self.shard.name

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        return self.shard.in_memory

    def values(self, start: int, stride: int = 1) -> Iterator[object]:
        """Yield the texts of this share, "" for all others."""
        for value in self.shard.values(start, stride):
            yield value if not is_text(value) or self.low <= _fraction(str(value)) < self.high else ""


def _fraction(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32
