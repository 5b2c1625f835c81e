"""CSV, JSON and Parquet keep every digit and contain nothing that a spreadsheet would run."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from expect import raises
from results.records.export import FORMS, to_csv, to_json, to_parquet, write
from results.records.row import Row
from results.records.table import from_rows

MakeRow = Callable[..., Row]

NUMBERS = [0.1 + 0.2, 1 / 3, 1e-300, 1.7976931348623157e308, 5e-324, -0.5]


def cells(table: pa.Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(table).decode(), newline="")))


def test_csv_keeps_every_digit() -> None:
    table = pa.table({"x": NUMBERS, "n": [2**53 + 1] * len(NUMBERS)})
    assert [float(cell["x"]) for cell in cells(table)] == NUMBERS
    assert cells(table)[0]["n"] == str(2**53 + 1)


def test_json_keeps_every_digit() -> None:
    assert [record["x"] for record in json.loads(to_json(pa.table({"x": NUMBERS})))] == NUMBERS


def test_json_has_a_line_a_row_and_null_for_missing_values(make_row: MakeRow) -> None:
    table = from_rows([make_row(), make_row(metrics={"loss": float("inf")}, error="é\n")])
    text = to_json(table).decode()
    assert len(text.splitlines()) == len(table) + 2
    assert json.loads(text) == table.to_pylist()
    assert "Infinity" not in text


def test_json_refuses_numbers_that_are_not_finite() -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # Python's own
        to_json(pa.table({"x": [float("nan")]}))


def test_parquet_keeps_every_column_with_its_type(make_row: MakeRow) -> None:
    table = from_rows([make_row(flops=2**53 + 1, metrics={"accuracy": 0.1 + 0.2})])
    assert parquet.ParquetFile(io.BytesIO(to_parquet(table))).read().equals(table)


def test_csv_disarms_text_that_a_spreadsheet_would_run() -> None:
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1", "'=1", '=HYPERLINK("http://x")']
    assert [cell["error"] for cell in cells(pa.table({"error": formulas}))] == [f"'{text}" for text in formulas]


def test_csv_leaves_other_text_and_negative_numbers_alone() -> None:
    plain = ["dca(k=2)", "a-b", "1=1", " x", "", 'say "no"', "two\nlines", "a,b"]
    rows = cells(pa.table({"error": plain, "n": [1] * len(plain)}))
    assert rows == [{"error": text, "n": "1"} for text in plain]
    assert cells(pa.table({"x": [-1.5], "n": [-2]})) == [{"x": "-1.5", "n": "-2"}]


def test_csv_disarms_names_of_columns() -> None:
    assert cells(pa.table({"=x": [1]})) == [{"'=x": "1"}]


def test_standard_output_gets_the_same_bytes_as_a_file(
    make_row: MakeRow, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for form in FORMS:
        for table in (from_rows([make_row()]), from_rows([])):
            write(table, form)
            write(table, form, tmp_path / "rows")
            content = (tmp_path / "rows").read_bytes()
            assert content, form
            assert capfdbinary.readouterr().out == content, form


def test_parquet_is_not_written_to_a_terminal(make_row: MakeRow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with raises("unsupported", option="--format", value="parquet", choices=("csv", "json")):
        write(from_rows([make_row()]), "parquet")


def test_unknown_form_is_refused(make_row: MakeRow) -> None:
    with raises("unknown-name", value="jsonl", nearest="json"):
        write(from_rows([make_row()]), "jsonl")


def test_file_that_cannot_be_written_is_refused(make_row: MakeRow, tmp_path: Path) -> None:
    path = tmp_path / "no" / "rows.csv"
    with raises("unwritable", path=str(path)):
        write(from_rows([make_row()]), "csv", path)
