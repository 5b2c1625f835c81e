"""Rows and records written to files or to standard output."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas.report.format import Format
from results.records import export, jsonl, table
from results.records.row import Row


def write_rows(rows: Sequence[Row], format: Format, output: Path | None) -> None:
    """Write Rows to a file or to standard output: complete as JSON Lines, as a flat table in any other format."""
    if format is Format.JSONL:
        jsonl.write(rows, output)
    else:
        export.write(table.from_rows(rows), format.value, output)


def write_records(records: Sequence[Mapping[str, Any]], format: Format, output: Path | None = None) -> None:
    """Write records to a file or to standard output, one line each."""
    export.write(table.from_records(records), format.value, output)
