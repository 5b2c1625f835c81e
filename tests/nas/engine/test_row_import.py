"""`nas import`: rows from files."""

import json
from pathlib import Path
from typing import Any

import pytest

import nas
from command_line import Command
from expect import raises
from grouped import grouped
from nas.engine.row_import import ImportCounts
from nas.store.store import Store
from results.records import jsonl
from results.records.costs import Costs
from results.records.row import Row
from toy_rows import a_row


def _file(folder: Path, rows: list[Row], name: str = "theirs.jsonl") -> Path:
    jsonl.write(rows, folder / name)
    return folder / name


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/mine.db"


def test_rows_are_imported_unchanged_and_once(tmp_path: Path, url: str) -> None:
    rows = [a_row(seed=seed) for seed in range(3)]
    file = _file(tmp_path, rows)
    assert nas.import_rows(file, storage=url) == ImportCounts("theirs", 3, 0)
    assert nas.load("theirs", storage=url).rows() == rows
    assert nas.import_rows([file, _file(tmp_path, [a_row(seed=3)], "more.jsonl.gz")], storage=url) == ImportCounts(
        "theirs", 1, 3
    )
    assert len(nas.load("theirs", storage=url).rows()) == 4


def test_imported_rows_do_not_replace_complete_ones(tmp_path: Path, url: str) -> None:
    first, second = a_row(metrics={"accuracy": 0.5}), a_row(metrics={"accuracy": 0.9})
    failure = a_row(status="failed", error="it broke", seed=1)
    assert first.identity() == second.identity()
    nas.import_rows(_file(tmp_path, [first, failure]), storage=url)
    assert nas.import_rows(_file(tmp_path, [second, a_row(seed=1)]), storage=url) == ImportCounts("theirs", 1, 1)
    rows = nas.load("theirs", storage=url).rows()
    assert rows[0] == first
    assert [row.status for row in rows] == ["complete", "complete"]


def test_imported_rows_are_not_trained_again(tmp_path: Path, url: str, search_args: dict[str, str]) -> None:
    first = nas.evaluate(search_args["task"], preset="smoke", storage=f"sqlite:///{tmp_path}/theirs.db")
    nas.import_rows(_file(tmp_path, [first]), storage=url)
    assert nas.evaluate(search_args["task"], preset="smoke", storage=url) == first


def test_a_file_with_bad_lines_changes_nothing(tmp_path: Path, url: str) -> None:
    file = _file(tmp_path, [a_row(), a_row(seed=1)])
    lines = file.read_text().splitlines()
    nas.import_rows(file, storage=url)
    unknown = json.dumps({**json.loads(lines[1]), "mood": "good", "seed": 9})
    file.write_text("\n".join([json.dumps({**json.loads(lines[0]), "seed": 8}), unknown, "__import__('os')"]))
    with raises("bad-file", path=str(file), cause="unknown-name", value="mood", lines=(2, 3), count=2) as error:
        nas.import_rows(file, storage=url)
    assert "mood" in str(error.value)
    assert "line" not in error.value.fields
    assert len(nas.load("theirs", storage=url).rows()) == 2


def test_error_names_three_of_many_bad_lines(tmp_path: Path, url: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text("no\n" * 7)
    with raises("bad-file", path=str(file), cause="bad-syntax", lines=(1, 2, 3), count=7) as error:
        nas.import_rows(file, storage=url)
    assert " 4 " in str(error.value)
    assert not (tmp_path / "mine.db").exists()


def test_rows_are_not_imported_into_a_search(tmp_path: Path, search_args: dict[str, str]) -> None:
    nas.search(**{**search_args, "trials": 1})
    with raises("mismatch", option="--study", value="s"):
        nas.import_rows(
            _file(tmp_path, [a_row()]),
            study=nas.load(storage=search_args["storage"]).name,
            storage=search_args["storage"],
        )


def test_the_command_prints_the_number_of_new_rows(command: Command, tmp_path: Path, url: str) -> None:
    file = _file(tmp_path, [a_row()])
    for numbers in (["1"], ["0", "1"]):
        result = command("import", str(file), "--storage", url)
        assert result.returncode == 0
        assert [word for word in result.stdout.split() if word.isdigit()] == numbers
        assert "theirs" in result.stdout


def test_rows_are_written_all_or_none(tmp_path: Path, url: str) -> None:
    store = Store(url, make=True)
    with pytest.raises((TypeError, ValueError)):
        store.add_all([a_row(), a_row(seed=2**70)], "s")
    assert store.studies() == []


def test_an_empty_or_missing_file_is_an_error(tmp_path: Path, url: str) -> None:
    for content in ("", "\n\n"):
        (tmp_path / "empty.jsonl").write_text(content)
        with raises("missing-rows", path=str(tmp_path / "empty.jsonl")):
            nas.import_rows(tmp_path / "empty.jsonl", storage=url)
    with raises("missing-file", path=str(tmp_path / "none.jsonl")):
        nas.import_rows(tmp_path / "none.jsonl", storage=url)


IMPOSSIBLE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"status": "great"},
        {"option": "status", "value": "great", "choices": ("complete", "pruned", "over-budget", "failed")},
    ),
    ({"directions": {"accuracy": "sideways"}}, {"option": "direction", "value": "sideways", "choices": ("max", "min")}),
    ({"costs": Costs(params=-5)}, {"option": "params", "value": -5, "least": 0}),
]
"""A change of a row, and the fields of the error."""


def test_impossible_rows_are_errors(tmp_path: Path, url: str) -> None:
    with grouped() as case:
        for change, fields in IMPOSSIBLE:
            bad = a_row(seed=1, **change)
            file = _file(tmp_path, [a_row(), bad])
            with case(str(change)), raises("bad-data", path=str(file), identity=bad.identity(), **fields):
                nas.import_rows(file, storage=url)
    assert not (tmp_path / "mine.db").exists()
