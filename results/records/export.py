"""A table as CSV, JSON or Parquet, in full precision: nothing is rounded and no row left out."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import pyarrow as pa
from pyarrow import compute

from search_spaces.support.errors import UserError, printable, unknown
from search_spaces.support.files import atomic_open, unwritable

_FORMULA = "^('*[=+@\t\r\n＝＋－＠-])"  # noqa: RUF001  # their wide forms, which some spreadsheets run too
"""How text begins that a spreadsheet would run, or that another ' would make look like such text disarmed."""


def write(table: pa.Table, form: str, path: Path | None = None) -> None:
    """Write a table as "csv", "json" or "parquet", to a file or, where there is no path, to standard output.

    Raises:
        UserError: An unknown form, a file that cannot be written, or Parquet, which is no text, on a terminal.
    """
    if form not in FORMS:
        raise unknown("form of a table", form, FORMS)
    if path is None and form == "parquet" and sys.stdout.isatty():
        message = "Parquet is no text for a terminal. Name a file, or choose csv or json."
        raise UserError("unsupported", message, option="--format", value=form, choices=("csv", "json"))
    content = FORMS[form](table)
    if path is None:
        sys.stdout.flush()  # what was printed before comes before
        sys.stdout.buffer.write(printable(content.decode()).encode() if sys.stdout.isatty() else content)
        sys.stdout.buffer.flush()
        return
    try:
        with atomic_open(path) as file:
            file.write(content)
    except OSError as error:
        raise unwritable(path, error) from error


def to_csv(table: pa.Table) -> bytes:
    """A line a row under a line of names, null as nothing; text that a spreadsheet would run has a ' before it."""
    from pyarrow import csv

    names = [re.sub(_FORMULA, r"'\1", name) for name in table.column_names]
    plain = pa.table(list(map(_escape_formulas, table.columns)), names=names)
    file = BytesIO()
    csv.write_csv(plain, file)
    return file.getvalue()


def to_json(table: pa.Table) -> bytes:
    """An array with an object a row, each on its line. Raises ValueError where a number is not finite."""
    objects = [json.dumps(record, allow_nan=False, ensure_ascii=False) for record in table.to_pylist()]
    return "\n".join(("[", ",\n".join(objects), "]", "")).encode()


def to_parquet(table: pa.Table) -> bytes:
    """What `results.records.parquet.read` reads: every column with its type."""
    from pyarrow import parquet

    file = BytesIO()
    parquet.write_table(table, file, compression="zstd")
    return file.getvalue()


FORMS: Mapping[str, Callable[[pa.Table], bytes]] = {"csv": to_csv, "json": to_json, "parquet": to_parquet}


def _escape_formulas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_string(column.type):
        return column
    return compute.replace_substring_regex(column, pattern=_FORMULA, replacement=r"'\1")
