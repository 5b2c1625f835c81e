import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from results.export import to_parquet
from results.row import Row
from results.table import from_records, from_rows, keep, mixtures, read
from search_spaces.errors import UserError

MakeRow = Callable[..., Row]


def test_a_row_comes_out_as_it_went_in(make_row: MakeRow) -> None:
    row = make_row(
        depth=7, topology="dca(k=2)", params=12, flops=2**53 + 1, validation={"accuracy": 0.1 + 0.2}, wall_s=3
    )
    assert from_rows([row]).to_pylist() == [row.columns()]


def test_rows_with_different_metrics_unite_their_columns(make_row: MakeRow) -> None:
    table = from_rows([make_row(validation={"accuracy": 0.5}), make_row(validation={"loss": 2}, test={"loss": 3.0})])
    assert table.column_names[-3:] == ["accuracy", "loss", "test_loss"]
    assert table.select(["accuracy", "loss", "test_loss"]).to_pylist() == [
        {"accuracy": 0.5, "loss": None, "test_loss": None},
        {"accuracy": None, "loss": 2.0, "test_loss": 3.0},
    ]


def test_the_columns_do_not_depend_on_the_order_of_rows(make_row: MakeRow) -> None:
    rows = [make_row(status="failed", error="out of memory", data=None), make_row(validation={"accuracy": 0.5})]
    assert from_rows(rows).schema == from_rows(rows[::-1]).schema


@pytest.mark.parametrize("status", ["complete", "pruned", "over-budget", "failed"])
def test_rows_of_every_status_are_kept(make_row: MakeRow, status: str) -> None:
    assert from_rows([make_row(status=status)])["status"].to_pylist() == [status]


def test_no_rows_make_a_table_with_the_columns_that_every_row_has(make_row: MakeRow) -> None:
    table = from_rows([])
    assert len(table) == 0
    assert table.column_names == list(make_row().columns())


def test_columns_have_the_types_of_their_fields_even_where_nothing_was_measured(make_row: MakeRow) -> None:
    schema = from_rows([make_row()]).schema
    assert schema.field("flops").type == pa.int64()
    assert schema.field("wall_s").type == pa.float64()
    assert schema.field("error").type == pa.string()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_null(make_row: MakeRow, value: float) -> None:
    assert from_rows([make_row(validation={"loss": value})])["loss"].to_pylist() == [None]


@pytest.mark.parametrize("text", ["", "é ∞", "two\nlines", "\0", '"', "2020-01-01", "x" * 3_000_000])
def test_any_text_survives(make_row: MakeRow, text: str) -> None:
    assert from_rows([make_row(error=text)])["error"].to_pylist() == [text]


def test_text_that_is_not_unicode_is_kept_as_far_as_it_goes(make_row: MakeRow) -> None:
    assert from_rows([make_row(error="no file \udcff")])["error"].to_pylist() == ["no file ?"]


def test_records_may_have_columns_of_text_that_rows_do_not_have() -> None:
    assert from_records([{"uncounted": "a b", "x": 1}]).to_pylist() == [{"uncounted": "a b", "x": 1.0}]


def test_a_value_that_does_not_fit_its_column_is_refused() -> None:
    with pytest.raises(ValueError, match="depth"):
        from_records([{"depth": "two"}])


def test_a_parquet_file_gives_back_its_table(make_row: MakeRow, tmp_path: Path) -> None:
    table = from_rows([make_row(validation={"accuracy": 0.5}), make_row(status="failed", error="é")])
    (tmp_path / "rows.parquet").write_bytes(to_parquet(table))
    assert read(tmp_path / "rows.parquet").equals(table)


def test_numbers_of_a_parquet_file_that_are_not_finite_become_null(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"loss": [1.0, float("nan"), float("inf"), None]}), tmp_path / "rows.parquet")
    assert read(tmp_path / "rows.parquet")["loss"].to_pylist() == [1.0, None, None, None]


def test_a_parquet_file_that_is_not_flat_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"curve": [[1.0]]}), tmp_path / "rows.parquet")
    with pytest.raises(UserError, match="curve"):
        read(tmp_path / "rows.parquet")


@pytest.mark.parametrize("content", [None, b"", b"PAR1 and then nothing PAR1", b"task,seed\n"])
def test_what_is_no_parquet_file_is_a_mistake_of_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "rows.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match="Parquet") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_mask_keeps_its_lines() -> None:
    numbers = np.arange(100)
    table = pa.table({"x": numbers})
    assert keep(table, numbers % 3 == 0)["x"].to_pylist() == list(range(0, 100, 3))


def test_rows_that_belong_together_are_no_mixture(make_row: MakeRow) -> None:
    rows = [make_row(depth=depth) for depth in (1, 2, 3)] + [make_row(task="other", task_version=2, preset="paper")]
    assert mixtures(from_rows([*rows, make_row(status="failed", data=None)])) == []


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("task_version", (1, 2)),
        ("preset", ("proxy", "paper")),
        ("seed", (0, 1)),
        ("data", ("d1", "d2")),
        ("counter", ("fvcore 0.1", "fvcore 0.2")),
    ],
)
def test_a_mixture_is_said_in_one_line_with_the_condition_that_parts_it(
    make_row: MakeRow, column: str, values: tuple[int | str, int | str]
) -> None:
    (line,) = mixtures(from_rows([make_row(**{column: value}) for value in values]))
    assert line.startswith("digits: 2 ")
    assert "\n" not in line
    assert all(str(value) in line for value in values)
    assert f"{column} = {min(values)!r}." in line


def test_a_mixture_of_many_values_shows_a_few(make_row: MakeRow) -> None:
    (line,) = mixtures(from_rows([make_row(seed=seed) for seed in range(50)]))
    assert "(0, 1, 2 and 47 more)" in line


def test_a_query_from_rows_to_csv_loads_neither_pandas_nor_torch() -> None:
    script = """
import sys
from results import export, query, table
from results.row import Row, Costs
from search_spaces.architecture import Architecture
rows = [
    Row(task="t", task_version=1, architecture=Architecture(depth=depth, width=4, hidden=4), seed=seed, preset="p",
        status="complete", validation={"accuracy": depth / 9}, costs=Costs(flops=depth))
    for depth in (1, 2, 3) for seed in (0, 1)
]
rows = table.from_rows(rows)
found = query.query(rows, where="flops < 3", objectives={"accuracy": "max", "flops": "min"}, order_by=["flops desc"])
assert len(found) == 4 and table.mixtures(found)
export.to_csv(found), export.to_json(found), export.to_parquet(found), table.from_rows([])
print(*(name for name in ("pandas", "torch") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
