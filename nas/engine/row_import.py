"""Rows that were made elsewhere, taken into a store. Loads no torch."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from nas.store.store import Store
from results.records import jsonl
from results.records.columns import COUNTS
from results.records.duplicates import deduplicate
from results.records.row import Direction, Row, Status
from search_spaces.support.errors import UserError, fields_of
from search_spaces.support.progress import status_if_slow

_MAX_LINES = 3
"""Bad lines of a file that are named."""


@dataclass(frozen=True)
class ImportCounts:
    """How many rows an import added.

    Attributes:
        study: The study that the rows are in.
        new: Rows that the study did not have.
        duplicates: Rows that it had.
    """

    study: str
    new: int
    duplicates: int


def rows_in(paths: Sequence[Path]) -> list[Row]:
    """The rows of some files. Raises UserError where one cannot be read, a line holds no row, or there is none."""
    rows = []
    for path in paths:
        file_rows, bad = jsonl.read(path)
        if bad:
            more = f" and {len(bad) - _MAX_LINES} more" if len(bad) > _MAX_LINES else ""
            errors = "; ".join(map(str, bad[:_MAX_LINES]))
            message = f"every line of {path} must be a row, {errors}{more}. Nothing was imported."
            numbers = tuple(line.number for line in bad[:_MAX_LINES])
            fields = {**fields_of(bad[0].error), "path": str(path), "lines": numbers, "count": len(bad)}
            raise UserError("bad-file", message, **fields)
        for row in file_rows:
            _check_possible(row, path)
        if not file_rows:
            raise UserError("missing-rows", f"there is no row in {path}. Nothing was imported.", path=str(path))
        rows += file_rows
    return rows


def _check_possible(row: Row, path: Path) -> None:
    """Raise UserError where no evaluation can give this row. Rows that are only read are not checked."""

    def error(reason: str, **fields: Any) -> UserError:
        message = f"training {row.identity()} of {path} cannot be: {reason}. Nothing was imported."
        return UserError("bad-data", message, path=str(path), identity=row.identity(), **fields)

    if row.status not in get_args(Status):
        reason = f"its status must be one of {', '.join(get_args(Status))}, got {row.status!r}"
        raise error(reason, option="status", value=row.status, choices=get_args(Status))
    if directions := {*row.directions.values()} - {*get_args(Direction)}:
        reason = f"the direction of a metric must be max or min, got {min(directions)!r}"
        raise error(reason, option="direction", value=min(directions), choices=get_args(Direction))
    for name in COUNTS:
        if isinstance(count := getattr(row.costs, name), int) and count < 0:
            raise error(f"{name} must be at least 0, got {count}", option=name, value=count, least=0)


def import_into(storage: str, study: str, rows: Sequence[Row]) -> ImportCounts:
    """Write what a study does not have yet. Raises UserError where the study is a search's."""
    with closing(Store(storage, make=True)) as store, status_if_slow(f"importing {len(rows)} rows ..."):
        if study in store.searches():
            message = f"study {study!r} is a search, whose rows are its own. Give another --study."
            raise UserError("mismatch", message, option="--study", value=study)
        statuses = {row.identity(): row.status for row in store.read([study]).rows}
        unique_rows = deduplicate(rows)
        new = [row for row in unique_rows if statuses.get(row.identity()) not in ("complete", row.status)]
        store.add_all(new, study)
    return ImportCounts(study, len(new), len(unique_rows) - len(new))
