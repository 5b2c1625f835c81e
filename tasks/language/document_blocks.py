"""Tokenized documents in blocks. Tokens of text in memory are cached; files are tokenized on the fly."""

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

_TOKENS_VERSION = 1
"""Version of the tokenization here and in `Tokenizer.encode`; raise it if the tokens change."""

BLOCK = 1024
"""Documents that are read, shuffled and laid out together. Resuming reads at most so many again."""


class Block(NamedTuple):
    """A block of consecutive documents.

    Attributes:
        documents: Tokens of each non-empty document.
        skip_count: Number of unreadable documents.
        end: Number of the next document in the shard.
    """

    documents: list[Tokens]
    skip_count: int
    end: int


class ShardTokens(NamedTuple):
    """The tokens of all documents of a shard.

    Attributes:
        tokens: Concatenated documents, [T].
        ends: End of each document, [D].
        unread: Whether a document is unreadable, [D].
    """

    tokens: Tokens
    ends: NDArray[np.int64]
    unread: NDArray[np.bool_]


def blocks(shard: TextShard, start: int, rank_info: RankInfo, tokenizer: Tokenizer) -> Iterator[Block]:
    """Return this rank's documents of a shard, in blocks, from number `start` on."""
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
    """Return all documents of a shard in memory; the tokens are cached."""
    texts = [text for _, text in read(shard)]
    version = f"{_TOKENS_VERSION} {tokenizers.__version__} {tokenizer.fingerprint}"
    digest = hashlib.sha256(f"{version} {len(texts)}\n".encode())
    for text in texts:
        digest.update(b"none\n" if text is None else f"{len(text)}\n{text}".encode())

    def make() -> Arrays:
        token_lists: list[Tokens] = []
        with status_if_slow(f"tokenizing {len(texts):,} documents ..."):
            for first in range(0, len(texts), BLOCK):
                token_lists += tokenizer.encode([text or "" for text in texts[first : first + BLOCK]])
        ends = np.cumsum([len(tokens) for tokens in token_lists], dtype=np.int64)
        tokens = np.concatenate([np.empty(0, dtype=np.int32), *token_lists])
        return {"tokens": tokens, "ends": ends, "unread": np.array([text is None for text in texts], dtype=np.bool_)}

    return ShardTokens(**cache_arrays(f"tokens/{digest.hexdigest()}.safetensors", make))
