"""A table as a tabular benchmark: what was recorded is what is answered, and what is no table is refused in a line."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import nas
from results import lines
from results.row import Costs, Row
from results.sources import shipped
from results.tabular import TabularBenchmark, read_table
from search_spaces.errors import UserError
from toy_rows import LITTLE
from toy_tables import a_table, recorded, trained


def test_every_row_is_found_by_its_architecture_and_seed() -> None:
    rows = recorded()
    table = a_table(*rows)
    assert [table.evaluate(row.architecture, row.seed) for row in rows] == rows == list(table.rows)
    assert (len(table.architectures), len(table)) == (36, 108)
    assert table.architectures[:2] == (rows[0].architecture, rows[3].architecture)
    assert table.seeds(rows[0].architecture) == (0, 1, 2)
    assert table.costs(rows[5].architecture) == rows[5].costs
    assert dict(table.directions) == {"accuracy": "max", "loss": "min"}


def test_what_was_not_recorded_is_said() -> None:
    table = a_table(trained(LITTLE, 3), trained(LITTLE, 1))
    with pytest.raises(UserError, match=r"no seed 0 of depth=1.* Choose from: 1, 3\.$"):
        table.evaluate(LITTLE, 0)
    with pytest.raises(UserError, match="'toys' has no architecture depth=2"):
        table.evaluate(LITTLE.changed({"depth": 2}), 1)
    with pytest.raises(UserError, match="'toys' has no row"):
        table.only([])


def test_a_training_that_stands_twice_is_the_last_complete_one_and_what_was_never_counted_is_left_out() -> None:
    first, second = trained(LITTLE, 0), replace(trained(LITTLE, 0), status="failed", error="power cut")
    uncounted = replace(trained(LITTLE.changed({"depth": 2}), 0), status="failed", costs=Costs())
    failed = replace(trained(LITTLE, 1), status="failed", costs=Costs())  # its other seed was counted
    table = a_table(first, uncounted, second, failed)
    assert table.rows == (first, failed)
    again = replace(first, metrics={**first.metrics, "accuracy": 0.123})
    assert a_table(first, again, second).rows == (again,)
    assert a_table(second, second).rows == (second,)
    assert table.costs(LITTLE) == first.costs
    with pytest.raises(UserError, match="counted"):
        a_table(uncounted)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"task": "other"}, "task, got 'remembered' and 'other'"),
        ({"task_version": 2}, "task_version, got 1 and 2"),
        ({"data": None}, "data, got 'd1' and None"),
        ({"preset": "smoke"}, "preset, got 'proxy' and 'smoke'"),
        ({"start": "abc"}, "start, got None and 'abc'"),
        ({"recipe": {"lr": 0.02, "betas": [0.9, 0.99]}}, "recipe_lr, got 0.01 and 0.02"),
        ({"recipe": {"lr": 0.01, "betas": [0.9, 0.99], "clip": 1}}, "recipe_clip, got None and 1"),
        ({"provenance": {"code": "c0de"}}, "code, got None and 'c0de'"),
    ],
)
def test_rows_that_cannot_be_held_against_each_other_are_no_table(change: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        a_table(trained(LITTLE, 0), replace(trained(LITTLE, 1), **change))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_file_is_a_table_packed_or_not(tmp_path: Path) -> None:
    rows = recorded()
    for name in ("some.jsonl", "some.jsonl.gz"):
        lines.write(rows, tmp_path / name)
        table = nas.load_table(tmp_path / name)
        assert (table.name, list(table.rows)) == ("some", rows)
        assert table.fingerprint == a_table(*rows).fingerprint
    assert a_table(*rows[1:]).fingerprint != table.fingerprint


def test_what_is_no_table_is_said_in_a_line(tmp_path: Path) -> None:
    with (tmp_path / "bad.jsonl").open("w") as file:
        file.write(f"{trained(LITTLE, 0).to_json()}\n{{}}\n")
    with pytest.raises(UserError, match="got line 2"):
        read_table(tmp_path / "bad.jsonl")
    (tmp_path / "none.jsonl").touch()
    with pytest.raises(UserError, match="no row"):
        read_table(tmp_path / "none.jsonl")
    with pytest.raises(UserError, match="Did you mean 'goal-point-maze'"):
        read_table("goal-point-mase")
    with pytest.raises(UserError, match="cannot be read"):
        read_table(tmp_path / "missing.jsonl")


def test_every_shipped_table_of_one_recipe_is_a_benchmark() -> None:
    folder = Path(__file__).parents[2] / "results" / "tables"
    files = {file.name.partition(".jsonl")[0]: file for file in folder.iterdir() if ".jsonl" in file.name}
    assert shipped() == dict(sorted(files.items()))
    for name, file in files.items():
        rows: list[Row] = lines.read(file)[0]
        if name.endswith("-tuned"):
            with pytest.raises(UserError, match="must agree in recipe_lr"):
                read_table(name)
        else:
            assert list(read_table(name).rows) == rows


def test_a_table_is_read_without_torch() -> None:
    program = "import nas, sys; nas.load_table('goal-point-maze'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_part_of_a_table_is_one() -> None:
    table = a_table()
    part = table.only(table.architectures[3:5])
    assert part.architectures == table.architectures[3:5]
    assert isinstance(part, TabularBenchmark)
    assert part.rows == table.rows[9:15]
