"""Checks of output options, before any work."""

from pathlib import Path

from nas.report.format import Format, check_figure_path
from nas.report.tables import is_for_terminal
from search_spaces.support.errors import UserError
from search_spaces.support.files import check_folder, check_writable


def check_output(
    format: Format = Format.TABLE,
    output: Path | None = None,
    *,
    plot: Path | None = None,
    page: Path | None = None,
    curves: Path | None = None,
    has_rows: bool = True,
) -> None:
    """Raise UserError if a format or a file cannot be written. JSON Lines and curves need rows."""
    check_figure_path(plot)
    is_for_terminal(format, output)
    if format is Format.JSONL and not has_rows:
        message = "JSON Lines are of rows, and there are none. Give --format csv, json or parquet."
        raise UserError("unsupported", message, option="--format", value=format.value)
    for file in (plot, page, output, curves):
        if file is not None:
            check_folder(file)
            check_writable(file)
    if curves is not None and not has_rows:
        message = "--curves needs trained networks. Give --seeds."
        raise UserError("missing-value", message, option="--seeds", value=0, needed_by="--curves")
