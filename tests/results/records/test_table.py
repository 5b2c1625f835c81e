"""Flat tables of rows and curves."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from expect import check, raises
from grouped import grouped
from results.records.columns import CURVE_COLUMNS
from results.records.export import to_parquet
from results.records.parquet import read
from results.records.row import Row
from results.records.table import curves, from_records, from_rows, keep
from search_spaces.support.errors import Notice

MakeRow = Callable[..., Row]
RandomRows = Callable[[int, int], list[Row]]


def test_table_gives_back_the_columns_of_a_row(make_row: MakeRow) -> None:
    costs, scores = {"params": 12, "flops": 2**53 + 1}, {"metrics": {"accuracy": 0.1 + 0.2}}
    row = make_row(depth=7, topology="dca(k=2)", **costs, **scores, provenance={"wall_s": 3})
    assert from_rows([row]).to_pylist() == [row.columns()]


def test_rows_with_different_metrics_unite_their_columns(make_row: MakeRow) -> None:
    table = from_rows([make_row(metrics={"accuracy": 0.5}), make_row(metrics={"loss": 2}, test={"loss": 3.0})])
    assert table.column_names[-3:] == ["accuracy", "loss", "test_loss"]
    assert table.select(["accuracy", "loss", "test_loss"]).to_pylist() == [
        {"accuracy": 0.5, "loss": None, "test_loss": None},
        {"accuracy": None, "loss": 2.0, "test_loss": 3.0},
    ]


def test_columns_do_not_depend_on_the_order_of_rows(make_row: MakeRow) -> None:
    rows = [make_row(status="failed", error="out of memory", data=None), make_row(metrics={"accuracy": 0.5})]
    assert from_rows(rows).schema == from_rows(rows[::-1]).schema


def test_rows_of_every_status_are_kept(make_row: MakeRow) -> None:
    every_status = ["complete", "pruned", "over-budget", "failed"]
    assert from_rows([make_row(status=status) for status in every_status])["status"].to_pylist() == every_status


def test_empty_table_has_the_columns_of_every_row(make_row: MakeRow) -> None:
    table = from_rows([])
    assert len(table) == 0
    assert table.column_names == list(make_row().columns())


def test_empty_columns_have_the_types_of_their_fields(make_row: MakeRow) -> None:
    schema = from_rows([make_row()]).schema
    assert schema.field("flops").type == pa.int64()
    assert schema.field("wall_s").type == pa.float64()
    assert schema.field("error").type == pa.string()


def test_numbers_that_are_not_finite_are_null(make_row: MakeRow) -> None:
    for value in (float("nan"), float("inf"), float("-inf")):
        assert from_rows([make_row(metrics={"loss": value})])["loss"].to_pylist() == [None]


def test_any_text_survives(make_row: MakeRow) -> None:
    for text in ("", "é ∞", "two\nlines", "\0", '"', "2020-01-01", "x" * 3_000_000):
        assert from_rows([make_row(error=text)])["error"].to_pylist() == [text]


def test_text_that_is_not_unicode_is_replaced_in_part(make_row: MakeRow) -> None:
    assert from_rows([make_row(error="no file \udcff")])["error"].to_pylist() == ["no file ?"]


def test_random_rows_are_in_their_table(random_rows: RandomRows) -> None:
    rows = [row for row in random_rows(9, 300) if "\udcff" not in "".join(row.columns())]
    table = from_rows(rows)
    assert len(table) == len(rows)
    for row, line in zip(rows, table.to_pylist(), strict=True):
        for name, value in row.columns().items():
            if isinstance(value, str):
                assert line[name] == value.replace("\udcff", "?")
            elif isinstance(line[name], str) and value is not None:
                assert json.loads(line[name]) == value  # another row has text in this column
            else:
                assert line[name] == (float(value) if isinstance(line[name], float) else value)


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


def test_row_that_does_not_fit_a_table_is_left_out_with_a_notice(make_row: MakeRow) -> None:
    good = make_row(metrics={"accuracy": 0.5}, profile={"latency_ms": 2.0})
    end = {"curve": ({"step": 1, "metrics": {"accuracy": 0.4}},), "steps": 2}
    with grouped() as case:
        for hostile in HOSTILE:
            rows = [replace(good, **end), replace(good, **{**end, **hostile}), replace(good, **end)]
            for make, lines in ((from_rows, 2), (curves, 4)):
                with case(f"{make.__name__} of {hostile}"):
                    with warnings.catch_warnings(record=True) as warning_list:
                        warnings.simplefilter("always")
                        table = make(rows)
                    assert table.schema.field("accuracy").type == pa.float64()
                    if warning_list:
                        assert len(table) == lines
                        assert make([rows[0], rows[2]]).equals(table)
                        (notice,) = (warning.message for warning in warning_list)
                        assert isinstance(notice, Notice)
                        check(notice, "skipped", task=rows[1].task, seed=rows[1].seed)
                        assert len(str(notice)) < 400
                    else:
                        assert "curve" in hostile or make is curves


def test_metric_named_like_a_cost_replaces_no_cost(make_row: MakeRow) -> None:
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
    table = from_rows(rows).select(["task", "loss", "accuracy", "test_accuracy", "recipe_lr", "recipe_rounds"])
    assert [tuple(record.values()) for record in table.to_pylist()] == [
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
    assert table.column_names == [*"task preset seed identity key topology step seconds loss accuracy".split()]
    assert table.schema.field("step").type == pa.int64()
    assert table["step"].to_pylist() == [1, 2, 3, 9]
    assert table["seconds"].to_pylist() == [0.5, None, None, None]
    assert table["loss"].to_pylist() == [3.0, 2.5, 2.0, None]
    assert table["accuracy"].to_pylist() == [None, None, None, 0.5]
    assert curves([]).column_names == list(CURVE_COLUMNS)


def test_point_has_the_columns_of_a_curve(make_row: MakeRow) -> None:
    (point,) = make_row(metrics={"loss": 1.0}).points()
    assert list(point) == [*CURVE_COLUMNS, "loss"]


def test_records_may_have_columns_of_text_that_rows_do_not_have() -> None:
    assert from_records([{"uncounted": "a b", "x": 1}]).to_pylist() == [{"uncounted": "a b", "x": 1.0}]


def test_value_that_does_not_fit_its_column_is_refused() -> None:
    with raises("wrong-type", option="depth", value="two"):
        from_records([{"depth": "two"}])
    with raises("out-of-range", option="depth", value=2**63):
        from_records([{"depth": 2**63}])


def test_parquet_gives_back_the_table(make_row: MakeRow, tmp_path: Path) -> None:
    table = from_rows([make_row(metrics={"accuracy": 0.5}), make_row(status="failed", error="é")])
    (tmp_path / "rows.parquet").write_bytes(to_parquet(table))
    assert read(tmp_path / "rows.parquet").equals(table)


def test_parquet_numbers_that_are_not_finite_become_null(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"loss": [1.0, float("nan"), float("inf"), None]}), tmp_path / "rows.parquet")
    assert read(tmp_path / "rows.parquet")["loss"].to_pylist() == [1.0, None, None, None]


def test_nested_parquet_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"curve": [[1.0]]}), tmp_path / "rows.parquet")
    with raises("wrong-type", option="curve", type="list<element: double>", path=str(tmp_path / "rows.parquet")):
        read(tmp_path / "rows.parquet")


def test_files_that_are_not_parquet_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    for content in (None, b"", b"PAR1 and then nothing PAR1", b"task,seed\n"):
        if content is not None:
            path.write_bytes(content)
        with raises("missing-file" if content is None else "bad-file", path=str(path), format="Parquet"):
            read(path)


def test_mask_selects_lines() -> None:
    numbers = np.arange(100)
    table = pa.table({"x": numbers})
    assert keep(table, numbers % 3 == 0)["x"].to_pylist() == list(range(0, 100, 3))
