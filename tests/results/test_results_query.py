from collections.abc import Callable

import pyarrow as pa
import pytest

from results.query import query
from results.row import Row
from results.table import from_rows
from search_spaces.errors import UserError

MakeRow = Callable[..., Row]


@pytest.fixture
def table(make_row: MakeRow) -> pa.Table:
    points = [(0.5, 30), (None, 20), (0.9, 25), (0.5, 10), (0.7, 40)]
    rows = [
        make_row(depth=i + 1, flops=flops, metrics={} if accuracy is None else {"accuracy": accuracy})
        for i, (accuracy, flops) in enumerate(points)
    ]
    return from_rows(rows)


def test_what_is_not_said_leaves_the_table_as_it_is(table: pa.Table) -> None:
    assert query(table).equals(table)


def test_the_front_is_that_of_the_rows_that_meet_the_condition(table: pa.Table) -> None:
    found = query(table, where="flops > 10 and flops < 35", objectives={"accuracy": "max", "flops": "min"})
    assert found["depth"].to_pylist() == [3]
    found = query(table, where="depth <> 3", objectives={"accuracy": "max", "flops": "min"})
    assert found["depth"].to_pylist() == [4, 5]


def test_rows_come_in_the_order_asked_for_with_nulls_last(table: pa.Table) -> None:
    assert query(table, order_by=["accuracy desc"])["depth"].to_pylist() == [3, 5, 1, 4, 2]
    assert query(table, order_by=["-accuracy", " - flops"])["depth"].to_pylist() == [3, 5, 1, 4, 2]
    assert query(table, order_by=["accuracy", "flops ASC"])["depth"].to_pylist() == [4, 1, 5, 3, 2]


def test_equal_rows_keep_their_order(make_row: MakeRow) -> None:
    table = from_rows([make_row(depth=1 + i, seed=i % 2) for i in range(1000)])
    depths = query(table, order_by=["seed"])["depth"].to_pylist()
    assert depths == [*range(1, 1001, 2), *range(2, 1001, 2)]


def test_columns_are_kept_as_named_once_each(table: pa.Table) -> None:
    assert query(table, columns=["flops", "key", "flops"]).column_names == ["flops", "key"]


def test_what_is_asked_need_not_be_among_the_columns_kept(table: pa.Table) -> None:
    found = query(table, where="depth > 1", objectives={"flops": "min"}, order_by=["seed"], columns=["accuracy"])
    assert found.to_pydict() == {"accuracy": [0.5]}


def test_a_limit_keeps_the_first_rows(table: pa.Table) -> None:
    assert query(table, order_by=["flops"], limit=2)["flops"].to_pylist() == [10, 20]
    assert len(query(table, limit=0)) == 0
    assert len(query(table, limit=99)) == 5


@pytest.mark.parametrize(
    "asked",
    [
        {"columns": ["flop"]},
        {"order_by": ["flop desc"]},
        {"where": "flop < 1"},
        {"objectives": {"flop": "min"}},
    ],
)
def test_an_unknown_column_is_a_mistake_wherever_it_stands(table: pa.Table, asked: dict[str, object]) -> None:
    with pytest.raises(UserError, match="unknown column 'flop'"):
        query(table, **asked)  # type: ignore[arg-type]  # one argument of several types


def test_a_negative_limit_is_a_mistake(table: pa.Table) -> None:
    with pytest.raises(UserError, match="limit"):
        query(table, limit=-1)
