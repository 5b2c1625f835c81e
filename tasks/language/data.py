"""A corpus as a decoder learns from it: rows to train on, and documents to be measured on.

Shapes: B = batch, R = rows, N = context.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np
import torch

from search_spaces.errors import UserError
from tasks.language.corpus import Corpus
from tasks.language.rows import Layout
from tasks.language.shards import TextShard, read
from tasks.language.stream import BLOCK, Position, Stream, prefetch
from tasks.language.tokenizer import Tokenizer, Tokens
from tasks.recipe import Recipe
from tasks.splits import Batch, DataPosition, Part, Splits

_PREFETCHED = 8
"""Batches that are made beforehand."""


class HeldOut(NamedTuple):
    """Documents to be measured on, each laid out by itself.

    Attributes:
        tokens: Grid [R, N + 1].
        sizes: UTF-8 bytes that each token adds to its text; grid [R, N + 1].
        documents: Number of each row's document, [R].
        skipped: Documents that could not be read.
    """

    tokens: Tokens
    sizes: Tokens
    documents: Tokens
    skipped: int


@dataclass(frozen=True, eq=False)
class LanguageSplits(Splits):
    """A corpus in tokens.

    Attributes:
        corpus: The text.
        tokenizer: Makes tokens of it.
        layout: Makes rows of documents.
        context: Tokens of a row, N.
    """

    corpus: Corpus
    tokenizer: Tokenizer
    layout: Layout
    context: int

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the corpus, the tokenizer and the layout, in hex."""
        parts = (self.corpus.fingerprint, self.tokenizer.fingerprint, str(self.layout), str(self.context))
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    @property
    def examples(self) -> int:
        """Not known of a stream, and not asked for: recipes of language tasks have steps."""
        return 0

    def training(
        self, recipe: Recipe, seed: int, start: DataPosition, device: torch.device
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Rows: what is read [B, N] and what follows [B, N], with where the stream then stands."""
        stream = Stream(self.corpus.train, self.tokenizer, self.layout, self.context, seed)
        batches = self._batches(stream, Position(*start), recipe.batch // recipe.accumulate)
        for (inputs, targets), position in prefetch(batches, _PREFETCHED):
            yield (inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)), tuple(position)

    def once(self, size: int) -> Iterator[Batch]:
        """Every row to train on once, in batches of at most `size` rows."""
        stream = Stream(self.corpus.train, self.tokenizer, self.layout, self.context, seed=0)
        rows = (row for row, position in takewhile(lambda item: item[1].epoch == 0, stream.rows(Position())))
        while batch := list(islice(rows, size)):
            yield _shifted(np.stack(batch))

    def _batches(self, stream: Stream, start: Position, size: int) -> Iterator[tuple[Batch, Position]]:
        rows = stream.rows(start)
        while True:
            batch = list(islice(rows, size))
            yield _shifted(np.stack([row for row, _ in batch])), batch[-1][1]

    def measured(self, part: Part, recipe: Recipe, device: torch.device) -> Iterator[Batch]:
        """Rows [B, N] of documents; of each token that follows, itself, its bytes and its document [B, N, 3]."""
        held_out, size = self._held_out(part, recipe), recipe.batch // recipe.accumulate
        for first in range(0, len(held_out.tokens), size):
            chosen = slice(first, first + size)
            inputs, targets = _shifted(held_out.tokens[chosen])
            sizes = torch.from_numpy(held_out.sizes[chosen, 1:].astype(np.int64))
            documents = torch.from_numpy(held_out.documents[chosen].astype(np.int64))[:, None].expand_as(sizes)
            yield inputs.to(device), torch.stack((targets, sizes, documents), dim=-1).to(device)

    def remarks(self, part: Part, recipe: Recipe, progress: DataPosition) -> Mapping[str, float]:
        """How many documents could not be read, where there were any: of a part, and of the training so far."""
        skipped = self._held_out(part, recipe).skipped + Position(*progress).skipped
        return {"skipped_documents": skipped} if skipped else {}

    def _held_out(self, part: Part, recipe: Recipe) -> HeldOut:
        shards = self.corpus.validation if part == "validation" else self.corpus.test
        return _read_held_out(shards, self.tokenizer, self.layout, self.context, recipe.measured)


def _shifted(grid: Tokens) -> Batch:
    """A grid [B, N + 1] as what is read and what follows, each [B, N]."""
    tokens = torch.from_numpy(grid.astype(np.int64))
    return tokens[:, :-1].clamp(min=0), tokens[:, 1:]


@lru_cache(maxsize=4)
def _read_held_out(
    shards: tuple[TextShard, ...], tokenizer: Tokenizer, layout: Layout, context: int, limit: int
) -> HeldOut:
    """The first documents of these shards, as many as fill `limit` rows; 0 is no limit."""
    end = np.array([tokenizer.boundary], dtype=np.int32)
    tokens: list[Tokens] = []
    sizes: list[Tokens] = []
    documents: list[Tokens] = []
    total = skipped = 0
    for block in _blocks(shards):
        skipped += block.count(None)
        for ids, widths in tokenizer.encode_measured([text for text in block if text]):
            if len(ids) and not 0 < limit <= total:
                tokens.append(layout.grid([np.concatenate((ids, end))], context))
                sizes.append(layout.grid([np.concatenate((widths, np.zeros_like(end)))], context))
                documents.append(np.full(len(tokens[-1]), len(documents), dtype=np.int32))
                total += len(tokens[-1])
        if 0 < limit <= total:
            break
    if not tokens:
        raise UserError(f"there is no text to measure on in {', '.join(shard.name for shard in shards[:3])}.")
    return HeldOut(np.concatenate(tokens), np.concatenate(sizes), np.concatenate(documents), skipped)


def _blocks(shards: tuple[TextShard, ...]) -> Iterator[list[str | None]]:
    texts = (text for shard in shards for _, text in read(shard))
    while block := list(islice(texts, BLOCK)):
        yield block
