"""Flat tables of Rows (pyarrow): one line a row, one scalar a column, null where nothing was measured."""

import json
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from results.records.arrays import array
from results.records.columns import CURVE_COLUMNS, ROW_COLUMNS, TYPES
from results.records.row import Row
from results.records.strict_json import is_number
from search_spaces.support.errors import Notice, UserError, cause_fields, unknown_name_error, value_fields
from search_spaces.support.spec import MAX_INTEGER

_NUMBERS = frozenset({int, float})
_TEXTS = frozenset({str, NoneType})
_KINDS: Mapping[type, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,)}
"""Type of a column -> types of values that it accepts."""


def from_rows(rows: Iterable[Row]) -> pa.Table:
    """Build a table of rows of any status, in order; rows with different metrics unite their columns.

    A row with a metric that is no number is left out, with a Notice that names it.
    """
    return _table(_flatten(rows, lambda row: [row.columns()]), ROW_COLUMNS)


def curves(rows: Iterable[Row]) -> pa.Table:
    """Build a table of the curve points of rows, see `Row.points`; invalid rows are left out with a Notice."""
    return _table(_flatten(rows, Row.points), CURVE_COLUMNS)


def from_records(records: Iterable[Mapping[str, Any]], first: Iterable[str] = ()) -> pa.Table:
    """Build a table of records of scalars. The columns in `first` come first.

    Numbers that are not finite become null. A column of a Row has the type of its field. Any other holds text if one
    value is text, else floats if one is a float, else integers.

    Raises:
        UserError: A value does not fit its column.
    """
    return _table(map(_check_record, records), first)


def _flatten(rows: Iterable[Row], records: Callable[[Row], Sequence[Mapping[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        try:
            _check_numbers(row)
            flat = [*map(_check_record, records(row))]
        except (TypeError, ValueError, AttributeError) as error:
            name = f"a row of task {row.task!r:.60} with seed {row.seed!r:.60}"
            fields = {**cause_fields(error), "task": row.task, "seed": row.seed}
            warnings.warn(Notice("skipped", f"skipped {name}: {error}.", **fields), stacklevel=3)
            continue
        yield from flat


def _check_numbers(row: Row) -> None:
    """Raise if a measurement is no number: the whole column would become text."""
    for group in (row.metrics, row.test, row.extra_metrics, row.speeds, *(point["metrics"] for point in row.curve)):
        if _NUMBERS.issuperset(map(type, group.values())):
            continue
        for name, value in group.items():
            if not is_number(value):
                message = f"{name!r:.60} must be a number, got {value!r:.60}"
                raise UserError("wrong-type", message, option=name, **value_fields(value))


def _check_record(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if not _fit(tuple(record), tuple(map(type, record.values()))):
        for name, value in record.items():
            if not _fits(name, type(value)):
                words = " or ".join(kind.__name__ for kind in _kinds(name))
                message = f"column {name!r} must be {words}, got {value!r:.60}"
                raise UserError("wrong-type", message, option=name, **value_fields(value))
    for name, value in record.items():
        if type(value) is int and not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
            message = f"column {name!r} must fit into 64 bits, got {value!r:.60}"
            raise UserError("out-of-range", message, option=name, value=value)
    return record


@lru_cache(maxsize=1024)
def _fit(names: tuple[str, ...], kinds: tuple[type, ...]) -> bool:
    """Return whether values of these types fit their columns. Cached, since most records share them."""
    return all(map(_fits, names, kinds))


def _fits(name: str, kind: type) -> bool:
    name.encode()  # column names must be valid Unicode
    return issubclass(kind, (*_kinds(name), NoneType)) and not issubclass(kind, bool)


def _kinds(name: str) -> tuple[type, ...]:
    return _KINDS[TYPES[name]] if name in TYPES else (int, float, str)


def _table(records: Iterable[Mapping[str, Any]], first: Iterable[str]) -> pa.Table:
    rows = list(records)
    names = dict.fromkeys(first)
    for signature in dict.fromkeys(map(tuple, rows)):
        names.update(dict.fromkeys(signature))
    arrays = {}
    for name in names:
        values = [row.get(name) for row in rows]
        kinds = set(map(type, values))
        kind = TYPES[name] if name in TYPES else _common(kinds)
        arrays[name] = array([*map(_text, values)] if kind is str and not kinds <= _TEXTS else values, kind)
    return pa.table(arrays)


def _common(kinds: set[type]) -> type:
    if any(issubclass(kind, str) for kind in kinds):
        return str
    if any(issubclass(kind, float) for kind in kinds):
        return float
    return int if any(issubclass(kind, int) for kind in kinds) else float


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def concat(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables with the union of their columns; missing values are null.

    Raises:
        UserError: A column holds numbers in one table and text in another.
    """
    if not tables:
        return from_rows([])
    try:
        return pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    except pa.ArrowException as error:
        message = f"these tables cannot be combined: {str(error).partition(chr(10))[0].rstrip('.')}."
        raise UserError("mismatch", message, tables=len(tables)) from error


def empty(schema: pa.Schema) -> pa.Table:
    """Return a table of this schema without rows."""
    return pa.Table.from_batches([], schema=schema)  # pa.Schema.empty_table would import pandas


def deduplicate(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables as `concat` does; rows whose identity is in an earlier table are left out.

    Rows without a status count as complete. Raises UserError as `concat` does.
    """
    parts, earlier = [], set[str]()
    has_status = any("status" in source.column_names for source in tables)
    for source in tables:
        part = source
        if "identity" in source.column_names and len(tables) > 1:
            identities = source["identity"].to_pylist()
            if earlier:
                part = keep(
                    source,
                    np.array([identity is None or identity not in earlier for identity in identities], dtype=bool),
                )
            earlier.update(filter(None, identities))
        if has_status and "status" not in part.column_names:
            part = part.append_column("status", array(["complete"] * len(part), str))
        parts.append(part)
    return concat(parts)


def check_columns(column_names: Sequence[str], names: Iterable[str]) -> None:
    """Raise UserError for the first name that is no column."""
    for name in names:
        if name not in column_names:
            raise unknown_name_error("column", name, column_names)


def keep(table: pa.Table, mask: NDArray[np.bool_]) -> pa.Table:
    """Return the rows where the mask is true."""
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))  # pa.array would import pandas
    return table.filter(pa.BooleanArray.from_buffers(pa.bool_(), len(mask), [None, bits]))


def has_numbers(field: pa.Field) -> bool:
    """Return whether a column holds numbers."""
    return bool(pa.types.is_floating(field.type) or pa.types.is_integer(field.type))


def metric_columns(fields: Sequence[pa.Field]) -> list[str]:
    """Return the columns that may be metrics: numbers, except standard errors and the fixed columns of a Row."""
    numeric = {column.name for column in fields if has_numbers(column)}
    metrics = [name for name in numeric if name not in ROW_COLUMNS and not name.startswith(("recipe_", "version_"))]
    errors = {f"{name}_se" for name in metrics}
    return [column.name for column in fields if column.name in {*metrics} - errors]


def drop_identities(table: pa.Table, identities: Container[str]) -> pa.Table:
    """Return the rows without any of these identities."""
    if "identity" not in table.column_names:
        return table
    return keep(table, np.array([identity not in identities for identity in table["identity"].to_pylist()], dtype=bool))


def condition_of(column: str, value: Any) -> str:
    """Return a condition for `results.query.condition`: the column equals this value, or is null for None."""
    return f"{_quote(column)} is null" if value is None else f"{_quote(column)} = {_literal(value)}"


def _literal(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _quote(column: str) -> str:
    return column if column.isidentifier() else '"' + column.replace('"', '""') + '"'


def finite(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace numbers that are not finite by null."""
    if not pa.types.is_floating(column.type) or compute.all(compute.is_finite(column)).as_py() is not False:
        return column
    return compute.if_else(compute.is_finite(column), column, pa.nulls(len(column), column.type))
