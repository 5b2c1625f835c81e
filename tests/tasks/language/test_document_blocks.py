"""Cached tokens of documents equal fresh ones."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from grouped import grouped
from search_spaces.support.rank import RankInfo
from tasks.language import document_blocks
from tasks.language.document_blocks import Block, blocks
from tasks.language.shards import HashSplitShard, MemoryShard
from tasks.language.tokenizer import Tokenizer, train_tokenizer

TEXTS: tuple[object, ...] = (*(f"text {n} " + "word " * (n % 5) for n in range(19)), "", None, "the end", None)


@dataclass(frozen=True, slots=True)
class Elsewhere(MemoryShard):
    """The same texts, read like a file's."""

    in_memory = False


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_blocks, "BLOCK", 4)


def plain(block: Block) -> tuple[list[list[int]], int, int]:
    return [document.tolist() for document in block.documents], block.skip_count, block.end


@pytest.mark.filterwarnings("ignore:memory:UserWarning")
def test_cached_documents_equal_those_read_anew(tokenizer: Tokenizer) -> None:
    in_memory, read = (kind(TEXTS) for kind in (MemoryShard, Elsewhere))  # type: ignore[arg-type]
    with grouped() as case:
        for first, second in ((in_memory, read), (HashSplitShard(in_memory, 0, 0.5), HashSplitShard(read, 0, 0.5))):
            for start, share in product((0, 5, 22, 23), (RankInfo(0, 1), RankInfo(0, 3), RankInfo(2, 3))):
                with case(f"{type(first).__name__} from {start}, {share}"):
                    actual, expected = (list(map(plain, blocks(of, start, share, tokenizer))) for of in (first, second))
                    assert actual == expected


@pytest.mark.filterwarnings("ignore:memory:UserWarning")
def test_text_in_memory_is_encoded_once_on_a_machine(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    shard, calls = MemoryShard(("one text of this test", "and another")), []

    def encode(self: Tokenizer, texts: list[str]) -> list[np.ndarray]:
        calls.append(len(texts))
        return [np.arange(len(text), dtype=np.int32) for text in texts]

    monkeypatch.setattr(Tokenizer, "encode", encode)
    first = document_blocks.shard_tokens(shard, tokenizer)
    document_blocks.shard_tokens.cache_clear()  # as in a new process
    second_read = document_blocks.shard_tokens(MemoryShard(shard.texts), tokenizer)
    assert calls == [2]
    assert all(np.array_equal(mine, second) for mine, second in zip(first, second_read, strict=True))
    document_blocks.shard_tokens(MemoryShard((*shard.texts, "")), tokenizer)
    assert calls == [2, 3]
    unread = document_blocks.shard_tokens(MemoryShard((*shard.texts, None)), tokenizer)  # type: ignore[arg-type]
    assert unread.unread.tolist() == [False, False, True]
    document_blocks.shard_tokens(shard, train_tokenizer(["another"], 300))
    assert calls == [2, 3, 3, 2]
    monkeypatch.setattr(document_blocks.tokenizers, "__version__", "another")
    document_blocks.shard_tokens.cache_clear()
    document_blocks.shard_tokens(shard, tokenizer)
    assert calls == [2, 3, 3, 2, 2]
