"""Read Rows from files: this project's tables by name, other files by path.

JSON Lines hold whole Rows (`results.records.jsonl`). The formats of `results.records.export` (CSV, JSON, Parquet) hold
flat columns.
"""

import csv
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import compute

from results.records import jsonl
from results.records.columns import TYPES
from results.records.duplicates import contradictions, deduplicate
from results.records.human_numbers import check_size
from results.records.parquet import ParquetTable, open_table
from results.records.row import Row
from results.records.table import finite, from_records
from search_spaces.support.errors import UserError, cause_fields, unknown_name_error
from search_spaces.support.files import check_regular_file, kind_of_read_error

TABLES = Path(__file__).parents[1] / "tables"

_FORMULA = r"^'('*[=+@\t\r\n＝＋－＠-])"  # noqa: RUF001  # as `results.records.export` writes it


@dataclass(frozen=True)
class Source:
    """The contents of files.

    Attributes:
        rows: Whole Rows in order, one per evaluation: the last complete one, or else the last.
        flat: Flat tables; columns of Parquet files are read when they are selected.
        bad: A message for each line that is no Row, and for each Row that a later one contradicts.
    """

    rows: tuple[Row, ...] = ()
    flat: tuple[pa.Table | ParquetTable, ...] = ()
    bad: tuple[str, ...] = ()


def table_paths() -> dict[str, Path]:
    """Return the tables of this project by name."""
    return {path.name.partition(".")[0]: path for path in sorted(TABLES.glob("*.jsonl*"))}


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table of this project.

    Attributes:
        rows: Number of its rows.
        task: The task of its first row.
        preset: The preset of its first row.
        question: What it answers.
    """

    rows: int
    task: str
    preset: str
    question: str


def table_summaries() -> dict[str, TableSummary]:
    """Return what each table of this project answers, by name."""
    index = tomllib.loads((TABLES / "index.toml").read_text(encoding="utf-8"))
    summaries = {}
    for name, path in table_paths().items():
        rows, _ = jsonl.read(path)
        summaries[name] = TableSummary(len(rows), rows[0].task, rows[0].preset, index[name]["question"])
    return summaries


def read(name: str | Path) -> Source:
    """Read a file, a table of this project, or all of these ("tables").

    Raises:
        UserError: There is no such file or table, or it cannot be read.
    """
    tables = table_paths()
    if Path(name).exists():
        return _read(Path(name))
    if str(name) != "tables" and str(name) not in tables:
        error = unknown_name_error("table", str(name), ["tables", *tables])
        raise UserError(error.kind, f"file {str(name)!r} does not exist; {error}", **error.fields)
    return union([_read(path) for key, path in tables.items() if str(name) in ("tables", key)])


def union(sources: list[Source]) -> Source:
    """Merge several sources."""
    rows = [row for source in sources for row in source.rows]
    flat = tuple(table for source in sources for table in source.flat)
    bad = (*(message for source in sources for message in source.bad), *contradictions(rows))
    return Source(tuple(deduplicate(rows)), flat, bad)


def _read(path: Path) -> Source:
    reader = {".parquet": open_table, ".csv": from_csv, ".json": from_json}.get(path.suffix.lower())
    if reader is not None:
        return Source(flat=(reader(path),))
    rows, bad = jsonl.read(path)
    if bad and not rows:
        message = f"{str(path)!r} has no valid row: {bad[0]}. Give a file of rows, .csv, .json or .parquet."
        raise UserError("bad-file", message, **bad[0].fields, path=str(path))
    return union([Source(tuple(rows), bad=tuple(f"{path}, {line}" for line in bad))])


def from_csv(path: Path) -> pa.Table:
    """Read a CSV file whose first line names the columns; empty cells are null.

    A column of a Row has the type of its field. Any other holds integers if all values are, floats if all are numbers,
    and else text.

    Raises:
        UserError: The file cannot be read so.
    """
    from pyarrow import csv as arrow

    try:
        with _check_file(path).open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file), [])
        if len(names) == 1 and (other := next((separator for separator in ";\t|" if separator in names[0]), None)):
            raise _refusal(path, "CSV", f"columns must be separated by commas, got {other!r} in the first line")
        options = arrow.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)
        options.null_values, options.quoted_strings_can_be_null = [""], False
        table = arrow.read_csv(path, convert_options=options)
        return pa.table(
            {_unescape_formula(name): _cast(_unescape_formula(name), table[name]) for name in table.column_names}
        )
    except (OSError, UnicodeDecodeError, KeyError, csv.Error, pa.ArrowException) as error:
        raise _refusal(path, "CSV", error) from error


def from_json(path: Path) -> pa.Table:
    """Read a JSON file: a list of objects of numbers and texts. Raises UserError for anything else."""
    try:
        records = json.loads(_check_file(path).read_text(encoding="utf-8"))
        if isinstance(records, list) and all(isinstance(record, dict) for record in records):
            return from_records(records)
    except (OSError, ValueError, RecursionError) as error:
        raise _refusal(path, "JSON", error) from error
    raise _refusal(path, "JSON", "it is not a list of objects")


def _unescape_formula(name: str) -> str:
    return re.sub(_FORMULA, r"\1", name)


def _check_file(path: Path) -> Path:
    check_size(path, check_regular_file(path).stat().st_size)
    return path


def _cast(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kinds = {int: [pa.int64()], float: [pa.float64()], str: []}[TYPES[name]] if name in TYPES else None
    for kind in [pa.int64(), pa.float64()] if kinds is None else kinds:
        try:
            return finite(column.cast(kind))
        except pa.ArrowInvalid:
            if kinds:
                raise
    return compute.replace_substring_regex(column, pattern=_FORMULA, replacement=r"\1")


def _refusal(path: Path, form: str, why: object) -> UserError:
    reason = str(why).partition("\n")[0].rstrip(".")
    message = f"{str(path)!r} must be a {form} file as written by --format {form.lower()}: {reason}."
    fields = {"path": str(path), "format": form}
    if isinstance(why, Exception):
        return UserError(kind_of_read_error(why), message, **{**cause_fields(why), **fields})
    return UserError("bad-file", message, **fields)
