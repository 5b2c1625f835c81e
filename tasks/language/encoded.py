"""Documents in tokens, block by block: those of text in memory are made once and kept, those of files as they come."""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import tokenizers
from numpy.typing import NDArray

from search_spaces.support.cache import Arrays, cache_arrays
from search_spaces.support.progress import status_if_slow
from search_spaces.support.rank import RankInfo
from tasks.language.shards import TextShard, read
from tasks.language.tokenizer import Tokenizer, Tokens

_RULE = 1
"""Of what follows from a tokenizer.json and the library, in `Tokenizer.encode` and here; another has another number."""

BLOCK = 1024
"""Documents that are read, shuffled and laid out together; at most that many are read again to go on."""


class Block(NamedTuple):
    """Some documents that follow one another.

    Attributes:
        documents: Tokens of each that has any.
        skip_count: How many could not be read.
        end: Number of the document behind them in their shard.
    """

    documents: list[Tokens]
    skip_count: int
    end: int


class ShardTokens(NamedTuple):
    """All documents of a shard.

    Attributes:
        tokens: One document after another, [T].
        ends: Where each ends, [D].
        unread: Whether it could not be read, [D].
    """

    tokens: Tokens
    ends: NDArray[np.int64]
    unread: NDArray[np.bool_]


def blocks(shard: TextShard, start: int, rank_info: RankInfo, tokenizer: Tokenizer) -> Iterator[Block]:
    """A process's own documents of a shard from number `start` on."""
    return (
        _blocks_in_memory(shard, start, rank_info, tokenizer)
        if shard.in_memory
        else _blocks_from_file(shard, start, rank_info, tokenizer)
    )


def _blocks_from_file(shard: TextShard, start: int, rank_info: RankInfo, tokenizer: Tokenizer) -> Iterator[Block]:
    documents = read(shard, start, rank_info)
    while block := list(islice(documents, BLOCK)):
        token_lists = tokenizer.encode([text for _, text in block if text])
        unread = sum(text is None for _, text in block)
        yield Block([tokens for tokens in token_lists if len(tokens)], unread, block[-1][0] + 1)


def _blocks_in_memory(shard: TextShard, start: int, rank_info: RankInfo, tokenizer: Tokenizer) -> Iterator[Block]:
    every = shard_tokens(shard, tokenizer)
    begins = np.concatenate(([0], every.ends[:-1]))
    numbers = np.arange(start + (rank_info.rank - start) % rank_info.world_size, len(every.ends), rank_info.world_size)
    for batch in (numbers[first : first + BLOCK] for first in range(0, len(numbers), BLOCK)):
        spans = zip(begins[batch], every.ends[batch], strict=True)
        documents = [every.tokens[begin:end] for begin, end in spans if end > begin]
        yield Block(documents, int(every.unread[batch].sum()), int(batch[-1]) + 1)


@lru_cache(maxsize=8)
def shard_tokens(shard: TextShard, tokenizer: Tokenizer) -> ShardTokens:
    """All documents of a shard that is in memory, from the cache or made for it."""
    texts = [text for _, text in read(shard)]
    version = f"{_RULE} {tokenizers.__version__} {tokenizer.fingerprint}"
    digest = hashlib.sha256(f"{version} {len(texts)}\n".encode())
    for text in texts:
        digest.update(b"none\n" if text is None else f"{len(text)}\n{text}".encode())

    def make() -> Arrays:
        token_lists: list[Tokens] = []
        with status_if_slow(f"making tokens of {len(texts):,} documents ..."):
            for first in range(0, len(texts), BLOCK):
                token_lists += tokenizer.encode([text or "" for text in texts[first : first + BLOCK]])
        ends = np.cumsum([len(tokens) for tokens in token_lists], dtype=np.int64)
        tokens = np.concatenate([np.empty(0, dtype=np.int32), *token_lists])
        return {"tokens": tokens, "ends": ends, "unread": np.array([text is None for text in texts], dtype=np.bool_)}

    return ShardTokens(**cache_arrays(f"tokens/{digest.hexdigest()}.safetensors", make))
