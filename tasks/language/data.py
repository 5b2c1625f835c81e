"""The data of language tasks: rows to train on and documents to evaluate.

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

from search_spaces.support.errors import UserError
from search_spaces.support.progress import Progress
from search_spaces.support.rank import ALONE, RankInfo
from tasks.data.batches import Batch
from tasks.data.splits import DataPosition, Part, Splits
from tasks.language.corpus import Corpus
from tasks.language.document_blocks import BLOCK
from tasks.language.row_layouts import Layout
from tasks.language.shards import TextShard, read
from tasks.language.stream import Position, TokenStream, prefetch
from tasks.language.tokenizer import Tokenizer, Tokens
from tasks.recipes.recipe import Recipe

DocumentNumber = tuple[int, int]
"""Index of a document's shard, and its number there."""

_PREFETCH = 8
"""Batches prepared in advance."""


class HeldOut(NamedTuple):
    """Documents to evaluate, each laid out separately.

    Attributes:
        tokens: Grid [R, N + 1].
        sizes: UTF-8 bytes that each token covers; grid [R, N + 1].
        documents: Number of each row's document, [R].
        skip_count: Documents that could not be read.
    """

    tokens: Tokens
    sizes: Tokens
    documents: Tokens
    skip_count: int


@dataclass(frozen=True, eq=False)
class LanguageSplits(Splits):
    """Splits of a tokenized corpus.

    Attributes:
        corpus: The text.
        tokenizer: Its tokenizer.
        layout: How documents fill rows.
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

    @cached_property
    def num_examples(self) -> int:
        """Number of training rows; computed by reading all text, only if it is in memory.

        Raises:
            UserError: The text is not in memory.
        """
        if not all(shard.in_memory for shard in self.corpus.train):
            raise UserError(
                "unsupported",
                "epochs need a text of known length, and text in files or on the hub is streamed. "
                "Set steps instead, and epochs to 0.",
                option="epochs",
                needs="steps",
            )
        return sum(len(inputs) for inputs, _ in self.training_pass(BLOCK))

    def training_batches(
        self, recipe: Recipe, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Yield rows: inputs [B, N] and targets [B, N], with the stream's position after them.

        Each rank has a stream of its own documents.
        """
        stream = TokenStream(self.corpus.train, self.tokenizer, self.layout, self.context, seed, rank_info)
        batches = self._batches(stream, Position(*start), recipe.micro_batch // rank_info.world_size)
        for (inputs, targets), position in prefetch(batches, _PREFETCH):
            yield (inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)), tuple(position)

    def training_pass(self, size: int) -> Iterator[Batch]:
        """Yield every training row once, in batches of at most `size` rows."""
        stream = TokenStream(self.corpus.train, self.tokenizer, self.layout, self.context, seed=0)
        rows = (row for row, position in takewhile(lambda item: item[1].epoch == 0, stream.rows(Position())))
        while batch := list(islice(rows, size)):
            yield _inputs_and_targets(np.stack(batch))

    def _batches(self, stream: TokenStream, start: Position, size: int) -> Iterator[tuple[Batch, Position]]:
        rows = stream.rows(start)
        while True:
            batch = list(islice(rows, size))
            yield _inputs_and_targets(np.stack([row for row, _ in batch])), batch[-1][1]

    def evaluation_batches(
        self, part: Part, recipe: Recipe, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """Yield rows [B, N] of documents, and for each next token its id, bytes and document [B, N, 3]."""
        held_out, size = self._held_out(part, recipe, rank_info), max(1, recipe.micro_batch // rank_info.world_size)
        for first in range(0, len(held_out.tokens), size):
            batch = slice(first, first + size)
            inputs, targets = _inputs_and_targets(held_out.tokens[batch])
            sizes = torch.from_numpy(held_out.sizes[batch, 1:].astype(np.int64))
            documents = torch.from_numpy(held_out.documents[batch].astype(np.int64))[:, None].expand_as(sizes)
            yield inputs.to(device), torch.stack((targets, sizes, documents), dim=-1).to(device)

    def counters(
        self, part: Part, recipe: Recipe, position: DataPosition, rank_info: RankInfo = ALONE
    ) -> Mapping[str, float]:
        """Return the number of unreadable documents, if any, of a part and of the training so far."""
        count = self._held_out(part, recipe, rank_info).skip_count + Position(*position).skip_count
        return {"skipped_documents": count} if count else {}

    def _held_out(self, part: Part, recipe: Recipe, rank_info: RankInfo) -> HeldOut:
        shards = self.corpus.validation if part == "validation" else self.corpus.test
        return read_held_out(shards, self.tokenizer, self.layout, self.context, recipe.measured, rank_info)


def _inputs_and_targets(grid: Tokens) -> Batch:
    """Split a grid [B, N + 1] into inputs and targets, each [B, N]."""
    tokens = torch.from_numpy(grid.astype(np.int64))
    return tokens[:, :-1].clamp(min=0), tokens[:, 1:]


@lru_cache(maxsize=4)
def read_held_out(
    shards: tuple[TextShard, ...], tokenizer: Tokenizer, layout: Layout, context: int, limit: int, rank_info: RankInfo
) -> HeldOut:
    """Return this rank's share of the first documents that fill `limit` rows over all ranks; 0 is no limit.

    Ranks exchange the number of rows of each document, and so stop at the same document.
    """
    end = np.array([tokenizer.boundary], dtype=np.int32)
    tokens: list[Tokens] = [np.empty((0, context + 1), dtype=np.int32)]
    sizes, documents = list(tokens), [np.empty(0, dtype=np.int32)]
    total = skip_count = number_of_documents = 0
    with Progress("rows of held-out text", limit or None) as progress:
        for block in _blocks(shards, rank_info):
            skip_count += sum(text is None for _, text in block)
            texts = [(number, text) for number, text in block if text]
            token_lists = zip(texts, tokenizer.encode_with_sizes([text for _, text in texts]), strict=True)
            grids: dict[DocumentNumber, tuple[Tokens, Tokens]] = {}
            for (number, _), (ids, widths) in token_lists:
                if len(ids):
                    ids, widths = np.concatenate((ids, end)), np.concatenate((widths, np.zeros_like(end)))
                    grids[number] = layout.grid([ids], context), layout.grid([widths], context)
            lengths = rank_info.gather({number: len(grid) for number, (grid, _) in grids.items()})
            for number, rows in sorted(item for lengths_of_rank in lengths for item in lengths_of_rank.items()):
                if 0 < limit <= total:
                    break
                if number in grids:
                    tokens.append(grids[number][0])
                    sizes.append(grids[number][1])
                    documents.append(np.full(rows, number_of_documents, dtype=np.int32))
                number_of_documents, total = number_of_documents + 1, total + rows
            progress.set_done(min(total, limit or total))
            if 0 < limit <= total:
                break
    if not number_of_documents:
        names = tuple(shard.name for shard in shards[:3])
        message = f"there is no text for evaluation in {', '.join(names)}."
        raise UserError("missing-data", message, shards=names, needs="measurement")
    return HeldOut(np.concatenate(tokens), np.concatenate(sizes), np.concatenate(documents), skip_count)


def _blocks(shards: tuple[TextShard, ...], rank_info: RankInfo) -> Iterator[list[tuple[DocumentNumber, str | None]]]:
    """Yield this rank's documents in blocks; the blocks of all ranks cover the same range of documents."""
    for place, shard in enumerate(shards):
        texts = (((place, number), text) for number, text in read(shard, 0, rank_info))
        while True:
            block = list(islice(texts, max(1, BLOCK // rank_info.world_size)))
            if not any(rank_info.gather(bool(block))):
                break
            yield block
