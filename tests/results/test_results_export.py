import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from results.export import FORMS, to_csv, to_json, to_parquet, write
from results.row import Row
from results.table import from_rows
from search_spaces.errors import UserError

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


def test_json_has_a_row_a_line_and_null_where_nothing_was_measured(make_row: MakeRow) -> None:
    table = from_rows([make_row(), make_row(metrics={"loss": float("inf")}, error="é\n")])
    text = to_json(table).decode()
    assert len(text.splitlines()) == len(table) + 2
    assert json.loads(text) == table.to_pylist()
    assert "Infinity" not in text


def test_json_refuses_what_json_does_not_have() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        to_json(pa.table({"x": [float("nan")]}))


def test_parquet_keeps_every_column_with_its_type(make_row: MakeRow) -> None:
    table = from_rows([make_row(flops=2**53 + 1, metrics={"accuracy": 0.1 + 0.2})])
    assert parquet.ParquetFile(io.BytesIO(to_parquet(table))).read().equals(table)


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1", "'=1", '=HYPERLINK("http://x")']
)
def test_csv_text_that_a_spreadsheet_would_run_is_disarmed(text: str) -> None:
    assert cells(pa.table({"error": [text]})) == [{"error": f"'{text}"}]


@pytest.mark.parametrize("text", ["dca(k=2)", "a-b", "1=1", " x", "", 'say "no"', "two\nlines", "a,b"])
def test_csv_leaves_other_text_alone(text: str) -> None:
    assert cells(pa.table({"error": [text], "n": [1]})) == [{"error": text, "n": "1"}]


def test_csv_leaves_negative_numbers_alone() -> None:
    assert cells(pa.table({"x": [-1.5], "n": [-2]})) == [{"x": "-1.5", "n": "-2"}]


def test_csv_names_of_columns_are_disarmed_too() -> None:
    assert cells(pa.table({"=x": [1]})) == [{"'=x": "1"}]


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_table_can_be_written(form: str, tmp_path: Path) -> None:
    write(from_rows([]), form, tmp_path / "rows")
    assert (tmp_path / "rows").read_bytes()


@pytest.mark.parametrize("form", FORMS)
def test_standard_output_gets_what_a_file_would_get(
    form: str, make_row: MakeRow, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    table = from_rows([make_row()])
    write(table, form)
    write(table, form, tmp_path / "rows")
    assert capfdbinary.readouterr().out == (tmp_path / "rows").read_bytes()


def test_parquet_is_not_written_to_a_terminal(make_row: MakeRow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(UserError, match="Parquet"):
        write(from_rows([make_row()]), "parquet")


def test_an_unknown_form_is_a_mistake(make_row: MakeRow) -> None:
    with pytest.raises(UserError, match="Did you mean 'json'"):
        write(from_rows([make_row()]), "jsonl")


def test_a_file_that_cannot_be_written_is_a_mistake(make_row: MakeRow, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write(from_rows([make_row()]), "csv", tmp_path / "no" / "rows.csv")
