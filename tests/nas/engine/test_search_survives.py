"""Searches that are interrupted, killed or locked out, or whose trials fail, lose nothing that is finished."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import nas.engine.run
from expect import raises
from nas.store.locks import only_writer
from nas.store.search_config import SearchConfig
from nas.store.store import CONFIG, Store
from nas.workers.attempts import PROCESS_DIED
from nas.workers.pool import Workers, pool_of
from nas.workers.resources import Resources
from search_spaces.support.errors import UserError
from toy_searches import TOYS, Search, outcomes, rows


@pytest.fixture
def asked(asked: dict[str, Any]) -> dict[str, Any]:
    """A space that is counted quickly."""
    return {**asked, "axis": "topology=resnet,dca"}


@pytest.mark.parametrize("in_own_process", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_resumed_study_equals_uninterrupted_study(
    search: Search,
    asked: dict[str, Any],
    tmp_path: Path,
    elsewhere: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    in_own_process: bool,
) -> None:
    monkeypatch.setenv("TOYS_EVALUATED", "0")
    whole = search(trials=5)
    # The interrupted task is the same one by its settings: only what it does at its third evaluation differs.
    copy = tmp_path / "copy.py"
    copy.write_text(TOYS.read_text().replace("class Interrupted(Toy)", "class Toy_(Toy)"))
    halted = {"storage": elsewhere("halted"), "task": f"{copy}:Toy_"}
    apart: list[bool] = []

    def seen(*words: Any, **more: Any) -> Workers:
        apart.append(more["isolate"])
        return pool_of(*words, **{**more, "isolate": in_own_process and more["isolate"]})  # it takes seconds to start

    monkeypatch.setattr(nas.engine.run, "pool_of", seen)
    with pytest.raises(KeyboardInterrupt):
        search(**halted, trials=5)
    assert len(rows(asked, **halted)) == 2
    assert outcomes(search(**halted, trials=5)) == outcomes(whole)
    assert apart == [False, True], "what may have ended its process is gone on with in one of its own"


def test_failed_trial_is_a_row_with_its_reason(search: Search) -> None:
    few = {"space": "depth-heads", "arch": "depth=1,heads=1", "axis": ("depth=1,2,3,4,6", "heads=1")}
    study = search(task=f"{TOYS}:Stumbling", **few, budget="", trials=5)
    reasons = {row.architecture.depth: str(row.error) for row in study.rows()}
    assert reasons[1].startswith("RuntimeError: a layer broke (")
    assert "toy_tasks.py, line " in reasons[1]
    assert reasons[2].startswith("out-of-memory: OutOfMemoryError: CUDA out of memory")
    assert reasons[3].startswith("Diverged: loss is nan at step 7")
    assert all(token in reasons[6] for token in ("Diverged: ", "accuracy", "nan"))
    assert reasons[4] == "None"
    assert {row.status for row in study.rows()} == {"complete", "failed"}


def test_search_goes_on_when_its_first_trials_fail(search: Search) -> None:
    study = search(task=f"{TOYS}:Stumbling", arch="depth=1", space="head-dim", budget="", trials=3)
    assert {row.status for row in study.rows()} == {"failed"}


@pytest.mark.chaos
def test_dead_worker_fails_its_trial_only(search: Search) -> None:
    study = search(task=f"{TOYS}:Deadly", space="depth-heads", budget="params<=1k", trials=36, resources=Resources(2))
    assert len(study) > 5
    for row in study.rows():
        assert (row.status == "failed") == (row.architecture.depth == row.architecture.heads == 1)
        assert (row.status == "complete") == (row.error is None)
        assert row.status == "complete" or str(row.error).startswith(f"{PROCESS_DIED} (")


def killed(asked: dict[str, Any], folder: Path, program: str) -> None:
    """Run a search in a process that ends itself in the middle."""
    program = f"import os, optuna, nas, nas.store.store\n{program}\nnas.search(**{asked})"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 9, done.stderr


@pytest.mark.chaos
def test_killed_search_loses_no_finished_evaluation(
    search: Search, asked: dict[str, Any], tmp_path: Path, elsewhere: Callable[[str], str]
) -> None:
    whole = search()
    other = {"storage": elsewhere("killed")}
    dies = "    told.append(a)\n    if len(told) == 4: os._exit(9)\n    return add(*a)\n"
    program = f"add, told = nas.store.store.Store.add, []\ndef once(*a):\n{dies}nas.store.store.Store.add = once"
    killed({**asked, **other}, tmp_path, program)
    assert len(rows(asked, **other)) == 3
    assert len(list((tmp_path / "killed").glob("unfinished/*/row.json"))) == 1
    assert outcomes(search(**other)) == outcomes(whole)
    assert not list((tmp_path / "killed").glob("unfinished/*"))


@pytest.mark.chaos
def test_search_killed_while_proposing_resumes_unchanged(
    search: Search, asked: dict[str, Any], tmp_path: Path, elsewhere: Callable[[str], str]
) -> None:
    whole = search()
    other = {"storage": elsewhere("killed")}
    dies = "    calls.append(a)\n    if len(calls) == 4: os._exit(9)\n    record_params(*a)\n"
    program = (
        f"import nas.engine.plan\nrecord_params, calls = nas.engine.plan.record_params, []\ndef once(*a):\n{dies}"
        "nas.engine.plan.record_params = once"
    )
    killed({**asked, **other}, tmp_path, program)
    assert len(rows(asked, **other)) == 3
    assert outcomes(search(**other)) == outcomes(whole)


def test_second_coordinator_of_a_study_is_refused(search: Search, asked: dict[str, Any]) -> None:
    search(trials=1)
    with only_writer(asked["storage"], "s"), raises("in-use", option="--study", value="s"):
        search()


def test_locked_store_loses_nothing(
    search: Search, asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = outcomes(search(trials=1))
    monkeypatch.setattr("nas.store.database.LOCK_TIMEOUT_S", 0.2)
    monkeypatch.setattr("nas.store.optuna_study.LOCK_TIMEOUT_S", 0.2)
    with sqlite3.connect(tmp_path / "store" / "studies.db") as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with raises("unavailable", server=False, cause="OperationalError") as caught:
            search()
        assert "locked" in str(caught.value)  # as SQLite says
        connection.rollback()
    assert outcomes(nas.load("s", storage=asked["storage"])) == before
    assert len(search(trials=2)) == 2


def test_file_that_is_no_database_is_left_unchanged(search: Search, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "studies.db").write_text("precious, and not a database at all " * 40)
    with raises("bad-file", problem="format") as caught:
        search()
    assert caught.value.fields["storage"].endswith("studies.db")
    assert "precious" in (tmp_path / "store" / "studies.db").read_text()


def cut(content: bytes) -> bytes:
    return content[:5000]


def flipped_in_its_schema(content: bytes) -> bytes:
    """SQLite's own words of it are no text then."""
    return content.replace(b"CREATE TABLE nas_rows", b"CREATE T\xcdBLE nas_rows")


def test_damaged_store_is_left_unchanged(search: Search, asked: dict[str, Any], tmp_path: Path) -> None:
    search(trials=1)
    file = tmp_path / "store" / "studies.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # else all is in the log beside it
    whole = file.read_bytes()
    for damage in (cut, flipped_in_its_schema):
        file.write_bytes(damaged := damage(whole))
        for ask in (search, lambda: nas.load("s", storage=asked["storage"])):
            with raises("bad-file", problem="damaged") as caught:
                ask()
            assert caught.value.fields["storage"].endswith("studies.db")
            assert "malformed" in str(caught.value)
        assert file.read_bytes() == damaged


def test_study_without_rows_is_not_the_newest(
    search: Search, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    search(trials=1)

    def unavailable(*words: Any, **more: Any) -> Workers:
        raise UserError("unavailable", "no cluster answers.", cluster="somewhere")

    monkeypatch.setattr(nas.engine.run, "pool_of", unavailable)
    with raises("unavailable", cluster="somewhere"):
        search(study="later")
    assert nas.load(storage=asked["storage"]).name == "s"
    assert nas.load("later", storage=asked["storage"]).rows() == []


def test_decoding_error_of_a_task_is_no_damage_of_the_store(asked: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_text(
        "from toy_tasks import Toy\n"
        "class Latin(Toy):\n"
        "    def fingerprint(self, recipe):\n"
        "        return b'\\xe9'.decode('utf-8')\n"
    )
    with pytest.raises(UnicodeDecodeError):
        nas.evaluate(f"{tmp_path}/latin.py:Latin", preset="smoke", storage=asked["storage"])


def test_search_of_another_version_stays_a_search(search: Search, asked: dict[str, Any], tmp_path: Path) -> None:
    search(trials=1)
    with closing(sqlite3.connect(tmp_path / "store" / "studies.db")) as connection:
        query = "UPDATE study_user_attributes SET value_json = json_remove(value_json, '$.rungs') WHERE key = ?"
        assert connection.execute(query, (CONFIG,)).rowcount == 1
        connection.commit()
    assert Store(asked["storage"]).searches() == {"s": None}
    with raises("mismatch", option="--study", expected=tuple(field.name for field in fields(SearchConfig))):
        search(trials=2)
    with raises("mismatch", option="--study", value="s"):
        nas.evaluate(asked["task"], preset="smoke", seed=9, study="s", storage=asked["storage"])
    assert len(nas.load("s", storage=asked["storage"])) == 1
