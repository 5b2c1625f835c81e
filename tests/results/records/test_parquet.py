"""Parquet files read columns on demand."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from expect import raises
from results.records.parquet import open_table, read

COLUMNS = {"a": [1, 2], "a.b": ["x", None], "loss": [0.5, float("nan")]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    parquet.write_table(pa.table(COLUMNS), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def test_columns_are_read_in_the_order_of_selection(path: Path) -> None:
    table = open_table(path)
    assert table.column_names == [*COLUMNS]
    assert table.select(["a"]).to_pydict() == {"a": [1, 2]}
    assert table.select(["loss", "a.b"]).to_pydict() == {"loss": [0.5, None], "a.b": ["x", None]}
    assert read(path).to_pydict() == {**COLUMNS, "loss": [0.5, None]}


def test_damage_in_another_column_does_not_matter(path: Path) -> None:
    whole = path.read_bytes()
    column = parquet.ParquetFile(path).metadata.row_group(0).column(2)
    begin, size = column.dictionary_page_offset or column.data_page_offset, column.total_compressed_size
    path.write_bytes(whole[:begin] + b"\xff" * size + whole[begin + size :])
    assert open_table(path).select(["a"]).to_pydict() == {"a": [1, 2]}
    with raises("bad-file", path=str(path)):
        open_table(path).select(["loss"])


def test_unreadable_files_and_columns_are_refused(path: Path) -> None:
    table = open_table(path)
    with raises("unknown-name", option="column", value="los"):
        table.select(["los"])
    path.write_bytes(b"PAR1")
    with raises("bad-file", path=str(path)):
        table.select(["a"])
    parquet.write_table(pa.table([[1], [2]], names=["x", "x"]), path)
    with raises("duplicate", option="column", value="x", path=str(path)):
        open_table(path)
