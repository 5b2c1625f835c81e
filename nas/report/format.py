"""The forms that results are printed in."""

from enum import StrEnum
from pathlib import Path

from search_spaces.support.errors import UserError


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"


def format_for(output: Path | None, format: Format) -> Format:
    """The form that the name of a file ends in, where no other was asked for than that of a terminal.

    Raises:
        UserError: Its name ends in another form than was asked for.
    """
    ending = output.suffix.lower().removeprefix(".") if output is not None else ""
    if ending not in (Format.CSV, Format.JSON, Format.JSONL, Format.PARQUET):
        return format
    if format not in (Format.TABLE, ending):
        message = f"--format {format.value} and --output {output} are two forms. Leave --format out."
        raise UserError("conflict", message, option="--format", value=format.value, path=str(output))
    return Format(ending)
