"""Means and best rows of groups, against loops over rows."""

import math
import statistics
from collections.abc import Callable

import pyarrow as pa
import pytest

from expect import raises
from results.query.grouping import best, means
from results.records.row import Row
from results.records.table import from_records, from_rows
from results.stats.architecture_summary import summarize

MakeRow = Callable[..., Row]

VALUES = {
    ("resnet", 1): [0.5, 0.52],
    ("resnet", 2): [0.6, 0.63, 0.62],
    ("rmt(keys=64)", 1): [0.7, 0.71],
    ("rmt(keys=64)", 2): [0.55],
    ("grn-v3", 1): [0.4],
}


def rows_of(make_row: MakeRow, **changes: object) -> list[Row]:
    return [
        make_row(
            topology=topology, depth=depth, seed=seed, flops=depth * 1000,
            metrics={"accuracy": value, "accuracy_se": 0.01}, test={"accuracy": value / 2}, **changes,
        )
        for (topology, depth), values in VALUES.items()
        for seed, value in enumerate(values)
    ]  # fmt: skip


@pytest.fixture
def table(make_row: MakeRow) -> pa.Table:
    failure = make_row(topology="resnet", status="failed", metrics={"accuracy": 99.0}, seed=7)
    return from_rows([*rows_of(make_row), failure])


def test_means_count_complete_rows_alone(table: pa.Table) -> None:
    rows = {line["topology"]: line for line in means(table, ["topology"], ["accuracy", "flops", "loss"]).to_pylist()}
    assert set(rows) == {"resnet", "rmt(keys=64)", "grn-v3"}
    for topology, line in rows.items():
        values = [value for (name, _), accuracies in VALUES.items() if name == topology for value in accuracies]
        assert line["n"] == len(values)
        assert line["accuracy"] == pytest.approx(statistics.fmean(values))
        if len(values) > 1:
            assert line["accuracy_se"] == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)))
        else:
            assert line["accuracy_se"] is None
        assert set(line) == {"topology", "n", "accuracy", "accuracy_se", "flops"}
        assert line["flops"] == round(
            statistics.fmean(1000 * d for (t, d), accuracies in VALUES.items() if t == topology for _ in accuracies)
        )


def test_rows_that_are_not_comparable_have_groups_of_their_own(make_row: MakeRow) -> None:
    other = rows_of(make_row, preset="paper")
    table = from_rows([*rows_of(make_row, preset="proxy"), *other])
    assert means(table, ["topology"], ["accuracy"]).column_names[:2] == ["preset", "topology"]
    assert len(means(table, ["topology"], ["accuracy"])) == 6
    assert len(best(table, "accuracy", "max", ["topology"])) == 6
    assert best(table, "accuracy", "max")["preset"].to_pylist() == ["paper"] * 5 + ["proxy"] * 5


def test_empty_table_has_no_means(table: pa.Table) -> None:
    assert len(means(table.slice(0, 0), ["topology"], ["accuracy"])) == 0


@pytest.mark.parametrize(("direction", "first"), [("max", "rmt(keys=64)"), ("min", "grn-v3")])
def test_best_architecture_is_first_with_mean_and_probability(table: pa.Table, direction: str, first: str) -> None:
    lines = best(table, "accuracy", direction).to_pylist()
    assert len(lines) == len(VALUES)
    assert lines[0]["topology"] == first
    summaries = {(s.record["topology"], s.record["depth"]): s for s in summarize(table, {"accuracy": direction})}
    for line in lines:
        summary = summaries[line["topology"], line["depth"]]
        values = VALUES[line["topology"], line["depth"]]
        assert (line["accuracy"], line["seeds"]) == (pytest.approx(statistics.fmean(values)), len(values))
        assert (line["expected"], line["p_best"]) == (summary.expected["accuracy"], summary.p_front)
    expected = [line["expected"] for line in lines]
    assert expected == sorted(expected, reverse=direction == "max")


def test_each_group_has_its_best_and_the_probability_of_the_overall_best(table: pa.Table) -> None:
    lines = best(table, "accuracy", "max", ["topology"]).to_pylist()
    assert [(line["topology"], line["depth"]) for line in lines] == [("rmt(keys=64)", 1), ("resnet", 2), ("grn-v3", 1)]
    every = summarize(table, {"accuracy": "max"})
    for line in lines:
        chances = [summary.p_front for summary in every if summary.record["topology"] == line["topology"]]
        assert line["p_best"] == pytest.approx(min(sum(chances), 1.0))
    assert sum(line["p_best"] for line in lines) == pytest.approx(1)


def test_invalid_columns_are_refused(table: pa.Table) -> None:
    with raises("unknown-name", option="column", value="toplogy", nearest="topology"):
        means(table, ["toplogy"], ["accuracy"])
    with raises("wrong-type", option="topology", type="string"):
        means(table, ["depth"], ["topology"])
    with raises("wrong-type", option="topology", type="string"):
        best(table, "topology", "max")
    with raises("unknown-name", option="column", value="seeds"):
        best(table, "accuracy", "max", ["seeds"])
    for name, some in (("started", table), ("seed", table), ("seed", table.slice(0, 1))):
        with raises("conflict", option="--by", value=name):
            best(some, "accuracy", "max", [name])


def test_column_named_n_is_kept_beside_the_number_of_rows() -> None:
    table = from_records([{"n": 7, "x": 1.0}, {"n": 7, "x": 3.0}, {"n": 8, "x": 5.0}])
    assert means(table, ["n"], ["x"]).select(["n", "group_n", "x"]).to_pylist() == [
        {"n": 7, "group_n": 2, "x": 2.0},
        {"n": 8, "group_n": 1, "x": 5.0},
    ]
    assert means(table, ["x"], ["n"]).select(["n", "group_n"]).to_pydict() == {"n": [7, 7, 8], "group_n": [1, 1, 1]}
