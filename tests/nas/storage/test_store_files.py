"""The store's file: read where nothing can be written, refused where it is another's or empty, missed where it goes."""

import gc
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import optuna
import pytest
import sqlalchemy as sql
from optuna.trial import TrialState

import nas
from nas.storage.store import Store
from own_process import heed_modes, in_own_process
from results.row import Row
from search_spaces.errors import UserError
from toy_searches import Search, found


def ask(*words: str, cwd: Path) -> CompletedProcess[str]:
    """Run `nas` as somebody for whom what is read-only is so."""
    return in_own_process("-q", *words, cwd=cwd, first=heed_modes if sys.platform == "linux" else None)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="a folder in which nobody can make a file")
def test_a_store_that_cannot_be_made_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.storage.locks.FileLock.acquire", lambda *_, **__: pytest.fail("it waits"))
    with pytest.raises(UserError, match=r"store /proc/x\.db cannot be used: "):
        Store("sqlite:////proc/x.db", make=True)


@pytest.fixture
def freeze() -> Iterator[Callable[[Path], None]]:
    """Make a folder and what is in it read-only, until the test ends."""
    frozen: list[tuple[Path, int]] = []

    def run(folder: Path) -> None:
        for path in (*folder.rglob("*"), folder):
            frozen.append((path, path.stat().st_mode))
            path.chmod(path.stat().st_mode & 0o555)

    yield run
    for path, mode in reversed(frozen):
        path.chmod(mode)


QUESTIONS = [
    ["results", "--study", "s", "--format", "csv"],
    ["front", "--study", "s", "--plot", "front.png"],
    ["list", "studies"],
    ["results", "--study", "s", "--format", "jsonl", "--output", "rows.jsonl"],
]


def test_a_read_only_store_in_a_read_only_folder_answers(
    asked: dict[str, Any], tmp_path: Path, freeze: Callable[[Path], None]
) -> None:
    made = [asked["task"], "--preset", "smoke", "--study", "s", "--trials", "3", "--storage", asked["storage"]]
    assert ask("search", *made, cwd=tmp_path).returncode == 0  # which ends: no log of it is left beside the file
    names, content = sorted((tmp_path / "store").rglob("*")), (tmp_path / "store" / "studies.db").read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    expected = [ask(*words, "--storage", asked["storage"], cwd=elsewhere) for words in QUESTIONS]
    assert sorted((tmp_path / "store").rglob("*")) == names
    freeze(tmp_path / "store")
    with pytest.raises(PermissionError) if os.getuid() else pytest.MonkeyPatch.context():
        (tmp_path / "store" / "new").touch()
        (tmp_path / "store" / "new").unlink()
    for words, wanted in zip(QUESTIONS, expected, strict=True):
        answer = ask(*words, "--storage", asked["storage"], cwd=elsewhere)
        assert (answer.returncode, answer.stderr) == (0, wanted.stderr), answer.stderr
        assert answer.stdout == wanted.stdout
    assert sorted((tmp_path / "store").rglob("*")) == names
    assert (tmp_path / "store" / "studies.db").read_bytes() == content


def test_a_search_in_a_read_only_folder_is_refused_in_a_line(
    search: Search, asked: dict[str, Any], tmp_path: Path, freeze: Callable[[Path], None]
) -> None:
    search(trials=1)
    freeze(tmp_path / "store")
    words = ["search", asked["task"], "--preset", "smoke", "--study", "s", "--storage", asked["storage"]]
    done = ask(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_stands_in_the_log_alone_is_read_from_a_read_only_folder(
    search: Search, asked: dict[str, Any], tmp_path: Path, freeze: Callable[[Path], None]
) -> None:
    search(trials=3)
    file, copy = tmp_path / "store" / "studies.db", tmp_path / "copy"
    copy.mkdir()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE nas_rows SET study = 'renamed'")
        connection.commit()
        for ending in ("", "-wal"):  # of a writer that has not closed it
            shutil.copy(f"{file}{ending}", copy)
    assert (copy / "studies.db-wal").stat().st_size
    freeze(copy)
    words = ["results", "--study", "renamed", "--format", "csv", "--storage", f"sqlite:///{copy}/studies.db"]
    answer = ask(*words, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("\n") == 4


def test_a_store_that_was_opened_to_ask_is_not_written_to(search: Search, asked: dict[str, Any]) -> None:
    search(trials=1)
    with pytest.raises(UserError, match=r"readonly|query_only"):
        Store(asked["storage"]).add(nas.load("s", storage=asked["storage"]).rows()[0], "s")


def test_a_study_that_plain_optuna_made_is_left_alone(search: Search, asked: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    mine = optuna.create_study(storage=asked["storage"], study_name="s", directions=["maximize", "minimize"])
    mine.add_trial(optuna.trial.create_trial(values=[0.5, 7.0], state=TrialState.COMPLETE))
    with pytest.raises(UserError, match=r"study 's' is another program's: .*another --study"):
        search()
    again = optuna.load_study(storage=asked["storage"], study_name="s")
    assert (len(again.trials), again.user_attrs) == (1, {})
    assert len(search(study="other", trials=2)) == 2


def test_a_study_that_plain_optuna_made_with_other_directions_is_left_alone(
    search: Search, asked: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "store").mkdir()
    optuna.create_study(storage=asked["storage"], study_name="s")
    with pytest.raises(UserError, match="is another program's"):
        search()


@pytest.mark.parametrize("door", ["search", "load"])
def test_an_emptied_store_is_refused_and_stays_empty(
    search: Search, asked: dict[str, Any], tmp_path: Path, door: str
) -> None:
    search(trials=1)
    file = tmp_path / "store" / "studies.db"
    os.truncate(file, 0)
    with pytest.raises(UserError, match=r"studies\.db is empty: what it held is gone\. Put a copy of it there"):
        search() if door == "search" else nas.load("s", storage=asked["storage"])
    assert file.stat().st_size == 0


@pytest.mark.parametrize("door", ["search", "evaluate"])
def test_a_file_holds_everything_itself_once_a_command_is_done(
    search: Search, asked: dict[str, Any], tmp_path: Path, door: str
) -> None:
    gc.disable()  # a copy of the file must not depend on when Python lets go of a connection
    try:
        if door == "search":
            search(trials=1)
        else:
            nas.evaluate(asked["task"], preset="smoke", storage=asked["storage"])
        assert not (tmp_path / "store" / "studies.db-wal").exists()
    finally:
        gc.enable()
    (tmp_path / "copy.db").write_bytes((tmp_path / "store" / "studies.db").read_bytes())
    assert len(nas.load(storage=f"sqlite:///{tmp_path}/copy.db").rows()) == 1


@pytest.mark.parametrize("content", [b"notes\n" * 200, b"SQLite format 3\0" + bytes(500)])
def test_a_file_that_is_no_database_is_refused_in_a_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"^store .*notes\.txt is a file of another kind\. Give another --storage"):
        nas.load("s", storage=f"sqlite:///{file}")
    assert file.read_bytes() == content


def test_a_store_is_a_database_from_its_first_moment_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    monkeypatch.setattr(sql.MetaData, "create_all", lambda *_: os.stat(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError):  # as one that is killed before it has made the tables
        Store(url, make=True)
    monkeypatch.undo()
    assert (tmp_path / "studies.db").stat().st_size > 0
    assert Store(url, make=True).studies() == []


def test_a_pipe_is_no_store(search: Search, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    os.mkfifo(tmp_path / "store" / "studies.db")
    with pytest.raises(UserError, match="a store must be a file"):
        search()


@pytest.mark.parametrize("mishap", ["deleted", "replaced", "emptied"])
def test_a_store_that_goes_in_mid_search_is_missed_at_the_next_row_and_nothing_is_lost(
    search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mishap: str, elsewhere: Callable[[str], str]
) -> None:
    whole = found(search(storage=elsewhere("whole")))
    file, add, told = tmp_path / "store" / "studies.db", Store.add, list[object]()

    def once(store: Store, *given: Any) -> Row:
        told.append(given)
        if len(told) == 4:
            if mishap == "replaced":
                shutil.copy(file, tmp_path / "copy.db")
                (tmp_path / "copy.db").replace(file)
            elif mishap == "emptied":
                os.truncate(file, 0)
            else:
                file.unlink()
        return add(store, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "add", once)
        with pytest.raises(UserError, match=r"studies\.db was deleted, emptied or replaced by another file"):
            search()
    assert len(told) == 4
    assert len(list((tmp_path / "store" / "unfinished").glob("*/row.json"))) == 1
    for path in (tmp_path / "store").glob("studies.db*"):
        path.unlink()
    assert found(search()) == whole
    assert not list((tmp_path / "store" / "unfinished").iterdir())
