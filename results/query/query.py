"""Query a table: filter, order, columns, limit."""

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from results.records.table import check_columns
from search_spaces.support.errors import UserError


def query(
    table: pa.Table,
    *,
    where: str | None = None,
    order_by: Sequence[str] = (),
    columns: Sequence[str] = (),
    limit: int | None = None,
) -> pa.Table:
    """Filter, sort and cut a table; by default, return it unchanged.

    Args:
        table: A table from `results.records.table`.
        where: A condition such as "flops < 2e6 and topology like 'dca%'"; see `results.query.condition`.
        order_by: Columns; a trailing "desc" or leading "-" sorts from high to low. Nulls come last.
        columns: The columns to keep, in this order.
        limit: Maximum number of rows.

    Raises:
        UserError: An unknown column, or an invalid condition or limit.
    """
    check_columns(table.column_names, columns)
    order = [parse_order(text, table.column_names) for text in order_by]
    if limit is not None and limit < 0:
        message = f"limit must be at least 0, got {limit}."
        raise UserError("out-of-range", message, option="limit", value=limit, least=0)
    if where is not None:
        from results.query.condition import select  # importing DuckDB takes a tenth of a second

        table = select(table, where)
    if order:
        table = table.sort_by(order)
    table = table.slice(0, None if limit is None else min(limit, len(table)))
    return table.select(list(dict.fromkeys(columns))) if columns else table


def parse_order(text: str, column_names: Sequence[str]) -> tuple[str, Literal["ascending", "descending"]]:
    """Parse a column and its sort direction. Raises UserError if there is no such column."""
    name, _, direction = text.strip().rpartition(" ")
    if direction.lower() not in ("asc", "desc"):
        name, direction = text.strip(), "asc"
    if name.startswith("-") and name not in column_names:
        name, direction = name[1:], "desc"
    check_columns(column_names, [name.strip()])
    return name.strip(), "descending" if direction.lower() == "desc" else "ascending"
