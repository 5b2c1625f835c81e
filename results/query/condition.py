"""Conditions on columns, such as "flops < 2e6 and topology like 'dca%'".

A condition is a boolean SQL expression over the columns of one table. Its text never reaches DuckDB. It is split into
tokens; each must be a known column, value, operator or function; the query is rebuilt from them. DuckDB's own parser is
not safe for foreign text: 400 characters of nested WITH block it for hours, and it ignores interrupts.

The query runs in memory on a copy of the columns it names. Files, network and settings are locked. Length, nesting,
memory and time are bounded.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from results.query.sandbox import SECONDS, kind_of, reason_of, rows_in_memory, time_limit
from results.records.human_numbers import SIZES
from search_spaces.architecture.block_segments import normalize_topologies
from search_spaces.support.errors import Kind, Notice, UserError, nearest, unknown_name_error

MAX_LENGTH, MAX_NESTING = 4000, 20

KEYWORDS = ("and", "or", "not", "in", "like", "ilike", "between", "is", "null", "true", "false")
FUNCTIONS = (
    *("abs", "ceil", "exp", "floor", "greatest", "least", "ln", "log10", "log2", "pow", "round", "sqrt"),
    *("coalesce", "contains", "length", "lower", "regexp_matches", "starts_with", "upper"),
)

_EXAMPLE = """Example: "flops <= 50M and topology = 'resnet'\""""

_MAX_TEXTS = 1000
"""A column with more distinct texts gets no suggestions: its texts are unique to their rows."""

_NUMERIC = frozenset(("abs", "ceil", "exp", "floor", "ln", "log10", "log2", "pow", "round", "sqrt"))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "//", "%", "^", "**"))
_COMPARISONS = frozenset(("<", "<=", "=", ">=", ">", "<>", "!=", ","))

_MACRO = """CREATE MACRO defined(x) AS
    list_transform([x], lambda value: CASE WHEN isnan(value) THEN NULL ELSE value END)[1]"""
"""Map NaN to null, because DuckDB orders NaN above all numbers. The list evaluates x only once."""

_PIECE = re.compile(
    r"""(?P<space>\s+)
    | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+|[kKMGT](?!\w))?)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+")
    | (?P<word>[^\W\d]\w*)
    | (?P<comment>--|/\*)
    | (?P<symbol><=|>=|<>|!=|//|\*\*|[-+*/%^=<>(),])
    | (?P<other>.)""",
    re.VERBOSE,
)


def select(table: pa.Table, condition: str, seconds: float = SECONDS) -> pa.Table:
    """Return the rows of a table that meet a condition; rows where it is null do not.

    Undefined results are null: the logarithm or root of a negative number, 0 / 0, infinity minus infinity.

    If no row matches, a Notice names each text that its column never holds and the most similar one that it holds.

    Names of columns and functions are case-insensitive. Put names that are no identifiers in double quotes and text in
    single quotes. Numbers may be written 50k, 1.5M, 2G or 1T.

    Raises:
        UserError: The text is no condition or names an unknown column; it uses more than comparisons and simple
            functions, or compares incompatible types; or it takes longer than `seconds`.
    """
    expression, columns = _rewrite(condition, table.column_names)
    query = f"SELECT ({expression}) FROM rows"  # noqa: S608  # built from known tokens
    try:
        with rows_in_memory(table.select(columns or table.column_names[:1])) as connection:
            connection.execute(_MACRO)
            with time_limit(connection, seconds):
                rows = table.filter(_mask(connection, query, condition))
    except duckdb.InterruptException as error:
        raise _refusal("too-large", condition, f"it took longer than {seconds:g} s", most=seconds) from error
    except duckdb.Error as error:
        reason = f"{reason_of(error)}. {_EXAMPLE}"
        raise _refusal(kind_of(error), condition, reason, cause=type(error).__name__) from error
    if not len(rows):
        for notice in _suggestions(condition, table.select(columns)):
            warnings.warn(notice, stacklevel=2)
    return rows


def columns_in(condition: str, column_names: Sequence[str]) -> list[str]:
    """Return the columns that a condition reads. Raises UserError if the condition is invalid."""
    return _rewrite(condition, column_names)[1]


def _rewrite(condition: str, column_names: Sequence[str]) -> tuple[str, list[str]]:
    """Return the condition as safe SQL, and the columns it reads."""
    if not condition.strip():
        raise _refusal("missing-value", condition, "it is empty")
    if len(condition) > MAX_LENGTH:
        reason = f"it has {len(condition)} characters; the limit is {MAX_LENGTH}"
        raise _refusal("too-large", condition, reason, most=MAX_LENGTH)
    pieces = list(_pieces(condition))
    sql: list[str] = []
    columns: dict[str, None] = {}
    nesting = 0
    for (kind, piece), (_, after) in zip(pieces, [*pieces[1:], ("", "")], strict=True):
        nesting += (piece == "(") - (piece == ")")
        if not 0 <= nesting <= MAX_NESTING:
            reason = f"its brackets do not match or nest deeper than {MAX_NESTING}"
            raise _refusal("bad-syntax", condition, reason, part="brackets")
        if kind == "number":
            sql.append(_number(piece))
        elif kind == "word" and after == "(" and piece.lower() not in KEYWORDS:
            sql.append(_function(piece))
        elif kind == "quoted" or (kind == "word" and piece.lower() not in KEYWORDS):
            column = _column(piece if kind == "word" else piece[1:-1].replace('""', '"'), column_names)
            columns[column] = None
            if after == "(":
                raise _refusal("wrong-type", condition, f"column {column!r} is not a function", column=column)
            sql.append('"' + column.replace('"', '""') + '"')
        else:
            sql.append(piece)
    if nesting:
        raise _refusal("bad-syntax", condition, "its brackets do not match", part="brackets")
    return " ".join(_guard(sql)), list(columns)  # spaces keep tokens apart


def _suggestions(condition: str, table: pa.Table) -> list[Notice]:
    """Suggest a similar text for each equality that no row meets."""
    notices = []
    for column, text in _equalities(condition, table.column_names):
        texts = table[column].unique().drop_null().to_pylist() if pa.types.is_string(table[column].type) else []
        near = _nearest(column, text, sorted(texts)) if text not in texts and len(texts) <= _MAX_TEXTS else None
        if near is not None:
            message = f"no row has {column} = {text!r}. Did you mean {near!r}?"
            notices.append(Notice("unknown-name", message, option=column, value=text, nearest=near))
    return notices


def _nearest(column: str, text: str, texts: Sequence[str]) -> str | None:
    """Return the text of a column that is meant: "hyper(streams=4)" for the topology "hyper", else the most similar."""
    canonical = text
    if column == "topology":
        with suppress(UserError):
            canonical = normalize_topologies(text)
    return canonical if canonical in texts else nearest(text, texts)


def _equalities(condition: str, column_names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (column, text) for each text compared by `=` or listed in `in`."""
    column, is_open = "", False
    pieces = list(_pieces(condition))
    for (kind, piece), (_, before) in zip(pieces, [("", ""), *pieces], strict=False):
        if kind == "quoted" or (kind == "word" and piece.lower() not in KEYWORDS):
            column, is_open = piece.strip('"'), False
        elif kind == "text" and is_open and column.lower() in map(str.lower, column_names):
            yield _column(column, column_names), piece[1:-1].replace("''", "'")
        elif piece == "=" or (piece.lower() == "in" and before.lower() != "not"):
            is_open = True
        elif piece not in ("(", ","):
            is_open = False


def _guard(pieces: Sequence[str]) -> list[str]:
    """Wrap each computed number (between comparisons, commas, brackets or words) in `defined`."""
    sql: list[str] = []
    levels = [(0, False)]  # per open bracket: where the current value starts, and whether it is computed

    def end_value() -> None:
        start, worked_out = levels[-1]
        if worked_out:
            sql[start:] = ["defined(", *sql[start:], ")"]

    for piece in pieces:
        if piece == "(":
            sql.append(piece)
            levels.append((len(sql), False))
        elif piece == ")":
            end_value()
            levels.pop()
            sql.append(piece)
        elif piece in _COMPARISONS or piece.lower() in KEYWORDS:
            end_value()
            sql.append(piece)
            levels[-1] = (len(sql), False)
        else:
            sql.append(piece)
            start, worked_out = levels[-1]
            levels[-1] = (start, worked_out or piece in _ARITHMETIC or piece in _NUMERIC)
    end_value()
    return sql


def _pieces(condition: str) -> Iterator[tuple[str, str]]:
    for match in _PIECE.finditer(condition):
        kind, piece = str(match.lastgroup), match.group()
        if kind in ("comment", "other") or (kind != "space" and not "".join(piece.split()).isprintable()):
            fault = "an unclosed quote" if piece in "'\"" else f"{piece!r}"
            raise _refusal("bad-syntax", condition, f"{fault} is not allowed", part=piece)
        if kind != "space":
            yield kind, piece


def _number(text: str) -> str:
    """Write a number as SQL: 50k is 50000."""
    return f"{Decimal(text[:-1]) * SIZES[text[-1]]:f}" if text[-1] in SIZES else text


def _function(name: str) -> str:
    if name.lower() not in FUNCTIONS:
        error = unknown_name_error("function", name, FUNCTIONS)
        raise UserError(error.kind, f"{error} Allowed functions: {', '.join(FUNCTIONS)}.", **error.fields)
    return name.lower()


def _column(name: str, column_names: Sequence[str]) -> str:
    matches = [column for column in column_names if column.lower() == name.lower()]
    if not matches:
        error = unknown_name_error("column", name, column_names)
        raise UserError(error.kind, f"{error} Put text in single quotes.", **error.fields)
    if len(matches) > 1:
        message = f"column {name!r} is ambiguous: it may be {' or '.join(matches)}, and conditions ignore case."
        raise UserError("conflict", message, option="column", value=name, choices=tuple(matches))
    return matches[0]


def _mask(connection: duckdb.DuckDBPyConnection, query: str, condition: str) -> pa.ChunkedArray:
    answer = connection.sql(query)
    if answer.types != ["BOOLEAN"]:
        reason = f"it must be true or false, got {answer.types[0]}. {_EXAMPLE}"
        raise _refusal("wrong-type", condition, reason, type=str(answer.types[0]))
    return answer.to_arrow_table().column(0)


def _refusal(kind: Kind, condition: str, reason: str, **fields: Any) -> UserError:
    excerpt = condition if len(condition) <= 100 else f"{condition[:100]}..."
    message = f"cannot evaluate condition {excerpt!r}: {reason}."
    return UserError(kind, message, option="--where", value=condition, **fields)
