"""Fronts and knees, against their definitions."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from expect import raises
from results.records.row import Row
from results.records.table import from_records, from_rows
from results.stats.pareto import front, knee, non_dominated
from search_spaces.support.errors import Kind

MakeRow = Callable[..., Row]


def naive(values: NDArray[np.float64]) -> list[bool]:
    """The definition of a front, pair by pair."""

    def beats(p: NDArray[np.float64], q: NDArray[np.float64]) -> bool:
        return all(a <= b for a, b in zip(p, q, strict=True)) and any(a < b for a, b in zip(p, q, strict=True))

    numbers = [not any(np.isnan(point)) for point in values]
    return [numbers[i] and not any(numbers[j] and beats(values[j], values[i]) for j in range(len(values))) for i in
            range(len(values))]  # fmt: skip


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_front_agrees_with_the_definition(m: int) -> None:
    for levels in (2, 4, 1000):
        generator = np.random.default_rng(m * levels)
        for n in (0, 1, 2, 3, 17, 60):
            values = generator.integers(0, levels, (n, m)).astype(float)  # few values: many ties
            assert non_dominated(values).tolist() == naive(values)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_values_that_are_not_finite_follow_the_definition(m: int) -> None:
    generator = np.random.default_rng(m)
    for _ in range(20):
        values = generator.choice([-np.inf, -1.0, 0.0, -0.0, 1.0, np.inf, np.nan], (20, m))
        assert non_dominated(values).tolist() == naive(values)


def test_all_nondominated_points_are_on_the_front() -> None:
    first = np.random.default_rng(0).permutation(500).astype(float)
    for m in (2, 3):
        assert non_dominated(np.stack([first, -first, np.zeros(500)][:m], axis=1)).all()


def test_equal_points_are_all_on_the_front_or_none() -> None:
    for m in (1, 2, 4):
        values = np.zeros((6, m))
        assert non_dominated(values).all()
        values[0] = -1
        assert non_dominated(values).tolist() == [True] + [False] * 5


def test_values_without_objectives_are_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("(3, 0)")):
        non_dominated(np.zeros((3, 0)))


def keys(make_row: MakeRow, points: list[tuple[float, int]], **changes: object) -> list[Row]:
    return [make_row(depth=i + 1, metrics={"accuracy": a}, flops=f, **changes) for i, (a, f) in enumerate(points)]


def test_directions_decide_which_values_are_better(make_row: MakeRow) -> None:
    table = from_rows(keys(make_row, [(0.9, 30), (0.8, 20), (0.7, 25), (0.9, 40)]))
    assert front(table, {"accuracy": "max", "flops": "min"})["depth"].to_pylist() == [1, 2]
    assert front(table, {"accuracy": "max", "flops": "max"})["depth"].to_pylist() == [4]
    assert front(table, {"accuracy": "min", "flops": "min"})["depth"].to_pylist() == [2, 3]
    assert front(table, {"accuracy": "max"})["depth"].to_pylist() == [1, 4]


def test_front_keeps_every_column_and_the_order_of_rows(make_row: MakeRow) -> None:
    table = from_rows(keys(make_row, [(0.1, 1), (0.9, 9), (0.5, 5), (0.4, 6)]))
    assert front(table, {"accuracy": "max", "flops": "min"}).equals(table.slice(0, 3))


def test_rows_without_a_number_are_left_out_of_the_front(make_row: MakeRow) -> None:
    rows = [*keys(make_row, [(0.5, 5), (float("nan"), 1)]), make_row(flops=1), make_row(metrics={"accuracy": 1.0})]
    assert front(from_rows(rows), {"accuracy": "max", "flops": "min"})["depth"].to_pylist() == [1]


def test_only_complete_rows_are_on_a_front(make_row: MakeRow) -> None:
    for status in ("pruned", "over-budget", "failed"):
        rows = [*keys(make_row, [(0.5, 5)]), *keys(make_row, [(0.9, 1)], status=status)]
        assert front(from_rows(rows), {"accuracy": "max", "flops": "min"})["status"].to_pylist() == ["complete"]
        assert len(front(from_rows(rows[1:]), {"accuracy": "max"})) == 0


def test_rows_that_are_not_comparable_have_fronts_of_their_own(make_row: MakeRow) -> None:
    changes: tuple[dict[str, object], ...] = ({"task": "other"}, {"task_version": 2}, {"data": "d2"})
    for change in changes:
        rows = [*keys(make_row, [(0.5, 5), (0.4, 6)]), *keys(make_row, [(0.9, 1), (0.8, 2)], **change)]
        lines = front(from_rows(rows), {"accuracy": "max", "flops": "min"})
        assert lines["accuracy"].to_pylist() == [0.5, 0.9], change


def test_table_without_status_has_a_front() -> None:
    table = from_records([{"x": 1.0, "y": 2.0}, {"x": 2.0, "y": 3.0}])
    assert front(table, {"x": "min", "y": "min"})["x"].to_pylist() == [1.0]


def test_empty_table_has_an_empty_front() -> None:
    assert len(front(from_rows([]), {"flops": "min"})) == 0


def test_impossible_objectives_are_refused() -> None:
    mistakes: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
        ({}, "missing-value", {"option": "objectives"}),
        ({"flop": "min"}, "unknown-name", {"option": "column", "value": "flop", "nearest": "flops"}),
        ({"topology": "min"}, "wrong-type", {"option": "topology", "type": "string"}),
        ({"flops": "less"}, "unknown-name", {"option": "flops", "value": "less", "choices": ("max", "min")}),
    ]
    for objectives, kind, fields in mistakes:
        with raises(kind, **fields):
            front(from_rows([]), objectives)


def test_integers_beyond_53_bits_may_be_objectives(make_row: MakeRow) -> None:
    table = from_rows([make_row(depth=1, flops=2**62), make_row(depth=2, flops=2**53 + 1)])
    assert front(table, {"flops": "min"})["depth"].to_pylist() == [2]


def test_knee_lies_farthest_beyond_the_line_through_the_ends(make_row: MakeRow) -> None:
    points = [(0.1, 10), (0.5, 20), (0.8, 30), (0.85, 60), (0.9, 110)]
    rows = [make_row(depth=i + 1, flops=f, metrics={"accuracy": a}) for i, (a, f) in enumerate(points)]
    table, objectives = from_rows(rows), {"accuracy": "max", "flops": "min"}

    def beyond(accuracy: float, flops: float) -> float:  # the distance from the line through the ends
        across, up = (flops - 10) / 100, (accuracy - 0.1) / 0.8
        return (up - across) / math.sqrt(2)

    farthest = max(range(5), key=lambda i: beyond(*points[i]))
    assert knee(front(table, objectives), objectives)["depth"].to_pylist() == [farthest + 1] == [3]
    other = from_rows([replace(row, task="other") for row in rows])
    assert len(knee(pa.concat_tables([table, other]), objectives)) == 2
    assert len(knee(table.slice(0, 1), objectives)) == 1
    assert len(knee(table.slice(0, 0), objectives)) == 0


def test_knee_of_a_hollow_front_is_an_end(make_row: MakeRow) -> None:
    points = [(0.1, 10), (0.2, 60), (0.3, 90), (0.9, 100)]
    table = from_rows([make_row(depth=i + 1, flops=f, metrics={"accuracy": a}) for i, (a, f) in enumerate(points)])
    assert knee(table, {"accuracy": "max", "flops": "min"})["depth"].to_pylist() == [1]
