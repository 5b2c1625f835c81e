"""The store's file: read-only folders, foreign and empty files, and files that disappear."""

import gc
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
import sqlalchemy as sql
from optuna.trial import TrialState

import nas
from command_line import CommandResult, run_nas
from expect import raises
from nas.store.store import Store
from own_process import heed_modes, in_own_process
from results.records.row import Row
from toy_rows import a_row
from toy_searches import Search, outcomes


def ask(*words: str, cwd: Path) -> CommandResult:
    """Run `nas` as a user who respects read-only modes."""
    return in_own_process("-q", *words, cwd=cwd, first=heed_modes if sys.platform == "linux" else None)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="a folder in which nobody can make a file")
def test_impossible_store_fails_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.store.locks.FileLock.acquire", lambda *_, **__: pytest.fail("it waits"))
    with raises("unavailable", storage="/proc/x.db", server=False):
        Store("sqlite:////proc/x.db", make=True)


@pytest.fixture
def freeze() -> Iterator[Callable[[Path], None]]:
    """Make a folder and its content read-only until the test ends."""
    modes: list[tuple[Path, int]] = []

    def run(folder: Path) -> None:
        for path in (*folder.rglob("*"), folder):
            modes.append((path, path.stat().st_mode))
            path.chmod(path.stat().st_mode & 0o555)

    yield run
    for path, mode in reversed(modes):
        path.chmod(mode)


QUESTIONS = [
    ["results", "--study", "s", "--format", "csv"],
    ["front", "--study", "s", "--plot", "front.png"],
    ["list", "studies"],
    ["results", "--study", "s", "--format", "jsonl", "--output", "rows.jsonl"],
]


@pytest.mark.outside
def test_read_only_store_in_a_read_only_folder_answers(
    search: Search,
    search_args: dict[str, Any],
    tmp_path: Path,
    freeze: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    search(trials=3)
    names, content = sorted((tmp_path / "store").rglob("*")), (tmp_path / "store" / "studies.db").read_bytes()
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    expected = [run_nas(capsys, "-q", *words, "--storage", search_args["storage"]) for words in QUESTIONS]
    assert sorted((tmp_path / "store").rglob("*")) == names
    freeze(tmp_path / "store")
    with pytest.raises(PermissionError) if os.getuid() else pytest.MonkeyPatch.context():
        (tmp_path / "store" / "new").touch()
        (tmp_path / "store" / "new").unlink()
    for words, result in zip(QUESTIONS, expected, strict=True):
        answer = ask(*words, "--storage", search_args["storage"], cwd=folder)
        assert (answer.returncode, answer.stderr) == (0, result.stderr), answer.stderr
        assert answer.stdout == result.stdout
    assert sorted((tmp_path / "store").rglob("*")) == names
    assert (tmp_path / "store" / "studies.db").read_bytes() == content


@pytest.mark.outside
def test_search_in_a_read_only_folder_is_an_error(
    search: Search, search_args: dict[str, Any], tmp_path: Path, freeze: Callable[[Path], None]
) -> None:
    search(trials=1)
    freeze(tmp_path / "store")
    words = ["search", search_args["task"], "--preset", "smoke", "--study", "s", "--storage", search_args["storage"]]
    ask(*words, cwd=tmp_path).assert_error("unavailable", storage=str(tmp_path / "store" / "studies.db"), server=False)


def test_write_ahead_log_is_read_from_a_read_only_folder(
    search: Search, search_args: dict[str, Any], tmp_path: Path, freeze: Callable[[Path], None]
) -> None:
    search(trials=3)
    file, copy = tmp_path / "store" / "studies.db", tmp_path / "copy"
    copy.mkdir()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE nas_rows SET study = 'renamed'")
        connection.commit()
        for ending in ("", "-wal"):  # its writer has not closed it
            shutil.copy(f"{file}{ending}", copy)
    assert (copy / "studies.db-wal").stat().st_size
    freeze(copy)
    words = ["results", "--study", "renamed", "--format", "csv", "--storage", f"sqlite:///{copy}/studies.db"]
    answer = ask(*words, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("\n") == 4


def test_store_open_for_reading_takes_no_rows(search: Search, search_args: dict[str, Any]) -> None:
    search(trials=1)
    with raises("unavailable", server=False, cause="OperationalError") as error:
        Store(search_args["storage"]).add(nas.load("s", storage=search_args["storage"]).rows()[0], "s")
    assert "readonly" in str(error.value)  # as SQLite says


def test_study_of_plain_optuna_is_left_alone(search: Search, search_args: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    mine = optuna.create_study(storage=search_args["storage"], study_name="s", directions=["maximize", "minimize"])
    mine.add_trial(optuna.trial.create_trial(values=[0.5, 7.0], state=TrialState.COMPLETE))
    with raises("mismatch", option="--study", value="s"):
        search()
    again = optuna.load_study(storage=search_args["storage"], study_name="s")
    assert (len(again.trials), again.user_attrs) == (1, {})
    assert len(search(study="other", trials=1)) == 1


def test_study_of_plain_optuna_with_other_directions_is_left_alone(
    search: Search, search_args: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "store").mkdir()
    optuna.create_study(storage=search_args["storage"], study_name="s")
    with raises("mismatch", option="--study", value="s"):
        search()


def test_empty_store_is_an_error_and_stays_empty(search: Search, search_args: dict[str, Any], tmp_path: Path) -> None:
    search(trials=1)
    file = tmp_path / "store" / "studies.db"
    os.truncate(file, 0)
    with raises("bad-file", storage=str(file), problem="empty"):
        nas.load("s", storage=search_args["storage"])
    with raises("bad-file", storage=str(file), problem="empty"):
        search()
    assert file.stat().st_size == 0


@pytest.mark.parametrize("function", ["search", "evaluate"])
def test_no_log_is_left_beside_the_file_after_a_command(
    search: Search, search_args: dict[str, Any], tmp_path: Path, function: str
) -> None:
    gc.disable()  # a copy must not depend on when Python frees a connection
    try:
        if function == "search":
            search(trials=1)
        else:
            nas.evaluate(search_args["task"], preset="smoke", storage=search_args["storage"])
        assert not (tmp_path / "store" / "studies.db-wal").exists()
    finally:
        gc.enable()
    (tmp_path / "copy.db").write_bytes((tmp_path / "store" / "studies.db").read_bytes())
    assert len(nas.load(storage=f"sqlite:///{tmp_path}/copy.db").rows()) == 1


def test_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    for content in (b"notes\n" * 200, b"SQLite format 3\0" + bytes(500)):
        file.write_bytes(content)
        with raises("bad-file", storage=str(file), problem="format"):
            nas.load("s", storage=f"sqlite:///{file}")
        assert file.read_bytes() == content


def test_store_killed_before_its_tables_is_still_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    monkeypatch.setattr(sql.MetaData, "create_all", lambda *_, **__: os.stat(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError):  # as if it were killed before it made the tables
        Store(url, make=True)
    monkeypatch.undo()
    assert (tmp_path / "studies.db").stat().st_size > 0
    assert Store(url, make=True).studies() == []


def test_pipe_is_no_store(search: Search, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    os.mkfifo(tmp_path / "store" / "studies.db")
    with raises("bad-file", storage=str(tmp_path / "store" / "studies.db"), problem="type"):
        search()


def test_next_row_notices_a_missing_store(tmp_path: Path) -> None:
    for mishap in (Path.unlink, replace_by_copy, truncate):
        file = tmp_path / mishap.__name__
        store = Store(f"sqlite:///{file}", make=True)
        assert store.add(a_row(), "s") == a_row()
        mishap(file)
        with raises("mismatch", storage=str(file)):
            store.add(a_row(seed=1), "s")
        store.close()


def replace_by_copy(file: Path) -> None:
    shutil.copy(file, f"{file}.copy")
    Path(f"{file}.copy").replace(file)


def truncate(file: Path) -> None:
    os.truncate(file, 0)


def test_search_without_its_store_loses_no_row(
    search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_url: Callable[[str], str]
) -> None:
    expected = outcomes(search(storage=store_url("whole"), trials=3))
    file, add, calls = tmp_path / "store" / "studies.db", Store.add, list[object]()

    def add_once(store: Store, *arguments: Any) -> Row:
        calls.append(arguments)
        if len(calls) == 2:
            file.unlink()
        return add(store, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "add", add_once)
        with raises("mismatch", storage=str(file)):
            search(trials=3)
    assert len(calls) == 2
    assert len(list((tmp_path / "store" / "unfinished").glob("*/row.json"))) == 1
    for path in (tmp_path / "store").glob("studies.db*"):
        path.unlink()
    assert outcomes(search(trials=3)) == expected
    assert not list((tmp_path / "store" / "unfinished").iterdir())
