"""`nas import`: rows from elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import nas
from nas.cli import app
from nas.importing import Imported
from nas.storage.store import Store
from results import lines
from results.costs import Costs
from results.row import Row
from search_spaces.errors import UserError
from toy_rows import a_row

RUNNER = CliRunner()


def _file(folder: Path, rows: list[Row], name: str = "theirs.jsonl") -> Path:
    lines.write(rows, folder / name)
    return folder / name


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/mine.db"


def test_rows_are_as_they_were_and_come_once(tmp_path: Path, url: str) -> None:
    rows = [a_row(seed=seed) for seed in range(3)]
    file = _file(tmp_path, rows)
    assert nas.import_rows(file, storage=url) == Imported("theirs", 3, 0)
    assert nas.load("theirs", storage=url).rows() == rows
    assert nas.import_rows([file, _file(tmp_path, [a_row(seed=3)], "more.jsonl.gz")], storage=url) == Imported(
        "theirs", 1, 3
    )
    assert len(nas.load("theirs", storage=url).rows()) == 4


def test_what_another_has_measured_takes_no_place_of_what_was_measured_here(tmp_path: Path, url: str) -> None:
    mine, theirs = a_row(metrics={"accuracy": 0.5}), a_row(metrics={"accuracy": 0.9})
    failed = a_row(status="failed", error="it broke", seed=1)
    assert mine.identity() == theirs.identity()
    nas.import_rows(_file(tmp_path, [mine, failed]), storage=url)
    assert nas.import_rows(_file(tmp_path, [theirs, a_row(seed=1)]), storage=url) == Imported("theirs", 1, 1)
    found = nas.load("theirs", storage=url).rows()
    assert found[0] == mine
    assert [row.status for row in found] == ["complete", "complete"]


def test_what_was_imported_is_not_trained_again(tmp_path: Path, url: str, asked: dict[str, str]) -> None:
    first = nas.evaluate(asked["task"], preset="smoke", storage=f"sqlite:///{tmp_path}/theirs.db")
    nas.import_rows(_file(tmp_path, [first]), storage=url)
    assert nas.evaluate(asked["task"], preset="smoke", storage=url) == first


def test_a_file_with_a_bad_line_changes_nothing_and_names_it(tmp_path: Path, url: str) -> None:
    file = _file(tmp_path, [a_row(), a_row(seed=1)])
    whole = file.read_text().splitlines()
    nas.import_rows(file, storage=url)
    unknown = json.dumps({**json.loads(whole[1]), "mood": "good", "seed": 9})
    file.write_text("\n".join([json.dumps({**json.loads(whole[0]), "seed": 8}), unknown, "__import__('os')"]))
    with pytest.raises(UserError, match=r"line 2: .*mood.*; line 3: .* Nothing was imported"):
        nas.import_rows(file, storage=url)
    assert len(nas.load("theirs", storage=url).rows()) == 2


def test_many_bad_lines_are_counted(tmp_path: Path, url: str) -> None:
    (tmp_path / "bad.jsonl").write_text("no\n" * 7)
    with pytest.raises(UserError, match=r"line 3: .* and 4 more"):
        nas.import_rows(tmp_path / "bad.jsonl", storage=url)
    assert not (tmp_path / "mine.db").exists()


def test_rows_are_not_put_into_a_search(tmp_path: Path, asked: dict[str, str]) -> None:
    nas.search(**{**asked, "trials": 1})
    with pytest.raises(UserError, match="is a search, whose rows are its own"):
        nas.import_rows(
            _file(tmp_path, [a_row()]), study=nas.load(storage=asked["storage"]).name, storage=asked["storage"]
        )


def test_the_command_says_what_it_took(tmp_path: Path, url: str) -> None:
    file = _file(tmp_path, [a_row()])
    for expected in ("1 row is new in study theirs\n", "0 rows are new in study theirs; 1 it had\n"):
        said = RUNNER.invoke(app, ["import", str(file), "--storage", url])
        assert (said.exit_code, said.stdout) == (0, expected)


def test_rows_that_cannot_all_be_written_are_not_written(tmp_path: Path, url: str) -> None:
    store = Store(url, make=True)
    with pytest.raises((TypeError, ValueError)):
        store.add_all([a_row(), a_row(seed=2**70)], "s")
    assert store.studies() == []


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_refused(tmp_path: Path, url: str, content: str) -> None:
    (tmp_path / "empty.jsonl").write_text(content)
    with pytest.raises(UserError, match=r"no row in .*empty\.jsonl"):
        nas.import_rows(tmp_path / "empty.jsonl", storage=url)
    with pytest.raises(UserError, match="cannot be read"):
        nas.import_rows(tmp_path / "none.jsonl", storage=url)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"status": "great"}, "its status must be one of complete, pruned, over-budget, failed, got 'great'"),
        ({"directions": {"accuracy": "sideways"}}, "the direction of a metric must be max or min, got 'sideways'"),
        ({"costs": Costs(params=-5)}, "params must be at least 0, got -5"),
    ],
)
def test_what_no_evaluation_can_have_found_is_refused(
    tmp_path: Path, url: str, change: dict[str, Any], why: str
) -> None:
    file = _file(tmp_path, [a_row(), a_row(seed=1, **change)])
    with pytest.raises(
        UserError, match=f"training {a_row(seed=1, **change).identity()} of .* cannot be: {why}. Nothing was imported."
    ):
        nas.import_rows(file, storage=url)
    assert not (tmp_path / "mine.db").exists()
