"""Import of rows from files into a store. Loads no torch."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from nas.store.store import Store
from results.records import jsonl
from results.records.columns import COUNT_COLUMNS
from results.records.duplicates import deduplicate
from results.records.row import Direction, Row, Status
from search_spaces.support.errors import UserError, cause_fields
from search_spaces.support.progress import status_if_slow

_MAX_LINES = 3
"""Largest number of bad lines that an error lists."""


@dataclass(frozen=True)
class ImportCounts:
    """The numbers of rows in an import.

    Attributes:
        study: The study of the rows.
        new: Rows that were added.
        duplicates: Rows that the study had.
    """

    study: str
    new: int
    duplicates: int


def read_rows(paths: Sequence[Path]) -> list[Row]:
    """Read the rows of some files. Raises UserError for an unreadable or empty file, or a line without a row."""
    rows = []
    for path in paths:
        file_rows, bad = jsonl.read(path)
        if bad:
            more = f" and {len(bad) - _MAX_LINES} more" if len(bad) > _MAX_LINES else ""
            errors = "; ".join(map(str, bad[:_MAX_LINES]))
            message = f"every line of {path} must be a row: {errors}{more}. Nothing was imported."
            numbers = tuple(line.number for line in bad[:_MAX_LINES])
            fields = {**cause_fields(bad[0].error), "path": str(path), "lines": numbers, "count": len(bad)}
            raise UserError("bad-file", message, **fields)
        for row in file_rows:
            _check_possible(row, path)
        if not file_rows:
            raise UserError("missing-rows", f"{path} has no rows. Nothing was imported.", path=str(path))
        rows += file_rows
    return rows


def _check_possible(row: Row, path: Path) -> None:
    """Raise UserError for a row that no evaluation can produce. Rows that are only read are not checked."""

    def error(reason: str, **fields: Any) -> UserError:
        message = f"row {row.identity()} of {path} is invalid: {reason}. Nothing was imported."
        return UserError("bad-data", message, path=str(path), identity=row.identity(), **fields)

    if row.status not in get_args(Status):
        reason = f"its status must be one of {', '.join(get_args(Status))}, got {row.status!r}"
        raise error(reason, option="status", value=row.status, choices=get_args(Status))
    if directions := {*row.directions.values()} - {*get_args(Direction)}:
        reason = f"the direction of a metric must be max or min, got {min(directions)!r}"
        raise error(reason, option="direction", value=min(directions), choices=get_args(Direction))
    for name in COUNT_COLUMNS:
        if isinstance(count := getattr(row.costs, name), int) and count < 0:
            raise error(f"{name} must be at least 0, got {count}", option=name, value=count, least=0)


def import_into(storage: str, study: str, rows: Sequence[Row]) -> ImportCounts:
    """Write the rows that a study lacks. Raises UserError if the study is a search."""
    with closing(Store(storage, make=True)) as store, status_if_slow(f"importing {len(rows)} rows ..."):
        store.check_no_search(study)
        statuses = {row.identity(): row.status for row in store.read([study]).rows}
        unique_rows = deduplicate(rows)
        new = [row for row in unique_rows if statuses.get(row.identity()) not in ("complete", row.status)]
        store.add_all(new, study)
    return ImportCounts(study, len(new), len(unique_rows) - len(new))
