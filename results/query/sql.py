"""SQL queries on a table named `rows`: "SELECT topology, max(accuracy) FROM rows GROUP BY topology".

The dialect is DuckDB's, and the query sees only the table (`results.query.sandbox`). It may keep the machine busy, so
accept it only from the machine's user. For foreign text, use `results.query.condition`.
"""

import re
from typing import Any

import duckdb
import pyarrow as pa

from results.query.sandbox import SECONDS, kind_of, reason_of, rows_in_memory, time_limit
from results.records.table import finite
from search_spaces.support.errors import Kind, UserError

_EXAMPLE = 'Example: "SELECT topology, max(accuracy) FROM rows GROUP BY topology".'


def run_select(table: pa.Table, question: str, seconds: float = SECONDS) -> pa.Table:
    """Return the result of one SELECT as columns of integers, floats or text.

    Raises:
        UserError: The text is not one SELECT, is invalid, reads anything but the table, or takes too long.
    """
    try:
        with rows_in_memory(table) as connection, time_limit(connection, seconds):
            question.encode()  # DuckDB accepts only valid Unicode
            statements = connection.extract_statements(question)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise _refusal("bad-syntax", "it must be one SELECT statement", _EXAMPLE, needs="SELECT")
            selection = connection.sql(statements[0].query).to_arrow_table()
    except duckdb.InterruptException as error:
        remedy = "Query fewer rows, or join them by a column."
        raise _refusal("too-large", f"it took longer than {seconds:g} s", remedy, most=seconds) from error
    except duckdb.BinderException as error:
        near = re.findall('"([^"]+)"', str(error).partition("Candidate bindings: ")[2])
        if not near:
            remedy = "See `nas results --columns all --limit 1`."
            raise _refusal(kind_of(error), reason_of(error), remedy, cause=type(error).__name__) from error
        remedy = f"Did you mean {' or '.join(map(repr, near[:3]))}?"
        raise _refusal("unknown-name", reason_of(error), remedy, nearest=near[0], choices=tuple(near)) from error
    except (duckdb.Error, UnicodeEncodeError) as error:
        raise _refusal(kind_of(error), reason_of(error), _EXAMPLE, cause=type(error).__name__) from error
    twice = {name for name in selection.column_names if selection.column_names.count(name) > 1}
    if twice:
        raise _refusal("duplicate", f"several columns are named {min(twice)!r}; rename them with AS", value=min(twice))
    return pa.table({name: _plain(selection[name]) for name in selection.column_names})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Cast a column to integers, floats or text; other types become text."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        is_whole = pa.types.is_integer(kind) or kind.scale == 0
        try:
            return column.cast(pa.int64() if is_whole else pa.float64())
        except pa.ArrowInvalid:  # beyond 64 bits
            return column.cast(pa.float64(), safe=False)
    if pa.types.is_floating(kind):
        return finite(column.cast(pa.float64()))
    if pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    try:
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
    except (OverflowError, ValueError) as error:  # a date beyond Python's range
        reason = f"a value does not fit into a table: {error}. Convert it with CAST(... AS VARCHAR)"
        raise _refusal("out-of-range", reason, cause=type(error).__name__, type=str(kind)) from error


def _refusal(kind: Kind, reason: str, remedy: str = "", **fields: Any) -> UserError:
    return UserError(kind, f"cannot run the SQL: {reason}. {remedy}".rstrip(), option="--sql", **fields)
