"""What this project measured: every file is a lossless export, and says what its README says of it."""

import gzip
import json
import re
from pathlib import Path

import pytest

from results import lines
from results.columns import FIXED
from results.identity import settings
from results.mixtures import mixtures
from results.pareto import front
from results.row import PREFIXES, is_reserved
from results.table import curves, from_rows

TABLES = Path(__file__).parents[2] / "results" / "tables"
README = (TABLES / "README.md").read_text()
FILES = sorted(TABLES.glob("*.jsonl*"))

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)


def texts(path: Path) -> list[str]:
    written = path.read_bytes()
    return (gzip.decompress(written) if path.suffix == ".gz" else written).decode().splitlines()


def test_every_file_is_explained_and_there_is_no_other() -> None:
    assert sorted(set(re.findall(r"\| `([\w.-]+)` \|", README))) == [path.name for path in FILES]
    assert sorted(TABLES.iterdir()) == sorted([*FILES, TABLES / "README.md", TABLES / "figures", TABLES / "published"])


@each_file
def test_a_file_that_is_read_and_written_has_the_same_bytes(path: Path, tmp_path: Path) -> None:
    rows, bad = lines.read(path)
    assert rows
    assert not bad
    lines.write(rows, tmp_path / path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@each_file
def test_its_table_has_the_documented_columns(path: Path) -> None:
    rows, _ = lines.read(path)
    table = from_rows(rows)
    assert len(table) == len(rows)
    assert table.column_names[: len(FIXED)] == list(FIXED)
    metrics = {name for metric in rows[0].directions for name in (metric, f"{metric}_se")}
    for name in table.column_names[len(FIXED) :]:
        assert name in metrics | {"env_steps"} or name.startswith((*PREFIXES, "pretraining_")), name
    assert not any(map(is_reserved, metrics))


@each_file
def test_rows_say_how_they_were_made(path: Path) -> None:
    rows, _ = lines.read(path)
    assert all(f"`{command}`" in README for command in {row.provenance["command"] for row in rows})
    for row in rows:
        versions = row.provenance["versions"]
        assert isinstance(versions, dict)
        assert f"Python {versions['python']} and torch {versions['torch']}" in " ".join(README.split())
        assert (row.preset, row.status, row.row_version) == ("proxy", "complete", 2)
        assert {"lr", "batch"} <= set(row.recipe)
        made_anew = path.stem.endswith(("tuned", "topologies")) or path.name.startswith("digit-ranks")
        assert row.provenance.get("upgraded_from") == (None if made_anew else 1)


@each_file
def test_every_training_stands_once_and_its_curve_goes_to_its_end(path: Path) -> None:
    rows, _ = lines.read(path)
    assert len({row.identity() for row in rows}) == len(rows)
    assert len({(row.architecture.key, row.seed) for row in rows}) == len(rows)
    for row in rows:
        steps = [point["step"] for point in row.points()]
        assert steps == sorted(set(steps))
        assert steps[-1] == row.steps
    assert len(curves(rows)) == sum(len(row.points()) for row in rows)


@each_file
def test_costs_are_as_they_are_defined(path: Path) -> None:
    for row in lines.read(path)[0]:
        costs = row.costs
        assert costs.params is not None
        assert costs.embedding_params is not None
        assert costs.flops is not None
        assert costs.non_embedding_params == costs.params - costs.embedding_params
        assert costs.macs is not None
        assert (2 * costs.macs, costs.train_flops) == (costs.flops, 3 * costs.flops)


def test_all_of_them_are_one_table_with_a_front_for_each_task() -> None:
    rows = [row for path in FILES for row in lines.read(path)[0]]
    table = from_rows(rows)
    assert len(table) == len(rows) == sum(len(texts(path)) for path in FILES)
    found = front(table, {"flops": "min"})
    assert set(found["task"].to_pylist()) == {row.task for row in rows}
    said = {line.partition(":")[2].split()[3] for line in mixtures(table)}
    assert said == {"seed", "preset", "data"}  # of stdlib-lm two recipes of one preset, lists of two lengths


def test_a_line_begins_with_its_task() -> None:
    for path in FILES:
        for line in texts(path):
            assert next(iter(json.loads(line))) == "task"


def test_a_training_that_stands_in_two_tables_is_one() -> None:
    """Of settings that came later what was recorded before has the values of before."""
    one, other = (lines.read(TABLES / f"goal-point-maze{more}.jsonl")[0] for more in ("", "-topologies"))
    residual = [row for row in other if row.architecture == one[0].architecture]
    assert {row.identity() for row in one} == {row.identity() for row in residual}
    assert [row.metrics for row in one] == [row.metrics for row in residual]
    assert {row.columns()["recipe_window"] for row in (*one, *residual)} == {0}
    assert {"window", "ema"} & settings({"lr": 0.1, "rounds": 2}).keys() == set()
