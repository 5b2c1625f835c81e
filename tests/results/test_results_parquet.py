"""Parquet files: columns are known at once, and read as they are asked for."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from results.parquet import opened, read
from search_spaces.errors import UserError

COLUMNS = {"a": [1, 2], "a.b": ["x", None], "loss": [0.5, float("nan")]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    parquet.write_table(pa.table(COLUMNS), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def test_the_columns_that_are_selected_are_read_in_that_order(path: Path) -> None:
    table = opened(path)
    assert table.column_names == [*COLUMNS]
    assert table.select(["a"]).to_pydict() == {"a": [1, 2]}
    assert table.select(["loss", "a.b"]).to_pydict() == {"loss": [0.5, None], "a.b": ["x", None]}
    assert read(path).to_pydict() == {**COLUMNS, "loss": [0.5, None]}


def test_no_other_column_is_read(path: Path) -> None:
    whole = path.read_bytes()
    column = parquet.ParquetFile(path).metadata.row_group(0).column(2)
    begin, size = column.dictionary_page_offset or column.data_page_offset, column.total_compressed_size
    path.write_bytes(whole[:begin] + b"\xff" * size + whole[begin + size :])
    assert opened(path).select(["a"]).to_pydict() == {"a": [1, 2]}
    with pytest.raises(UserError, match="must be a Parquet file"):
        opened(path).select(["loss"])


def test_what_cannot_be_read_is_a_line(path: Path) -> None:
    table = opened(path)
    with pytest.raises(UserError, match="unknown column 'los'"):
        table.select(["los"])
    path.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="must be a Parquet file"):
        table.select(["a"])
    parquet.write_table(pa.table([[1], [2]], names=["x", "x"]), path)
    with pytest.raises(UserError, match="must have different names, got 'x' twice"):
        opened(path)
