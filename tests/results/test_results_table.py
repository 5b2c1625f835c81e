import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from results.columns import CURVE
from results.export import to_parquet
from results.parquet import read
from results.row import Row
from results.table import curves, from_records, from_rows, keep
from search_spaces.errors import Notice, UserError

MakeRow = Callable[..., Row]
RandomRows = Callable[[int, int], list[Row]]


def test_a_row_comes_out_as_it_went_in(make_row: MakeRow) -> None:
    costs, found = {"params": 12, "flops": 2**53 + 1}, {"metrics": {"accuracy": 0.1 + 0.2}}
    row = make_row(depth=7, topology="dca(k=2)", **costs, **found, provenance={"wall_s": 3})
    assert from_rows([row]).to_pylist() == [row.columns()]


def test_rows_with_different_metrics_unite_their_columns(make_row: MakeRow) -> None:
    table = from_rows([make_row(metrics={"accuracy": 0.5}), make_row(metrics={"loss": 2}, test={"loss": 3.0})])
    assert table.column_names[-3:] == ["accuracy", "loss", "test_loss"]
    assert table.select(["accuracy", "loss", "test_loss"]).to_pylist() == [
        {"accuracy": 0.5, "loss": None, "test_loss": None},
        {"accuracy": None, "loss": 2.0, "test_loss": 3.0},
    ]


def test_the_columns_do_not_depend_on_the_order_of_rows(make_row: MakeRow) -> None:
    rows = [make_row(status="failed", error="out of memory", data=None), make_row(metrics={"accuracy": 0.5})]
    assert from_rows(rows).schema == from_rows(rows[::-1]).schema


@pytest.mark.parametrize("status", ["complete", "pruned", "over-budget", "failed"])
def test_rows_of_every_status_are_kept(make_row: MakeRow, status: str) -> None:
    assert from_rows([make_row(status=status)])["status"].to_pylist() == [status]


def test_no_rows_make_a_table_with_the_columns_that_every_row_has(make_row: MakeRow) -> None:
    table = from_rows([])
    assert len(table) == 0
    assert table.column_names == list(make_row().columns())


def test_columns_have_the_types_of_their_fields_even_where_nothing_was_measured(make_row: MakeRow) -> None:
    schema = from_rows([make_row()]).schema
    assert schema.field("flops").type == pa.int64()
    assert schema.field("wall_s").type == pa.float64()
    assert schema.field("error").type == pa.string()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_null(make_row: MakeRow, value: float) -> None:
    assert from_rows([make_row(metrics={"loss": value})])["loss"].to_pylist() == [None]


@pytest.mark.parametrize("text", ["", "é ∞", "two\nlines", "\0", '"', "2020-01-01", "x" * 3_000_000])
def test_any_text_survives(make_row: MakeRow, text: str) -> None:
    assert from_rows([make_row(error=text)])["error"].to_pylist() == [text]


def test_text_that_is_not_unicode_is_kept_as_far_as_it_goes(make_row: MakeRow) -> None:
    assert from_rows([make_row(error="no file \udcff")])["error"].to_pylist() == ["no file ?"]


def test_whatever_rows_hold_is_in_their_table(random_rows: RandomRows) -> None:
    rows = [row for row in random_rows(9, 300) if "\udcff" not in "".join(row.columns())]
    table = from_rows(rows)
    assert len(table) == len(rows)
    for row, found in zip(rows, table.to_pylist(), strict=True):
        for name, value in row.columns().items():
            if isinstance(value, str):
                assert found[name] == value.replace("\udcff", "?")
            elif isinstance(found[name], str) and value is not None:
                assert json.loads(found[name]) == value  # another row has text there
            else:
                assert found[name] == (float(value) if isinstance(found[name], float) else value)


HOSTILE: list[dict[str, Any]] = [
    {"metrics": {"accuracy": "high"}},
    {"metrics": {"accuracy": True}},
    {"metrics": {"accuracy": None}},
    {"metrics": {"accuracy": [0.5]}},
    {"metrics": {"accuracy": 10**400}},
    {"metrics": {"\udcff": 1.0}},
    {"metrics": {7: 1.0}},
    {"metrics": 7},
    {"test": {"accuracy": "high"}},
    {"profile": {"latency_ms": "fast"}},
    {"profile": {"latency_ms": {"median": 3}}},
    {"curve": ({"step": "one", "metrics": {}},)},
    {"curve": ({"step": 1, "metrics": {"accuracy": "high"}},)},
    {"seed": "zero"},
    {"seed": 2**64},
    {"seed": True},
    {"profile": {"latency_ms": True}},
    {"task_version": 1.5},
    {"task": 7},
    {"provenance": {"threads": "two"}},
    {"architecture": "resnet"},
    {"costs": None},
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=str)
def test_a_row_that_has_no_place_in_a_table_is_named_and_hides_no_other(
    make_row: MakeRow, hostile: dict[str, Any]
) -> None:
    good = make_row(metrics={"accuracy": 0.5}, profile={"latency_ms": 2.0})
    end = {"curve": ({"step": 1, "metrics": {"accuracy": 0.4}},), "steps": 2}
    rows = [replace(good, **end), replace(good, **{**end, **hostile}), replace(good, **end)]
    for make, lines in ((from_rows, 2), (curves, 4)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            table = make(rows)
        assert table.schema.field("accuracy").type == pa.float64()
        if told:
            assert len(table) == lines
            assert make([rows[0], rows[2]]).equals(table)
            (notice,) = told
            assert notice.category is Notice
            assert str(notice.message).startswith("a row of task ")
            assert len(str(notice.message)) < 400
        else:
            assert "curve" in hostile or make is curves


def test_a_hostile_metric_does_not_replace_a_cost(make_row: MakeRow) -> None:
    table = from_rows([make_row(params=12, metrics={"params": 0.5, "flops": 1e9}), make_row(params=13)])
    assert table["params"].to_pylist() == [12, 13]
    assert table["flops"].to_pylist() == [None, None]
    assert table["metric_params"].to_pylist() == [0.5, None]


def test_settings_and_versions_have_columns_of_one_type_each(make_row: MakeRow) -> None:
    recipes = [{"lr": 0.1, "batch": 2, "floor": 0, "x": 1}, {"lr": 1, "batch": 3, "floor": 0.5, "x": "a"}, {}]
    table = from_rows([make_row(recipe=recipe, provenance={"versions": {"torch": "2.15.0"}}) for recipe in recipes])
    assert table["recipe_lr"].to_pylist() == [0.1, 1.0, None]
    assert table.schema.field("recipe_batch").type == pa.int64()
    assert table.schema.field("recipe_floor").type == pa.float64()
    assert table["recipe_x"].to_pylist() == ["1", "a", None]
    assert table["version_torch"].to_pylist() == ["2.15.0"] * 3


def test_rows_of_several_tasks_unite_their_columns(make_row: MakeRow) -> None:
    rows = [
        make_row(task="a", metrics={"loss": 1.0}, recipe={"lr": 0.1}),
        make_row(task="b", metrics={"accuracy": 0.5}, test={"accuracy": 0.4}, recipe={"rounds": 3}),
    ]
    found = from_rows(rows).select(["task", "loss", "accuracy", "test_accuracy", "recipe_lr", "recipe_rounds"])
    assert [tuple(record.values()) for record in found.to_pylist()] == [
        ("a", 1.0, None, None, 0.1, None),
        ("b", None, 0.5, 0.4, None, 3),
    ]


def test_curves_are_a_table_of_points(make_row: MakeRow) -> None:
    curve = ({"step": 1, "metrics": {"loss": 3.0}, "seconds": 0.5}, {"step": 2, "metrics": {"loss": 2.5}})
    rows = [
        make_row(curve=curve, steps=3, metrics={"loss": 2.0}),
        make_row(task="b", metrics={"accuracy": 0.5}, steps=9),
    ]
    table = curves(rows)
    assert table.column_names == [
        "task",
        "preset",
        "seed",
        "identity",
        "key",
        "topology",
        "step",
        "seconds",
        "loss",
        "accuracy",
    ]
    assert table.schema.field("step").type == pa.int64()
    assert table["step"].to_pylist() == [1, 2, 3, 9]
    assert table["seconds"].to_pylist() == [0.5, None, None, None]
    assert table["loss"].to_pylist() == [3.0, 2.5, 2.0, None]
    assert table["accuracy"].to_pylist() == [None, None, None, 0.5]
    assert curves([]).column_names == list(CURVE)


def test_a_point_has_the_columns_of_a_curve(make_row: MakeRow) -> None:
    (point,) = make_row(metrics={"loss": 1.0}).points()
    assert list(point) == [*CURVE, "loss"]


def test_records_may_have_columns_of_text_that_rows_do_not_have() -> None:
    assert from_records([{"uncounted": "a b", "x": 1}]).to_pylist() == [{"uncounted": "a b", "x": 1.0}]


def test_a_value_that_does_not_fit_its_column_is_refused() -> None:
    with pytest.raises(ValueError, match="depth"):
        from_records([{"depth": "two"}])


def test_a_parquet_file_gives_back_its_table(make_row: MakeRow, tmp_path: Path) -> None:
    table = from_rows([make_row(metrics={"accuracy": 0.5}), make_row(status="failed", error="é")])
    (tmp_path / "rows.parquet").write_bytes(to_parquet(table))
    assert read(tmp_path / "rows.parquet").equals(table)


def test_numbers_of_a_parquet_file_that_are_not_finite_become_null(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"loss": [1.0, float("nan"), float("inf"), None]}), tmp_path / "rows.parquet")
    assert read(tmp_path / "rows.parquet")["loss"].to_pylist() == [1.0, None, None, None]


def test_a_parquet_file_that_is_not_flat_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"curve": [[1.0]]}), tmp_path / "rows.parquet")
    with pytest.raises(UserError, match="curve"):
        read(tmp_path / "rows.parquet")


@pytest.mark.parametrize("content", [None, b"", b"PAR1 and then nothing PAR1", b"task,seed\n"])
def test_what_is_no_parquet_file_is_a_mistake_of_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "rows.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match="Parquet") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_mask_keeps_its_lines() -> None:
    numbers = np.arange(100)
    table = pa.table({"x": numbers})
    assert keep(table, numbers % 3 == 0)["x"].to_pylist() == list(range(0, 100, 3))


def test_a_query_from_rows_to_csv_loads_neither_pandas_nor_torch() -> None:
    script = """
import sys
from results import export, mixtures, query, table
from results.row import Row, Costs
from search_spaces.architecture import Architecture
rows = [
    Row(task="t", task_version=1, architecture=Architecture(depth=depth, width=4, hidden=4), seed=seed, preset="p",
        status="complete", metrics={"accuracy": depth / 9}, costs=Costs(flops=depth))
    for depth in (1, 2, 3) for seed in (0, 1)
]
rows = table.from_rows(rows)
found = query.query(rows, where="flops < 3", objectives={"accuracy": "max", "flops": "min"}, order_by=["flops desc"])
assert len(found) == 4 and mixtures.mixtures(found)
export.to_csv(found), export.to_json(found), export.to_parquet(found), table.from_rows([])
print(*(name for name in ("pandas", "torch") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
