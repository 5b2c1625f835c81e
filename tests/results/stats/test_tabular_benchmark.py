"""Tables as tabular benchmarks: recorded answers, and errors of other files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import nas
from expect import raises
from grouped import grouped
from results.records import jsonl
from results.records.row import Costs
from results.records.sources import table_paths
from results.stats.tabular_benchmark import TabularBenchmark, read_table
from toy_rows import LITTLE
from toy_tables import a_table, table_rows, training_row


def test_rows_are_found_by_architecture_and_seed() -> None:
    rows = table_rows()
    table = a_table(*rows)
    assert [table.evaluate(row.architecture, row.seed) for row in rows] == rows == list(table.rows)
    assert (len(table.architectures), len(table)) == (36, 108)
    assert table.architectures[:2] == (rows[0].architecture, rows[3].architecture)
    assert table.seeds(rows[0].architecture) == (0, 1, 2)
    assert table.costs(rows[5].architecture) == rows[5].costs
    assert dict(table.directions) == {"accuracy": "max", "loss": "min"}


def test_unknown_seed_and_architecture_are_refused() -> None:
    table = a_table(training_row(LITTLE, 3), training_row(LITTLE, 1))
    with raises("unknown-name", option="seed", value=0, choices=(1, 3), table="toys"):
        table.evaluate(LITTLE, 0)
    deeper = LITTLE.with_fields({"depth": 2})
    with raises("unknown-name", option="architecture", value=str(deeper), table="toys"):
        table.evaluate(deeper, 1)
    with raises("missing-rows", table="toys"):
        table.subset([])


def test_last_complete_row_counts_and_rows_without_costs_are_dropped() -> None:
    first, second = training_row(LITTLE, 0), replace(training_row(LITTLE, 0), status="failed", error="power cut")
    without_costs = replace(training_row(LITTLE.with_fields({"depth": 2}), 0), status="failed", costs=Costs())
    failure = replace(training_row(LITTLE, 1), status="failed", costs=Costs())  # its other seed has costs
    table = a_table(first, without_costs, second, failure)
    assert table.rows == (first, failure)
    newer = replace(first, metrics={**first.metrics, "accuracy": 0.123})
    assert a_table(first, newer, second).rows == (newer,)
    assert a_table(second, second).rows == (second,)
    assert table.costs(LITTLE) == first.costs
    with raises("missing-rows", table="toys"):
        a_table(without_costs)


def test_rows_that_are_not_comparable_are_no_table() -> None:
    differing: list[tuple[str, object, object, dict[str, Any]]] = [
        ("task", "remembered", "other", {"task": "other"}),
        ("task_version", 1, 2, {"task_version": 2}),
        ("data", "d1", None, {"data": None}),
        ("preset", "proxy", "smoke", {"preset": "smoke"}),
        ("start", None, "abc", {"start": "abc"}),
        ("recipe_lr", 0.01, 0.02, {"recipe": {"lr": 0.02, "betas": [0.9, 0.99]}}),
        ("recipe_clip", None, 1, {"recipe": {"lr": 0.01, "betas": [0.9, 0.99], "clip": 1}}),
        ("code", None, "c0de", {"provenance": {"code": "c0de"}}),
    ]
    with grouped() as case:
        for column, first, value, change in differing:
            with case(column), raises("mismatch", option=column, value=value, expected=first, table="toys"):
                a_table(training_row(LITTLE, 0), replace(training_row(LITTLE, 1), **change))


def test_table_is_read_from_plain_and_gzip_files(tmp_path: Path) -> None:
    rows = table_rows()
    for name in ("some.jsonl", "some.jsonl.gz"):
        jsonl.write(rows, tmp_path / name)
        table = nas.load_table(tmp_path / name)
        assert (table.name, list(table.rows)) == ("some", rows)
        assert table.fingerprint == a_table(*rows).fingerprint
    assert a_table(*rows[1:]).fingerprint != table.fingerprint


def test_files_that_are_no_table_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "bad.jsonl").open("w") as file:
        file.write(f"{training_row(LITTLE, 0).to_json()}\n{{}}\n")
    with raises("bad-file", path=str(tmp_path / "bad.jsonl"), line=2, cause="missing-value", option="task"):
        read_table(tmp_path / "bad.jsonl")
    (tmp_path / "none.jsonl").touch()
    with raises("missing-rows", table="none"):
        read_table(tmp_path / "none.jsonl")
    with raises("unknown-name", option="table", value="goal-point-mase", nearest="goal-point-maze"):
        read_table("goal-point-mase")
    with raises("missing-file", path=str(tmp_path / "missing.jsonl")):
        read_table(tmp_path / "missing.jsonl")


def test_shipped_tables_of_one_recipe_are_benchmarks() -> None:
    folder = Path(__file__).parents[3] / "results" / "tables"
    files = {file.name.partition(".jsonl")[0]: file for file in folder.iterdir() if ".jsonl" in file.name}
    assert table_paths() == dict(sorted(files.items()))
    for name, file in files.items():
        if name.endswith("-tuned"):
            with raises("mismatch", option="recipe_lr"):
                read_table(name)
        else:
            assert list(read_table(name).rows) == jsonl.read(file)[0]


def test_part_of_a_table_is_a_table() -> None:
    table = a_table()
    part = table.subset(table.architectures[3:5])
    assert part.architectures == table.architectures[3:5]
    assert isinstance(part, TabularBenchmark)
    assert part.rows == table.rows[9:15]
