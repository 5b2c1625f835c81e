"""The shipped tables are lossless exports, made as their data card says."""

import gzip
from pathlib import Path

import pytest

from grouped import grouped
from results.query.mixtures import mixtures
from results.records import jsonl
from results.records.columns import PREFIXES, ROW_COLUMNS, is_reserved
from results.records.row import Row
from results.records.table import curves, from_rows
from results.stats.pareto import front

TABLES = Path(__file__).parents[3] / "results" / "tables"
README = (TABLES / "README.md").read_text()
FILES = sorted(TABLES.glob("*.jsonl*"))
Tables = dict[Path, list[Row]]


@pytest.fixture(scope="module")
def tables() -> dict[Path, list[Row]]:
    """The rows of every file, without bad lines."""
    read = {path: jsonl.read(path) for path in FILES}
    assert [str(bad_line) for _, bad in read.values() for bad_line in bad] == []
    return {path: rows for path, (rows, _) in read.items()}


def texts(path: Path) -> list[str]:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()


def test_folder_has_tables_and_their_descriptions_alone() -> None:
    others = [TABLES / name for name in ("README.md", "figures", "index.toml", "published")]
    assert sorted(TABLES.iterdir()) == sorted([*FILES, *others])


def test_rows_written_again_have_the_same_bytes(tables: Tables, tmp_path: Path) -> None:
    with grouped() as case:
        for path, rows in tables.items():
            with case(path.name):
                assert rows
                jsonl.write(rows, tmp_path / path.name)
                assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_tables_have_the_documented_columns(tables: Tables) -> None:
    with grouped() as case:
        for path, rows in tables.items():
            with case(path.name):
                table = from_rows(rows)
                assert len(table) == len(rows)
                assert table.column_names[: len(ROW_COLUMNS)] == list(ROW_COLUMNS)
                metrics = {name for metric in rows[0].directions for name in (metric, f"{metric}_se")}
                extra_columns = set(table.column_names[len(ROW_COLUMNS) :]) - metrics - {"env_steps"}
                assert {name for name in extra_columns if not name.startswith((*PREFIXES, "pretraining_"))} == set()
                assert not any(map(is_reserved, metrics))


def test_rows_record_how_they_were_made(tables: Tables) -> None:
    with grouped() as case:
        for path, rows in tables.items():
            with case(path.name):
                versions = {(v["python"], v["torch"]) for v in (row.provenance["versions"] for row in rows)}
                assert all(f"Python {python}" in README and torch in README for python, torch in versions)
                states = {(row.preset, row.status, row.row_version) for row in rows}
                assert states == {("proxy", "complete", 1)}
                assert all({"lr", "batch"} <= set(row.recipe) for row in rows)


def test_every_training_is_unique_and_its_curve_is_complete(tables: Tables) -> None:
    with grouped() as case:
        for path, rows in tables.items():
            with case(path.name):
                assert len({row.identity() for row in rows}) == len(rows)
                assert len({(row.architecture.key, row.seed) for row in rows}) == len(rows)
                points = [[point["step"] for point in row.points()] for row in rows]
                assert all(steps == sorted(set(steps)) for steps in points)
                assert [steps[-1] for steps in points] == [row.steps for row in rows]
                assert len(curves(rows)) == sum(map(len, points))


def test_costs_agree_with_their_definitions(tables: Tables) -> None:
    with grouped() as case:
        for path, rows in tables.items():
            with case(path.name):
                for costs in (row.costs for row in rows):
                    assert None not in (costs.params, costs.embedding_params, costs.flops, costs.macs)
                    assert costs.non_embedding_params == costs.params - costs.embedding_params
                    assert (2 * costs.macs, costs.train_flops) == (costs.flops, 3 * costs.flops)


def test_all_tables_together_have_a_front_for_each_task(tables: Tables) -> None:
    rows = [row for table_rows in tables.values() for row in table_rows]
    table = from_rows(rows)
    assert len(table) == len(rows) == sum(len(texts(path)) for path in FILES)
    best_rows = front(table, {"flops": "min"})
    assert set(best_rows["task"].to_pylist()) == {row.task for row in rows}
    fields = {line.partition(":")[2].split()[3] for line in mixtures(table)}
    assert fields == {"seed", "preset", "data"}  # two recipes of a stdlib-lm preset, and lists of two lengths


def test_lines_begin_with_their_task() -> None:
    assert [path.name for path in FILES for line in texts(path) if not line.startswith('{"task": ')] == []


def test_training_in_two_tables_has_one_identity(tables: Tables) -> None:
    first, second = (tables[TABLES / f"goal-point-maze{more}.jsonl"] for more in ("", "-topologies"))
    residual = [row for row in second if row.architecture == first[0].architecture]
    assert {row.identity() for row in first} == {row.identity() for row in residual}
    assert [row.metrics for row in first] == [row.metrics for row in residual]
