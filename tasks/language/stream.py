"""Rows to train on, without end, and from any position on.

Shards are shuffled in each epoch; documents are read in blocks, and within a block documents are shuffled before
they are laid out and rows after. So an order over any amount of text follows from the seed and four numbers.

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
from tasks.language.encoded import blocks
from tasks.language.row_layouts import Layout
from tasks.language.shards import TextShard
from tasks.language.tokenizer import Tokenizer, Tokens

Item = TypeVar("Item")


class Position(NamedTuple):
    """Where a stream stands.

    Attributes:
        epoch: Passes over all shards.
        shard: Shards finished in this epoch, in its order.
        document: Number of the block's first document in its shard.
        row: Rows of the block that have been handed out.
        skip_count: Documents that could not be read so far, this block's included, each time they were met.
    """

    epoch: int = 0
    shard: int = 0
    document: int = 0
    row: int = 0
    skip_count: int = 0


@dataclass(frozen=True)
class TokenStream:
    """Rows of shuffled documents.

    Attributes:
        shards: What is read.
        tokenizer: Makes tokens of text.
        layout: Makes rows of documents.
        context: Tokens of a row, N.
        seed: Of the order.
        rank_info: Which documents are read: of several processes, each has rows of its own documents.
    """

    shards: tuple[TextShard, ...]
    tokenizer: Tokenizer
    layout: Layout
    context: int
    seed: int
    rank_info: RankInfo = ALONE

    def rows(self, start: Position) -> Iterator[tuple[Tokens, Position]]:
        """Rows [N + 1] from a position on, each with the position behind it.

        Raises:
            UserError: There is not one document in all shards (for this process).
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
        for place in range(start.shard, len(order)):
            if place > start.shard:
                position = Position(start.epoch, place, skip_count=position.skip_count)
            for block in blocks(self.shards[order[place]], position.document, self.rank_info, self.tokenizer):
                if not position.row:  # a block that is read again was counted before
                    position = position._replace(skip_count=position.skip_count + block.skip_count)
                grid = self._grid(position, block.documents)
                for number in range(position.row, len(grid)):
                    yield grid[number], position._replace(row=number + 1)
                position = Position(start.epoch, place, block.end, skip_count=position.skip_count)

    def _grid(self, block: Position, documents: list[Tokens]) -> Tokens:
        draw = np.random.default_rng((self.seed, *block[:3]))
        boundary = np.array([self.tokenizer.boundary], dtype=np.int32)
        token_lists = [np.concatenate((documents[i], boundary)) for i in draw.permutation(len(documents))]
        grid = self.layout.grid(token_lists, self.context)  # [R, N + 1]
        return grid[draw.permutation(len(grid))]


def prefetch(items: Iterable[Item], room: int) -> Iterator[Item]:
    """The same items, `room` of them made beforehand by a thread: tokenising does not hold Python's lock."""
    iterator, end = iter(items), object()
    thread = ThreadPoolExecutor(1)
    try:
        waiting = deque(thread.submit(next, iterator, end) for _ in range(room))
        while (item := waiting.popleft().result()) is not end:
            waiting.append(thread.submit(next, iterator, end))
            yield item  # type: ignore[misc]  # the end apart, all are items
    finally:
        thread.shutdown(cancel_futures=True)
