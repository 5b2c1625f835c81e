"""Output formats of results and pictures."""

from enum import StrEnum
from pathlib import Path

from search_spaces.support.errors import UserError

_PICTURES = (".png", ".pdf", ".svg")


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"


def format_for(output: Path | None, format: Format) -> Format:
    """Return the format that the file's suffix names if `format` is the default of the terminal, else `format`.

    Raises:
        UserError: The suffix and `format` contradict each other.
    """
    ending = output.suffix.lower().removeprefix(".") if output is not None else ""
    if ending not in (Format.CSV, Format.JSON, Format.JSONL, Format.PARQUET):
        return format
    if format not in (Format.TABLE, ending):
        message = f"--format {format.value} contradicts --output {output}. Leave --format out."
        raise UserError("conflict", message, option="--format", value=format.value, path=str(output))
    return Format(ending)


def check_figure_path(path: Path | None) -> None:
    """Raise UserError if the suffix names no picture format; callers check before a search starts."""
    if path is not None and path.suffix.lower() not in _PICTURES:
        message = f"a picture must end in {', '.join(_PICTURES)}, got {str(path)!r}."
        raise UserError("unsupported", message, path=str(path), choices=_PICTURES)


def check_html_path(path: Path) -> None:
    """Raise UserError if the suffix is not that of an HTML file."""
    if path.suffix.lower() not in (".html", ".htm"):
        message = f"a report must end in .html, got {str(path)!r}."
        raise UserError("unsupported", message, option="--output", path=str(path), choices=(".html", ".htm"))
