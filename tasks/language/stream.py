"""An endless stream of training rows that can start at any position.

Shards are shuffled in each epoch. Documents are read in blocks; within a block, documents are shuffled before layout
and rows after it. So the seed and four numbers determine the order of any amount of text.

Shapes: R = rows of a block, N = context.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from search_spaces.support.errors import UserError
from search_spaces.support.rank import ALONE, RankInfo
from tasks.language.document_blocks import blocks
from tasks.language.row_layouts import Layout
from tasks.language.shards import TextShard
from tasks.language.tokenizer import Tokenizer, Tokens

Item = TypeVar("Item")


class Position(NamedTuple):
    """A position in a stream.

    Attributes:
        epoch: Completed passes over all shards.
        shard: Shards completed in this epoch, in its order.
        document: Number of the block's first document in its shard.
        row: Rows of the block that were already yielded.
        skip_count: Unreadable documents so far, including this block's; repeated ones count each time.
    """

    epoch: int = 0
    shard: int = 0
    document: int = 0
    row: int = 0
    skip_count: int = 0


@dataclass(frozen=True)
class TokenStream:
    """A stream of rows of shuffled documents.

    Attributes:
        shards: The text.
        tokenizer: Its tokenizer.
        layout: How documents fill rows.
        context: Tokens of a row, N.
        seed: Seed of the order.
        rank_info: This process's rank; each rank has rows of its own documents.
    """

    shards: tuple[TextShard, ...]
    tokenizer: Tokenizer
    layout: Layout
    context: int
    seed: int
    rank_info: RankInfo = ALONE

    def rows(self, start: Position) -> Iterator[tuple[Tokens, Position]]:
        """Yield rows [N + 1] from a position on, each with the position after it.

        Raises:
            UserError: The shards hold no document (for this rank).
        """
        position = start
        while True:
            any_row = any(start[1:4])
            for row, position in self._epoch(start):
                any_row = True
                yield row, position
            if not any_row:
                names = tuple(shard.name for shard in self.shards[:3])
                message = f"there is no text in {', '.join(names)}. Give other --data."
                raise UserError("missing-data", message, option="--data", shards=names)
            start = Position(position.epoch + 1, skip_count=position.skip_count)

    def _epoch(self, start: Position) -> Iterator[tuple[Tokens, Position]]:
        order = np.random.default_rng((self.seed, start.epoch)).permutation(len(self.shards))
        position = start
        for shard_index in range(start.shard, len(order)):
            if shard_index > start.shard:
                position = Position(start.epoch, shard_index, skip_count=position.skip_count)
            for block in blocks(self.shards[order[shard_index]], position.document, self.rank_info, self.tokenizer):
                if not position.row:  # a block that is read again was already counted
                    position = position._replace(skip_count=position.skip_count + block.skip_count)
                grid = self._grid(position, block.documents)
                for number in range(position.row, len(grid)):
                    yield grid[number], position._replace(row=number + 1)
                position = Position(start.epoch, shard_index, block.end, skip_count=position.skip_count)

    def _grid(self, block: Position, documents: list[Tokens]) -> Tokens:
        draw = np.random.default_rng((self.seed, *block[:3]))
        boundary = np.array([self.tokenizer.boundary], dtype=np.int32)
        token_lists = [np.concatenate((documents[i], boundary)) for i in draw.permutation(len(documents))]
        grid = self.layout.grid(token_lists, self.context)  # [R, N + 1]
        return grid[draw.permutation(len(grid))]


def prefetch(items: Iterable[Item], buffer_size: int) -> Iterator[Item]:
    """Yield the items; a thread computes `buffer_size` of them in advance, since tokenization releases the GIL."""
    iterator, end = iter(items), object()
    thread = ThreadPoolExecutor(1)
    try:
        waiting = deque(thread.submit(next, iterator, end) for _ in range(buffer_size))
        while (item := waiting.popleft().result()) is not end:
            waiting.append(thread.submit(next, iterator, end))
            yield item  # type: ignore[misc]  # all but the end are items
    finally:
        thread.shutdown(cancel_futures=True)
