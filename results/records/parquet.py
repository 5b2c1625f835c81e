"""Parquet files whose columns are read only when selected, since a Row has about a hundred."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import pyarrow as pa

from results.records.human_numbers import check_size
from results.records.table import check_columns, finite
from search_spaces.support.errors import UserError, cause_fields
from search_spaces.support.files import check_regular_file, kind_of_read_error

if TYPE_CHECKING:
    from pyarrow import parquet

_TYPES = (pa.int64(), pa.float64(), pa.string(), pa.null())


@final
@dataclass(frozen=True)
class ParquetTable:
    """A table in a Parquet file; columns are read when they are selected."""

    path: Path
    schema: pa.Schema

    @property
    def column_names(self) -> list[str]:
        """All column names, in order."""
        return list(self.schema.names)

    def select(self, names: Sequence[str]) -> pa.Table:
        """Read some columns; numbers that are not finite become null.

        Raises:
            UserError: An unknown column, columns that are too large together, or a file that has changed.
        """
        from pyarrow import parquet

        check_columns(self.column_names, names)
        try:
            with parquet.ParquetFile(self.path) as file:  # parquet.read_table takes ten times as long to import
                check_size(self.path, _uncompressed_size(file, {*names}))
                table = file.read(list(names)).select(list(names))  # for column "a", `read` returns "a.b" too
        except (OSError, KeyError, pa.ArrowException) as error:
            raise _refusal(self.path, error) from error
        return pa.table(list(map(finite, table.columns)), schema=table.schema)


def open_table(path: Path) -> ParquetTable:
    """Open a Parquet file without reading its columns.

    Raises:
        UserError: There is no such file, or a column holds anything but integers, floats or text.
    """
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(check_regular_file(path)) as file:
            schema = file.schema_arrow
    except (OSError, pa.ArrowException) as error:
        raise _refusal(path, error) from error
    for field in schema:
        if schema.names.count(field.name) > 1:
            message = f"columns of {str(path)!r} must have different names, got {field.name!r} twice."
            raise UserError("duplicate", message, option="column", value=field.name, path=str(path))
        if field.type not in _TYPES:
            message = f"column {field.name!r} of {str(path)!r} must hold integers, floats or text, got {field.type}."
            raise UserError("wrong-type", message, option=field.name, type=str(field.type), path=str(path))
    return ParquetTable(path, schema)


def _uncompressed_size(file: "parquet.ParquetFile", names: set[str]) -> int:
    """Return the uncompressed size of some columns in bytes, as the file states it: repeated values count once."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    return sum(column_chunk.total_uncompressed_size for column_chunk in columns if column_chunk.path_in_schema in names)


def read(path: Path) -> pa.Table:
    """Read a whole Parquet file. Raises UserError as `open_table` and `ParquetTable.select` do."""
    table = open_table(path)
    return table.select(table.column_names)


def _refusal(path: Path, why: Exception) -> UserError:
    reason = str(why).partition("\n")[0].rstrip(".")
    message = f"{str(path)!r} must be a Parquet file as written by `export.write`: {reason}."
    return UserError(kind_of_read_error(why), message, **{**cause_fields(why), "path": str(path), "format": "Parquet"})
