"""Where documents lie: files of JSON lines or parquet as C4 and the hub lay them out, the hub itself, or memory.

A document's number in its shard is the same in every pass, so that it is a position to go on from.
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
"""Bytes of a line: a document of more is none."""

MAX_GROUP = 2**33
"""Bytes of the texts of a parquet file's row group, unpacked."""


class DamagedShardError(Exception):
    """A shard cannot be read any further."""


class TextShard(ABC):
    """A part of a split.

    Attributes:
        name: What people call it.
        in_memory: Whether to read all of it costs next to nothing. Its tokens are then made before the first batch, and
            kept: it must be hashable, and never change.
    """

    name: str
    in_memory = False

    @abstractmethod
    def values(self, start: int, stride: int = 1) -> Iterator[object]:
        """What stands for every so-manyth document from number `start` on: a string, or anything else for none.

        Raises:
            Damaged: The rest cannot be read.
        """


def read(shard: TextShard, start: int = 0, rank_info: RankInfo = ALONE) -> Iterator[tuple[int, str | None]]:
    """Number and text of a process's own documents of a shard, from number `start` on.

    None stands for a document that cannot be read, and at the end for all that a damaged shard does not give (to the
    first process), so that callers can count what is skipped. The first of a shard is told, too.
    """
    number, warned_once = start + (rank_info.rank - start) % rank_info.world_size, False
    try:
        for value in shard.values(number, rank_info.world_size):
            if is_text(value):
                yield number, str(value)
            else:
                if not warned_once:
                    line = number + 1
                    message = f"{shard.name}: line {line} has no text; it and others like it are skipped and counted."
                    warn_once("skipped", message, shard.name, line)
                    warned_once = True
                yield number, None
            number += rank_info.world_size
    except DamagedShardError as error:
        message = f"{shard.name} is damaged: its first {number} documents are read, the rest is skipped ({error})."
        warn_once("bad-file", message, shard.name, number)
        if rank_info.rank == 0:
            yield number, None


def read_texts(shards: Iterable[TextShard]) -> Iterator[str]:
    """The texts of shards in their order, but for those that are empty or cannot be read."""
    return (text for shard in shards for _, text in read(shard) if text)


@lru_cache(maxsize=1024)
def warn_once(kind: Kind, message: str, shard: str, number: int) -> None:
    """Warn; of the same thing once a process, however many trainings meet it."""
    position = {"line": number} if kind == "skipped" else {"texts": number}
    warnings.warn(Notice(kind, message, shard=shard, **position), stacklevel=3)


def is_text(value: object) -> bool:
    """Whether it is a string that UTF-8 can write: JSON can name half of a surrogate pair."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class MemoryShard(TextShard):
    """Texts that are there already."""

    in_memory = True

    texts: tuple[str, ...]
    name: str = "memory"

    def values(self, start: int, stride: int = 1) -> Iterator[object]:
        """The texts."""
        return iter(self.texts[start::stride])


@dataclass(frozen=True, slots=True)
class JsonShard(TextShard):
    """A file of JSON lines, gzip or plain: an object with its text in `column` a line.

    A line of more than MAX_LINE bytes, unpacked, is passed over like any other that has no text.
    """

    path: Path
    column: str
    name: str

    def values(self, start: int, stride: int = 1) -> Iterator[object]:
        """The texts; other lines are not parsed."""
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
    """The lines of a file, None in place of one that is too long, of which no more is held than may be."""
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
        """The texts; row groups before `start` are not read.

        Raises:
            UserError: There is no such column.
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
                        raise DamagedShardError(f"a row group has {size} bytes of text, and may have {MAX_GROUP}")
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
        """The texts. Raises UserError where there is no such column."""
        for record in islice(self.dataset.skip(start), 0, None, stride):
            if self.column not in record:
                raise _no_column(self.name, self.column, record)
            yield record[self.column]


@dataclass(frozen=True, slots=True)
class HashShare(TextShard):
    """The documents of a shard whose hash falls into [low, high) of [0, 1); the others are empty.

    A split by hash keeps a document on its side whatever else the shard holds, and a document's doubles with it.
    """

    shard: TextShard
    low: float
    high: float

    @property
    def name(self) -> str:  # type: ignore[override]  # read only
        """The shard's name."""
        return self.shard.name

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        """Whether the shard is."""
        return self.shard.in_memory

    def values(self, start: int, stride: int = 1) -> Iterator[object]:
        """The texts of this share, "" for those of others."""
        for value in self.shard.values(start, stride):
            yield value if not is_text(value) or self.low <= _fraction(str(value)) < self.high else ""


def _fraction(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32
