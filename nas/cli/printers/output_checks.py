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
    """Raise UserError if a format or a file cannot be written. JSON Lines need rows."""
    check_figure_path(plot)
    is_for_terminal(format, output)
    if format is Format.JSONL and not has_rows:
        message = "--format jsonl writes rows, and this command has none. Give csv, json or parquet."
        raise UserError("unsupported", message, option="--format", value=format.value)
    for file in (plot, page, output, curves):
        if file is not None:
            check_folder(file)
            check_writable(file)


def check_seeds(seeds: int, *, curves: Path | None = None, plot: Path | None = None) -> None:
    """Raise UserError if a comparison trains nothing, and a file of its trainings is requested."""
    for flag, file in (("--curves", curves), ("--plot", plot)):
        if file is not None and seeds == 0:
            message = f"{flag} needs trained networks. Give --seeds 1 or more."
            raise UserError("missing-value", message, option="--seeds", value=0, needed_by=flag)
