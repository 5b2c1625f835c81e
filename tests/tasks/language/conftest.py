"""Files in C4's schema, and a small tokenizer."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tasks.language import shards
from tasks.language.tokenizer import Tokenizer, train_tokenizer

SENTENCES = (
    "The residual stream carries what every layer before has written.",
    "A decoder predicts the next token from those before it.",
    "Größe und Länge, naïve façade, 語彙 — none of these is ASCII. 😀",
    "Budgets are counted before anything is trained.",
    "Heads attend; feed-forward layers transform.",
)


def story(number: int, sentences: int = 6) -> str:
    """A unique text per number."""
    return " ".join(f"{number}: {SENTENCES[(number * 7 + i * 3) % len(SENTENCES)]}" for i in range(sentences))


def line(text: str) -> bytes:
    """One line in C4's format."""
    record = {"text": text, "timestamp": "2019-04-25T12:57:54Z", "url": f"https://example.org/{len(text)}"}
    return json.dumps(record).encode() + b"\n"


def write_gz(path: Path, texts: Sequence[str]) -> None:
    path.write_bytes(gzip.compress(b"".join(map(line, texts))))


@pytest.fixture(autouse=True)
def nothing_told_before() -> None:
    shards.warn_once.cache_clear()


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Byte pairs trained on the stories: 300 tokens, so that words split."""
    return train_tokenizer([story(number) for number in range(20)], 300)


def write_c4(folder: Path, tokenizer: Tokenizer) -> Path:
    """Write a small C4 with a corrupt line, a truncated second file and a tokenizer.json."""
    write_gz(folder / "c4-validation.00000-of-00001.json.gz", [story(number) for number in range(1000, 1040)])
    lines = [line(story(number)) for number in range(30)]
    lines[4] = b'{"text": "this line ends in the midd\n'
    (folder / "c4-train.00000-of-00002.json.gz").write_bytes(gzip.compress(b"".join(lines)))
    whole = gzip.compress(b"".join(line(story(number, 40)) for number in range(30, 200)))
    (folder / "c4-train.00001-of-00002.json.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "tokenizer.json").write_text(tokenizer.text)
    return folder


@pytest.fixture
def c4(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    """A small C4 for tests that change it."""
    return write_c4(tmp_path, tokenizer)


@pytest.fixture(scope="session")
def shared_c4(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    """A small C4 for tests that do not change it."""
    return write_c4(tmp_path_factory.mktemp("c4"), tokenizer)
