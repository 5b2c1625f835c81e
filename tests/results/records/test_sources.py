"""Rows from files of every format, and from the shipped tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from expect import raises
from grouped import grouped
from results.records import export, jsonl, sources
from results.records.row import Row
from results.records.table import concat, from_rows
from search_spaces.support.errors import Kind
from toy_rows import a_row

RandomRows = Callable[[int, int], list[Row]]


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_columns_come_back_as_written(random_rows: RandomRows, tmp_path: Path, form: str) -> None:
    table = from_rows(random_rows(0, 40))
    export.write(table, form, tmp_path / f"rows.{form}")
    (copy,) = sources.read(tmp_path / f"rows.{form}").flat
    assert copy.column_names == table.column_names
    copy = copy.select(table.column_names)
    for name in table.column_names:
        values = table[name].to_pylist()
        if form == "csv" and not pa.types.is_string(table[name].type):  # integers may come back as floats
            assert copy[name].to_pylist() == pytest.approx(values, nan_ok=True), name
        elif form == "csv":
            assert [str(text or "") for text in copy[name].to_pylist()] == [text or "" for text in values], name
        else:
            assert copy[name].to_pylist() == values, name


def test_duplicate_rows_are_dropped_and_bad_lines_reported(random_rows: RandomRows, tmp_path: Path) -> None:
    rows = random_rows(1, 5)
    jsonl.write([rows[0], *rows], tmp_path / "rows.jsonl")
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write("{}\n")
    table = sources.read(tmp_path / "rows.jsonl")
    assert table.rows == tuple(rows)
    (bad,) = table.bad
    assert bad.startswith(f"{tmp_path}/rows.jsonl, line 7: ")
    assert "'task'" in bad


def test_later_failure_does_not_replace_a_complete_row(tmp_path: Path) -> None:
    whole = a_row()
    jsonl.write([whole, a_row(status="failed", error="it broke", metrics={})], tmp_path / "rows.jsonl")
    assert sources.read(tmp_path / "rows.jsonl").rows == (whole,)


def test_csv_numbers_that_are_not_finite_become_null(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text("name,loss\na,nan\nb,0.5\nc,inf\n")
    [table] = sources.read(tmp_path / "odd.csv").flat
    assert table["loss"].to_pylist() == [None, 0.5, None]


def test_shipped_tables_have_names() -> None:
    assert set(sources.table_paths()) >= {"stdlib-lm-topologies", "goal-point-maze"}
    (single, every) = (sources.read(name) for name in ("stdlib-lm-topologies", "tables"))
    assert {row.task for row in single.rows} == {"stdlib-lm"}
    assert len(single.rows) < len(every.rows)
    assert not every.bad


UNREADABLE: list[tuple[str, str, Kind, dict[str, Any]]] = [
    ("x.json", "{}", "bad-file", {"format": "JSON"}),
    ("x.json", "[1]", "bad-file", {"format": "JSON"}),
    ("x.json", '[{"depth": "deep"}]', "bad-file", {"option": "depth", "value": "deep", "cause": "wrong-type"}),
    ("x.json", "[" * 100_000, "bad-file", {"format": "JSON"}),
    ("x.csv", "", "bad-file", {"format": "CSV"}),
    ("x.csv", "a,b\n1\n", "bad-file", {"format": "CSV"}),
    ("x.csv", "a,a\n1,2\n", "bad-file", {"format": "CSV"}),
    ("x.csv", "depth\ndeep\n", "bad-file", {"format": "CSV"}),
    ("x.csv", "a\n\xff", "bad-file", {"format": "CSV"}),
    ("x.parquet", "PAR1", "bad-file", {"format": "Parquet"}),
    ("y.bin", "\x87\x1f", "bad-file", {"line": 1, "cause": "bad-syntax"}),
    ("y.jsonl", '{"a": 1}\n', "bad-file", {"line": 1, "cause": "missing-value", "option": "task"}),
]


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with grouped() as case:
        for name, text, kind, fields in UNREADABLE:
            (tmp_path / name).write_bytes(text.encode("latin-1"))
            with case(f"{name}: {text:.40}"), raises(kind, path=str(tmp_path / name), **fields):
                sources.read(tmp_path / name)
    with raises("unknown-name", option="table", value=str(tmp_path / "none.jsonl")):
        sources.read(tmp_path / "none.jsonl")


def test_csv_gives_back_text_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    texts = ["=1+1", "'quoted'", "'=1+1", "''-x", "\n=1", "＝1", "plain"]  # noqa: RUF001
    table = pa.table({"error": texts, "=seed": [1, None, 3, 4, 5, 6, 7]})
    export.write(table, "csv", tmp_path / "x.csv")
    (copy,) = sources.read(tmp_path / "x.csv").flat
    assert copy.to_pydict() == table.to_pydict()


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_files_of_every_format_have_a_size_limit(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    export.write(pa.table({"a": [*map(str, range(1000))], "b": [0] * 1000}), form, tmp_path / f"x.{form}")
    monkeypatch.setattr("results.records.human_numbers.MAX_FILE", 2000)
    with raises("too-large", path=str(tmp_path / f"x.{form}"), most=2000):
        sources.read(tmp_path / f"x.{form}").flat[0].select(["a"])
    if form == "parquet":  # the limit counts the selected columns
        assert sources.read(tmp_path / f"x.{form}").flat[0].select(["b"]).num_rows == 1000


def test_tables_with_other_columns_are_united() -> None:
    union = concat([pa.table({"a": [1], "b": ["x"]}), pa.table({"a": [0.5], "c": [2]})])
    assert union.to_pydict() == {"a": [1.0, 0.5], "b": ["x", None], "c": [None, 2]}
    with raises("mismatch", tables=2):
        concat([pa.table({"a": [1]}), pa.table({"a": ["x"]})])


def test_json_numbers_that_are_not_finite_become_null(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps([{"a": float("inf"), "b": 1}]))
    (table,) = sources.read(tmp_path / "x.json").flat
    assert table.to_pydict() == {"a": [None], "b": [1]}
