"""Means and best architectures of groups, and fronts of architectures, against loops over rows."""

import math
import statistics
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from expect import raises
from results.query.grouping import best, front, group_columns, knee, means, trainings
from results.records.row import Row
from results.records.table import from_records, from_rows
from results.stats.architecture_summary import knees, summarize

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
    for name, some in (("started", table), ("threads", table), ("seed", table), ("seed", table.slice(0, 1))):
        with raises("conflict", option="--by", value=name):
            best(some, "accuracy", "max", [name])


def test_column_named_n_is_kept_beside_the_number_of_rows() -> None:
    table = from_records([{"n": 7, "x": 1.0}, {"n": 7, "x": 3.0}, {"n": 8, "x": 5.0}])
    assert means(table, ["n"], ["x"]).select(["n", "group_n", "x"]).to_pylist() == [
        {"n": 7, "group_n": 2, "x": 2.0},
        {"n": 8, "group_n": 1, "x": 5.0},
    ]
    assert means(table, ["x"], ["n"]).select(["n", "group_n"]).to_pydict() == {"n": [7, 7, 8], "group_n": [1, 1, 1]}


WAYS = {"accuracy": "max", "flops": "min"}


def test_front_is_of_means_over_seeds(make_row: MakeRow) -> None:
    lucky = make_row(topology="grn-v3", depth=2, seed=9, flops=2000, metrics={"accuracy": 0.66, "accuracy_se": 0.01})
    unlucky = [
        make_row(topology="grn-v3", depth=2, seed=seed, flops=2000, metrics={"accuracy": 0.3, "accuracy_se": 0.01})
        for seed in range(3)
    ]
    table = from_rows([*(row for row in rows_of(make_row) if row.architecture.topology == "resnet"), lucky, *unlucky])
    summaries = {s.record["key"]: s for s in summarize(table, WAYS) if s.on_front}
    lines = front(table, WAYS).to_pylist()
    assert [(line["topology"], line["depth"]) for line in lines] == [("resnet", 1), ("resnet", 2)]
    for line in lines:
        summary, values = summaries[line["key"]], VALUES[line["topology"], line["depth"]]
        assert (line["accuracy"], line["seeds"]) == (pytest.approx(statistics.fmean(values)), len(values))
        assert line["accuracy_se"] == summary.record["accuracy_se"]
        assert line["expected"] == summary.expected["accuracy"]
        assert (line["p_front"], line["tier"], line["on_front"]) == (summary.p_front, summary.tier, "true")


def test_front_has_the_means_of_held_out_seeds(table: pa.Table) -> None:
    held_out = table.filter(pc.equal(table["seed"], 1))["identity"].to_pylist()
    accuracies = {(line["topology"], line["depth"]): line for line in front(table, WAYS, held_out).to_pylist()}
    assert accuracies["rmt(keys=64)", 1]["accuracy"] == 0.71
    assert accuracies["rmt(keys=64)", 1]["seeds"] == 1


def test_knee_is_of_the_front_of_posterior_means(table: pa.Table) -> None:
    ways = {"accuracy": "max", "params": "min"}
    points = [(0.3, 10), (0.6, 20), (0.8, 90)]
    rows = [
        {"task": task, "key": str(i), "identity": f"{task}{i}{seed}", "accuracy": accuracy, "params": params}
        for task in ("one", "other")
        for i, (accuracy, params) in enumerate(points)
        for seed in range(2)
    ]
    on_front = [s for s in summarize(from_records(rows), ways) if s.on_front]
    assert [(one.record["task"], one.record["key"]) for one in knees(on_front, ways)] == [("one", "1"), ("other", "1")]
    assert knee(from_records(rows), ways)["key"].to_pylist() == ["1", "1"]
    assert knees([], ways) == []
    assert len(knee(table.slice(0, 0), WAYS)) == 0


def test_architectures_have_trainings(table: pa.Table) -> None:
    lines = best(table, "accuracy", "max", ["topology"])
    rows = trainings(table, lines)
    assert set(rows.column_names) == set(table.column_names)
    shapes = [("rmt(keys=64)", 1), ("rmt(keys=64)", 1), *[("resnet", 2)] * 3, ("grn-v3", 1)]
    assert [*zip(rows["topology"].to_pylist(), rows["depth"].to_pylist(), strict=True)] == shapes
    assert set(rows["status"].to_pylist()) == {"complete"}
    assert len(trainings(table, lines.slice(0, 0))) == 0


def test_measured_columns_have_groups_between_powers_of_two() -> None:
    values = [3.0, 2.0, 0.3, -3.0, 0.0, None, 20.0, 3.9]
    table = from_records([{"wall_s": value, "score": index} for index, value in enumerate(values)])
    lines = means(table, ["wall_s"], ["score"]).to_pylist()
    assert [(line["range_wall_s"], line["n"]) for line in lines] == [
        ("-4 to -2", 1), ("0", 1), ("0.25 to 0.5", 1), ("2 to 4", 3), ("16 to 32", 1), (None, 1),
    ]  # fmt: skip
    assert lines[3]["score"] == pytest.approx((0 + 1 + 7) / 3)
    again = means(means(table, ["wall_s"], ["wall_s"]), ["wall_s"], ["wall_s"])  # an answer is a table too
    assert again["range_wall_s"].to_pylist() == [line["range_wall_s"] for line in lines]
    for value in values[:3]:
        assert value is not None
        low, high = map(float, next(t for t in again["range_wall_s"].to_pylist() if inside(t, value)).split(" to "))
        assert (high / low, math.log2(low) % 1) == (2, 0)


def test_ranges_of_negative_numbers_hold_their_lower_edge_as_others_do() -> None:
    for value, text in ((4.0, "4 to 8"), (-4.0, "-4 to -2"), (-5.0, "-8 to -4"), (-0.5, "-0.5 to -0.25")):
        lines = means(from_records([{"wall_s": value}]), ["wall_s"], []).to_pylist()
        assert [line["range_wall_s"] for line in lines] == [text]
        assert inside(text, value)


def inside(text: str | None, value: float) -> bool:
    ends = [float(end) for end in (text or "").split(" to ") if end]
    return len(ends) == 2 and ends[0] <= value < ends[1]


def test_only_measured_columns_have_ranges(table: pa.Table) -> None:
    columns = {"recipe_lr": 0.1, "wall_s": 1.0, "speed_steps": 1.0, "latency_ms": 2.0, "depth": 1, "loss": 0.1}
    schema = from_records([{**columns, "loss_se": 0.1, "test_loss": 0.2, "trace": "file"}]).schema
    assert group_columns(schema, schema.names) == [
        "recipe_lr", "range_wall_s", "range_speed_steps", "range_latency_ms", "depth", "range_loss", "loss_se",
        "range_test_loss", "trace",
    ]  # fmt: skip
    with raises("unknown-name", option="column", value="train_seconds"):
        group_columns(table.schema, ["train_seconds"])


def test_best_of_each_range_of_time_has_mean_times(make_row: MakeRow) -> None:
    times = {"resnet": (3.0, 6.0), "dca(k=2)": (3.0, 3.5), "grn-v3": (9.0, 10.0)}
    rows = [
        make_row(
            topology=topology, seed=seed, provenance={"wall_s": seconds}, extra_metrics={"env_steps": 10 + seed},
            metrics={"accuracy": 0.5 + len(topology) / 100 + seed / 1000, "accuracy_se": 0.001},
        )
        for topology, both in times.items()
        for seed, seconds in enumerate(both)
    ]  # fmt: skip
    lines = best(from_rows(rows), "accuracy", "max", ["wall_s"]).to_pylist()
    assert [(line["range_wall_s"], line["topology"], line["wall_s"]) for line in lines] == [
        ("2 to 4", "dca(k=2)", 3.25), ("4 to 8", "resnet", 4.5), ("8 to 16", "grn-v3", 9.5),
    ]  # fmt: skip
    assert best(from_rows(rows), "accuracy", "max", ["env_steps"])["env_steps"].to_pylist() == [10.5]


def test_front_of_no_rows_has_all_columns(table: pa.Table) -> None:
    lines = front(table.slice(0, 0), {"accuracy": "max", "flops": "min"})
    assert len(lines) == 0
    assert {*table.column_names, "expected", "p_front", "tier"} <= {*lines.column_names}


def test_best_of_each_value_of_a_recipe_has_its_trainings(table: pa.Table) -> None:
    rows = table.append_column("recipe_batch", pa.array([8] * len(table)))
    rows = rows.append_column("recipe_lr", pa.array([0.1 * (1 + i % 2) for i in range(len(table))]))
    lines = best(rows, "accuracy", "max", ["recipe_lr"])
    assert len(lines)
    assert {*trainings(rows, lines)["recipe_lr"].to_pylist()} == {*lines["recipe_lr"].to_pylist()}
