"""The text of a record's cell in a printed table, a page or a notebook."""

import math
from collections.abc import Mapping
from typing import Any

from results.records.columns import COUNT_COLUMNS, PROFILE_COLUMNS
from results.records.human_numbers import short


def cell_text(record: Mapping[str, Any], column: str) -> str:
    """Return the text of a record's cell; a metric includes its standard error."""
    value, error = record.get(column), record.get(f"{column}_se")
    for field, _, runs in (part.partition("=") for part in (record.get("blocks") or "").split(",")):
        if field == column:
            return runs
    if value is None:
        return "-"
    if isinstance(value, float) and isinstance(error, float):
        return f"{value:.{decimals(error)}f}±{error:.{decimals(error)}f}"
    if isinstance(value, float):
        return _probability(value) if column in ("p_best", "p_front") and 0 <= value <= 1 else f"{value:.4g}"
    if isinstance(value, int) and column in (*COUNT_COLUMNS, *PROFILE_COLUMNS):
        return short(value)
    if column == "data":
        return str(value)[:10]
    return str(value)


def _probability(value: float) -> str:
    """Return a probability with two digits; a small one is not printed as 0."""
    return "<0.01" if 0 < value < 0.01 else f"{value:.2f}"


def decimals(error: float) -> int:
    """Return the decimals that show a standard error: at least three, up to six for a small one."""
    return min(max(3, -math.floor(math.log10(error))), 6) if error > 0 else 3


def markdown_cell(text: str) -> str:
    """Return a text that stays one cell of a Markdown table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
