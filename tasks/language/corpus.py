"""Text corpora: the shards of the training, validation and test splits.

A file's split follows from the words in its path, as on the Hub: c4-train.00000-of-01024.json.gz is of split "train",
validation/0000.parquet of "validation".
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from search_spaces.support.errors import UserError
from search_spaces.support.files import check_regular_file
from tasks.language.hub import hub_shards
from tasks.language.shards import HashSplitShard, JsonShard, MemoryShard, ParquetShard, TextShard, read_texts
from tasks.language.stdlib import stdlib_documents
from tasks.language.tokenizer import Tokenizer, train_tokenizer

_SUFFIXES = (".json.gz", ".jsonl.gz", ".json", ".jsonl", ".parquet")
_NO_TEXT = frozenset({"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "dataset_infos.json"})
_NAMES = {"train": {"train"}, "validation": {"validation", "valid", "val", "dev"}, "test": {"test"}}
_EDGE = 1 << 16
_HELD_OUT = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSource:
    """The default text of a task.

    Attributes:
        hub: Name of the data set on the Hugging Face Hub.
        subset: Its configuration, or None if it has only one.
        revision: Its revision, or None for the newest.
        column: Column of the text.
    """

    hub: str
    subset: str | None = None
    revision: str | None = None
    column: str = "text"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Text in shards, without documents shared between splits.

    Attributes:
        train: Training shards.
        validation: Validation shards.
        test: Test shards.
        fingerprint: SHA-256 of the identity of the shards, in hex.
    """

    train: tuple[TextShard, ...]
    validation: tuple[TextShard, ...]
    test: tuple[TextShard, ...]
    fingerprint: str


def stdlib_corpus() -> Corpus:
    """Return the text inside this CPython; by hash, 5 % of the documents are for validation and 5 % for test."""
    documents = stdlib_documents()
    digest = hashlib.sha256()
    for name, text in documents.items():
        digest.update(f"{name} {len(text)}\n{text}".encode())
    shard = MemoryShard(tuple(documents.values()), "the standard library")
    return _corpus({"train": (shard,)}, digest.hexdigest())


def stdlib_text(max_tokens: int) -> tuple[Corpus, Tokenizer]:
    """Return the text inside this CPython, and a tokenizer trained on its training split."""
    corpus = stdlib_corpus()
    return corpus, train_tokenizer(read_texts(corpus.train), max_tokens)


def folder_corpus(folder: Path, column: str) -> Corpus:
    """Return the corpus of a folder: JSON lines, gzip or plain, and parquet.

    The fingerprint covers names, sizes, and the first and last 64 KiB of each file, where gzip and parquet keep
    checksums and statistics.

    Raises:
        UserError: The folder has no training file, or a path with a data file's name is not a file.
    """
    files = sorted(path for path in folder.rglob("*") if path.name.endswith(_SUFFIXES) and path.name not in _NO_TEXT)
    digest = hashlib.sha256()
    splits: dict[str, tuple[TextShard, ...]] = {}
    for path in files:
        name = path.relative_to(folder).as_posix()
        kind = ParquetShard if path.suffix == ".parquet" else JsonShard
        split = _split(name)
        splits[split] = (*splits.get(split, ()), kind(path, column, name))
        digest.update(f"{name} {check_regular_file(path).stat().st_size}\n".encode() + _edges(path))
    if "train" not in splits:
        kinds = ", ".join(f"*train*{suffix}" for suffix in _SUFFIXES)
        raise UserError(
            "missing-data",
            f"{folder} has no training files. It must contain files like {kinds}, or files whose names have no split.",
            path=str(folder),
            split="train",
        )
    return _corpus(splits, digest.hexdigest())


def hub_corpus(source: TextSource) -> Corpus:
    """Return a streamed data set of the Hub.

    Raises:
        UserError: The Hub is unreachable or has no such data set.
    """
    splits, revision = hub_shards(source.hub, source.subset, source.revision, source.column)
    if "train" not in splits:
        raise UserError(
            "missing-data",
            f"{source.hub!r} has no split 'train'. Give a folder of its files with --data.",
            value=source.hub,
            split="train",
        )
    fingerprint = hashlib.sha256(f"{source.hub} {source.subset} {source.column} {revision}".encode()).hexdigest()
    return _corpus(splits, fingerprint)


def _corpus(splits: dict[str, tuple[TextShard, ...]], fingerprint: str) -> Corpus:
    """Split the only held-out split in half; without any, hold out a part of the last training shard."""
    train, validation, test = (splits.get(name, ()) for name in _NAMES)
    if not validation and not test:
        last = train[-1]
        train = (*train[:-1], HashSplitShard(last, 2 * _HELD_OUT, 1))
        validation, test = (HashSplitShard(last, 0, _HELD_OUT),), (HashSplitShard(last, _HELD_OUT, 2 * _HELD_OUT),)
    elif not validation or not test:
        held_out = validation or test
        validation, test = _shares(held_out, 0, 0.5), _shares(held_out, 0.5, 1)
    return Corpus(train, validation, test, fingerprint)


def _shares(shards: Sequence[TextShard], low: float, high: float) -> tuple[TextShard, ...]:
    return tuple(HashSplitShard(shard, low, high) for shard in shards)


def _split(name: str) -> str:
    """Return the split that a path names; "train" if it names none."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    return next((split for split, aliases in _NAMES.items() if words & aliases), "train")


def _edges(path: Path) -> bytes:
    with path.open("rb") as file:
        start = file.read(_EDGE)
        file.seek(max(0, path.stat().st_size - _EDGE))
        return start + file.read()
