"""Rows as one flat table (pyarrow): a line a row, a column a scalar, null where nothing was measured."""

import json
import math
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.json
from numpy.typing import NDArray
from pyarrow import compute

from results.row import Costs, Row
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError, unknown

_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string()}
_HINTS = {name: hint for record in (Row, Architecture, Costs) for name, hint in get_type_hints(record).items()}

_BLANK = Row(
    task="", task_version=0, architecture=Architecture(depth=1, width=1, hidden=1), seed=0, preset="", status="failed"
)
_FIXED = tuple(_BLANK.columns())
"""The columns that every row has; metrics come after them."""

_MIXED = {
    "task_version": "different versions of a task are not comparable",
    "data": "results on different data are not comparable",
    "preset": "presets train for different lengths",
    "start": "weights that were trained before have more steps behind them",
    "seed": "single seeds differ by chance",
    "counter": "counters may count FLOPs differently",
}
"""Column -> why rows that differ in it should not be read as one table."""


def from_rows(rows: Iterable[Row]) -> pa.Table:
    """The table of rows of any status, in their order; rows with different metrics unite their columns."""
    return from_records((row.columns() for row in rows), first=_FIXED)


def from_records(records: Iterable[Mapping[str, Any]], first: Iterable[str] = ()) -> pa.Table:
    """The table of records of scalars, the columns named by `first` before those that records bring along.

    A number that is not finite says nothing and becomes null. A column of a Row has the type of its field; any other
    holds floats, or text where one of its values is text.

    Raises:
        ValueError: A value does not fit its column.
    """
    lines, texts = [], set()
    names = dict.fromkeys(first)
    for record in records:
        clean = {name: _clean(value) for name, value in record.items()}
        names |= dict.fromkeys(clean)
        texts |= {name for name, value in clean.items() if isinstance(value, str)}
        lines.append(json.dumps(clean).encode())
    schema = pa.schema([(name, _type(name, name in texts)) for name in names])
    # By way of JSON because pa.array imports pandas, which takes longer than all the rest of a query.
    text = b"\n".join(lines or [b"{}"])
    parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    blocks = pyarrow.json.ReadOptions(block_size=max(2**20, 2 * max(map(len, lines), default=0)))
    return pyarrow.json.read_json(BytesIO(text), read_options=blocks, parse_options=parse).slice(0, len(lines))


def read(path: Path) -> pa.Table:
    """The table in a Parquet file; numbers that are not finite become null.

    Raises:
        UserError: There is no such file, or a column holds anything but integers, floats or text.
    """
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:  # parquet.read_table takes ten times as long to import
            table = file.read()
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise UserError(f"{str(path)!r} must be a Parquet file, as `export.write` makes it: {reason}.") from error
    for field in table.schema:
        if field.type not in (*_TYPES.values(), pa.null()):
            raise UserError(
                f"column {field.name!r} of {str(path)!r} must hold integers, floats or text, got {field.type}."
            )
    return pa.table(list(map(_finite, table.columns)), schema=table.schema)


def require(table: pa.Table, names: Iterable[str]) -> None:
    """Raise UserError where the table has no column of one of the names."""
    for name in names:
        if name not in table.column_names:
            raise unknown("column", name, table.column_names)


def keep(table: pa.Table, mask: NDArray[np.bool_]) -> pa.Table:
    """The lines where the mask is true."""
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))  # pa.array would import pandas
    return table.filter(pa.BooleanArray.from_buffers(pa.bool_(), len(mask), [None, bits]))


def mixtures(table: pa.Table) -> list[str]:
    """What of a task's rows should not be read as one table: a line for each, with how to part them."""
    lines = []
    for column, reason in _MIXED.items():
        if {"task", column} <= set(table.column_names) and len(table[column].unique()) > 1:
            for task, values in sorted(_by_task(table, column).items()):
                if len(values) > 1:
                    lines.append(_mixture(task, column, sorted(values), reason))
    return lines


def _by_task(table: pa.Table, column: str) -> dict[str, list[Any]]:
    values: dict[str, list[Any]] = {}
    for task, value in set(zip(table["task"].to_pylist(), table[column].to_pylist(), strict=True)):
        if value is not None:  # a failed row may not have come to its data
            values.setdefault(str(task), []).append(value)
    return values


def _mixture(task: str, column: str, values: list[Any], reason: str) -> str:
    shown = ", ".join(map(str, values[:3])) + (f" and {len(values) - 3} more" if len(values) > 3 else "")
    text = "'" + str(values[0]).replace("'", "''") + "'"
    literal = text if isinstance(values[0], str) else values[0]
    return f"{task}: {len(values)} values of {column} in one table ({shown}); {reason}. Keep one: {column} = {literal}."


def _type(name: str, holds_text: bool) -> pa.DataType:
    members = set(get_args(_HINTS.get(name, NoneType)) or (_HINTS.get(name),)) - {NoneType}
    for kind in (int, float):
        if kind in members:
            return _TYPES[kind]
    return pa.string() if holds_text or name in _FIXED else pa.float64()


def _finite(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_floating(column.type):
        return column
    return compute.if_else(compute.is_finite(column), column, pa.nulls(len(column), column.type))


def _clean(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()  # a file name in an error may not be Unicode
    return value
