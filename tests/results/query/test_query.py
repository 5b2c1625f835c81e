"""Queries: rows, order and columns."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from expect import raises
from results.query.query import query
from results.records.row import Row
from results.records.table import from_rows

MakeRow = Callable[..., Row]


@pytest.fixture
def table(make_row: MakeRow) -> pa.Table:
    points = [(0.5, 30), (None, 20), (0.9, 25), (0.5, 10), (0.7, 40)]
    rows = [
        make_row(depth=i + 1, flops=flops, metrics={} if accuracy is None else {"accuracy": accuracy})
        for i, (accuracy, flops) in enumerate(points)
    ]
    return from_rows(rows)


def test_empty_query_returns_the_table(table: pa.Table) -> None:
    assert query(table).equals(table)


def test_rows_are_sorted_with_nulls_last(table: pa.Table) -> None:
    assert query(table, order_by=["accuracy desc"])["depth"].to_pylist() == [3, 5, 1, 4, 2]
    assert query(table, order_by=["-accuracy", " - flops"])["depth"].to_pylist() == [3, 5, 1, 4, 2]
    assert query(table, order_by=["accuracy", "flops ASC"])["depth"].to_pylist() == [4, 1, 5, 3, 2]


def test_equal_rows_keep_their_order(make_row: MakeRow) -> None:
    table = from_rows([make_row(depth=1 + i, seed=i % 2) for i in range(1000)])
    depths = query(table, order_by=["seed"])["depth"].to_pylist()
    assert depths == [*range(1, 1001, 2), *range(2, 1001, 2)]


def test_columns_are_unique_in_the_given_order(table: pa.Table) -> None:
    assert query(table, columns=["flops", "key", "flops"]).column_names == ["flops", "key"]


def test_conditions_may_use_columns_that_are_not_selected(table: pa.Table) -> None:
    rows = query(table, where="depth > 1", order_by=["flops"], columns=["accuracy"])
    assert rows.to_pydict() == {"accuracy": [0.5, None, 0.9, 0.7]}


def test_limit_keeps_the_first_rows(table: pa.Table) -> None:
    assert query(table, order_by=["flops"], limit=2)["flops"].to_pylist() == [10, 20]
    assert len(query(table, limit=0)) == 0
    assert len(query(table, limit=99)) == 5


def test_unknown_column_is_refused_wherever_it_stands(table: pa.Table) -> None:
    arguments: list[dict[str, Any]] = [
        {"columns": ["flop"]},
        {"order_by": ["flop desc"]},
        {"where": "flop < 1"},
    ]
    for keywords in arguments:
        with raises("unknown-name", option="column", value="flop"):
            query(table, **keywords)


def test_negative_limit_is_refused(table: pa.Table) -> None:
    with raises("out-of-range", option="limit", value=-1, least=0):
        query(table, limit=-1)
