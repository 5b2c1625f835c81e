"""Write a table as CSV, JSON or Parquet, in full precision and with all rows."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import pyarrow as pa
from pyarrow import compute

from search_spaces.support.errors import UserError, printable, unknown_name_error
from search_spaces.support.files import atomic_open, unwritable

_FORMULA = "^('*[=+@\t\r\n＝＋－＠-])"  # noqa: RUF001  # full-width forms, which some spreadsheets run too
"""Start of text that a spreadsheet would run, or that looks escaped already."""


def write(table: pa.Table, form: str, path: Path | None = None) -> None:
    """Write a table as "csv", "json" or "parquet" to a file, or without a path to standard output.

    Raises:
        UserError: An unknown format, a file that cannot be written, or Parquet on a terminal.
    """
    if form not in FORMS:
        raise unknown_name_error("table format", form, FORMS, option="form of a table")
    if path is None and form == "parquet" and sys.stdout.isatty():
        message = "Parquet is binary and cannot be printed in a terminal. Give a file, or choose csv or json."
        raise UserError("unsupported", message, option="--format", value=form, choices=("csv", "json"))
    content = FORMS[form](table)
    if path is None:
        sys.stdout.flush()  # keep the order of earlier output
        sys.stdout.buffer.write(printable(content.decode()).encode() if sys.stdout.isatty() else content)
        sys.stdout.buffer.flush()
        return
    try:
        with atomic_open(path) as file:
            file.write(content)
    except OSError as error:
        raise unwritable(path, error) from error


def to_csv(table: pa.Table) -> bytes:
    """Return a table as CSV: a header line, null as empty. Text that a spreadsheet would run is escaped with '."""
    from pyarrow import csv

    names = [re.sub(_FORMULA, r"'\1", name) for name in table.column_names]
    plain = pa.table(list(map(_escape_formulas, table.columns)), names=names)
    file = BytesIO()
    csv.write_csv(plain, file)
    return file.getvalue()


def to_json(table: pa.Table) -> bytes:
    """Return a table as a JSON array, one object a line. Raises ValueError if a number is not finite."""
    objects = [json.dumps(record, allow_nan=False, ensure_ascii=False) for record in table.to_pylist()]
    return "\n".join(("[", ",\n".join(objects), "]", "")).encode()


def to_parquet(table: pa.Table) -> bytes:
    """Return a table as a Parquet file with the type of every column; `results.records.parquet.read` reads it."""
    from pyarrow import parquet

    file = BytesIO()
    parquet.write_table(table, file, compression="zstd")
    return file.getvalue()


FORMS: Mapping[str, Callable[[pa.Table], bytes]] = {"csv": to_csv, "json": to_json, "parquet": to_parquet}


def _escape_formulas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_string(column.type):
        return column
    return compute.replace_substring_regex(column, pattern=_FORMULA, replacement=r"'\1")
