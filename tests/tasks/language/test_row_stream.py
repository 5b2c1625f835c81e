import itertools
import threading

import numpy as np
import pytest

from expect import raises, warns
from search_spaces.support.errors import UserError
from tasks.language import document_blocks
from tasks.language.row_layouts import IGNORE_INDEX, Layout, PackedLayout, PaddedLayout
from tasks.language.shards import MemoryShard
from tasks.language.stream import Position, TokenStream, prefetch
from tasks.language.tokenizer import Tokenizer

TEXTS = [f"text {number} " + "word " * (number % 5) for number in range(37)]
SHARDS = tuple(MemoryShard(tuple(TEXTS[i::3]), f"shard {i}") for i in range(3))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_blocks, "BLOCK", 4)


def make(tokenizer: Tokenizer, layout: Layout, seed: int = 0) -> TokenStream:
    return TokenStream(SHARDS, tokenizer, layout, 8, seed)


@pytest.mark.parametrize("layout", [PackedLayout(), PaddedLayout()], ids=str)
def test_a_stream_resumes_at_any_position(tokenizer: Tokenizer, layout: Layout) -> None:
    whole = list(itertools.islice(make(tokenizer, layout).rows(Position()), 200))
    assert whole[-1][1].epoch > 0
    for at in range(0, 150, 7):
        rows = itertools.islice(make(tokenizer, layout).rows(whole[at][1]), 40)
        for (row, position), (expected, there) in zip(rows, whole[at + 1 :], strict=False):
            assert position == there
            assert row.tolist() == expected.tolist()


def test_every_epoch_predicts_every_token_once_in_another_order(tokenizer: Tokenizer) -> None:
    rows = itertools.takewhile(lambda item: item[1].epoch < 2, make(tokenizer, PackedLayout()).rows(Position()))
    epochs = [[row[1:] for row, _ in group] for _, group in itertools.groupby(rows, lambda item: item[1].epoch)]
    items = [sorted(token for row in rows for token in row if token != IGNORE_INDEX) for rows in epochs]
    everything = [*itertools.chain(*(ids.tolist() for ids in tokenizer.encode(TEXTS))), *[tokenizer.boundary] * 37]
    assert items == [sorted(everything)] * 2
    assert [row.tolist() for row in epochs[0]] != [row.tolist() for row in epochs[1]]


def test_another_seed_is_another_order(tokenizer: Tokenizer) -> None:
    rows = [
        [row for row, _ in itertools.islice(make(tokenizer, PaddedLayout(), seed).rows(Position()), 37)]
        for seed in (0, 1)
    ]
    assert not np.array_equal(rows[0], rows[1])


def test_refuses_shards_without_text(tokenizer: Tokenizer) -> None:
    empty = TokenStream((MemoryShard(("", "")),), tokenizer, PackedLayout(), 8, 0)
    with raises("missing-data", option="--data", shards=("memory",)):
        next(empty.rows(Position()))


@pytest.mark.filterwarnings("ignore:memory:UserWarning")
def test_unreadable_documents_are_counted_once_an_epoch(tokenizer: Tokenizer) -> None:
    texts: tuple[object, ...] = (*TEXTS[:3], None, *TEXTS[3:9], None, *TEXTS[9:])
    stream = TokenStream((MemoryShard(texts),), tokenizer, PaddedLayout(), 8, 0)  # type: ignore[arg-type]
    with warns("skipped", shard="memory", line=4):
        whole = list(itertools.islice(stream.rows(Position()), 3 * 37))
    assert [position.skip_count for _, position in whole[36::37]] == [2, 4, 6]
    for _, stop in whole[:70]:
        (_, end) = next(itertools.islice(stream.rows(stop), 30, None))
        assert end in [position for _, position in whole]


def test_prefetch_keeps_the_order_and_its_limit() -> None:
    rows: list[int] = []

    def items() -> itertools.chain[int]:
        return (rows.append(i) or i for i in range(100))  # type: ignore[func-returns-value, return-value]

    waiting = prefetch(items(), 3)
    assert [next(waiting) for _ in range(5)] == [0, 1, 2, 3, 4]
    waiting.close()  # type: ignore[attr-defined]
    assert len(rows) <= 5 + 3
    assert list(prefetch(range(7), 3)) == list(range(7))


def test_prefetch_raises_in_the_consumer_and_leaves_no_thread() -> None:
    def failing() -> itertools.chain[int]:
        yield 1  # type: ignore[misc]
        raise UserError("missing-data", "no more", shards=("last",))

    before = threading.active_count()
    waiting = prefetch(failing(), 4)
    assert next(waiting) == 1
    with raises("missing-data", shards=("last",)):
        next(waiting)
    assert threading.active_count() == before
