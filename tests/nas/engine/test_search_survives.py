"""Searches lose no finished evaluation after interrupts, kills, locks and failures."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import nas
import nas.engine.run
from expect import raises
from nas.store.locks import only_writer
from nas.store.schema import CONFIG
from nas.store.search_config import SearchConfig
from nas.store.store import Store
from nas.workers.attempts import PROCESS_DIED
from nas.workers.pool import WorkerPool, make_pool
from nas.workers.resources import Resources
from search_spaces.support.errors import UserError
from toy_searches import TOYS, Search, outcomes, rows


@pytest.fixture
def search_args(search_args: dict[str, Any]) -> dict[str, Any]:
    """Arguments with a space that is counted quickly."""
    return {**search_args, "axis": "topology=resnet,dca"}


@pytest.mark.parametrize("in_own_process", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_resumed_study_equals_uninterrupted_study(
    search: Search,
    search_args: dict[str, Any],
    tmp_path: Path,
    store_url: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    in_own_process: bool,
) -> None:
    monkeypatch.setenv("TOYS_EVALUATED", "0")
    study = search(trials=5)
    # Both tasks have the same settings; one is interrupted at its third evaluation.
    copy = tmp_path / "copy.py"
    copy.write_text(TOYS.read_text().replace("class Interrupted(Toy)", "class Toy_(Toy)"))
    arguments = {"storage": store_url("halted"), "task": f"{copy}:Toy_"}
    isolation: list[bool] = []

    def make_recording_pool(*words: Any, **options: Any) -> WorkerPool:
        isolation.append(options["isolate"])
        # a process takes seconds to start
        return make_pool(*words, **{**options, "isolate": in_own_process and options["isolate"]})

    monkeypatch.setattr(nas.engine.run, "make_pool", make_recording_pool)
    with pytest.raises(KeyboardInterrupt):
        search(**arguments, trials=5)
    assert len(rows(search_args, **arguments)) == 2
    assert outcomes(search(**arguments, trials=5)) == outcomes(study)
    assert isolation == [False, True], "what may have ended its process is gone on with in one of its own"


def test_failed_trial_is_a_row_with_its_reason(search: Search) -> None:
    small = {"space": "depth-heads", "arch": "depth=1,heads=1", "axis": ("depth=1,2,3,4,6", "heads=1")}
    study = search(task=f"{TOYS}:Stumbling", **small, budget="", trials=5)
    reasons = {row.architecture.depth: str(row.error) for row in study.rows()}
    assert reasons[1].startswith("RuntimeError: a layer broke (")
    assert "toy_tasks.py, line " in reasons[1]
    assert reasons[2].startswith("out-of-memory: OutOfMemoryError: CUDA out of memory")
    assert reasons[3].startswith("Diverged: loss is nan at step 7")
    assert all(token in reasons[6] for token in ("Diverged: ", "accuracy", "nan"))
    assert reasons[4] == "None"
    assert {row.status for row in study.rows()} == {"complete", "failed"}


@pytest.mark.parametrize("workers", [1, 2])
def test_search_ends_after_three_failures_alike(search: Search, search_args: dict[str, Any], workers: int) -> None:
    arguments: dict[str, Any] = {"task": f"{TOYS}:Stumbling", "arch": "depth=1", "space": "head-dim", "budget": ""}
    arguments |= {"trials": 8, "study": "alike", "resources": Resources(workers)}
    with raises("failed", study="alike"):
        search(**arguments)

    def failures() -> int:
        rows = nas.load("alike", storage=search_args["storage"]).rows()
        assert {row.status for row in rows} == {"failed"}
        return len(rows)

    assert failures() == 3
    with raises(
        "failed", study="alike"
    ):  # the same call tries three others, since the cause may be outside of the code
        search(**arguments)
    assert failures() == 6


@pytest.mark.chaos
def test_dead_worker_fails_its_trial_only(search: Search) -> None:
    study = search(task=f"{TOYS}:Deadly", space="depth-heads", budget="params<=1k", trials=36, resources=Resources(2))
    assert len(study) > 5
    for row in study.rows():
        assert (row.status == "failed") == (row.architecture.depth == row.architecture.heads == 1)
        assert (row.status == "complete") == (row.error is None)
        assert row.status == "complete" or str(row.error).startswith(f"{PROCESS_DIED} (")


def run_and_die(search_args: dict[str, Any], folder: Path, program: str) -> None:
    """Run a search in a process that kills itself in the middle."""
    program = (
        f"import os, optuna, nas, nas.store.store\nfrom nas import Resources\n{program}\nnas.search(**{search_args})"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert result.returncode == 9, result.stderr


@pytest.mark.chaos
def test_search_loses_no_finished_evaluation_after_a_kill(
    search: Search, search_args: dict[str, Any], tmp_path: Path, store_url: Callable[[str], str]
) -> None:
    study = search()
    changes = {"storage": store_url("killed")}
    dies = "    told.append(a)\n    if len(told) == 4: os._exit(9)\n    return add(*a)\n"
    program = f"add, told = nas.store.store.Store.add, []\ndef once(*a):\n{dies}nas.store.store.Store.add = once"
    run_and_die({**search_args, **changes}, tmp_path, program)
    assert len(rows(search_args, **changes)) == 3
    assert len(list((tmp_path / "killed").glob("unfinished/*/row.json"))) == 1
    assert outcomes(search(**changes)) == outcomes(study)
    assert not list((tmp_path / "killed").glob("unfinished/*"))


@pytest.mark.chaos
def test_search_resumes_after_a_kill_while_proposing(
    search: Search, search_args: dict[str, Any], tmp_path: Path, store_url: Callable[[str], str]
) -> None:
    study = search()
    changes = {"storage": store_url("killed")}
    dies = "    calls.append(a)\n    if len(calls) == 4: os._exit(9)\n    record_params(*a)\n"
    program = (
        f"import nas.engine.plan\nrecord_params, calls = nas.engine.plan.record_params, []\ndef once(*a):\n{dies}"
        "nas.engine.plan.record_params = once"
    )
    run_and_die({**search_args, **changes}, tmp_path, program)
    assert len(rows(search_args, **changes)) == 3
    assert outcomes(search(**changes)) == outcomes(study)


def test_second_coordinator_of_a_study_is_an_error(search: Search, search_args: dict[str, Any]) -> None:
    search(trials=1)
    with only_writer(search_args["storage"], "s"), raises("in-use", option="--study", value="s"):
        search()


def test_locked_store_loses_nothing(
    search: Search, search_args: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = outcomes(search(trials=1))
    monkeypatch.setattr("nas.store.database.LOCK_TIMEOUT_S", 0.2)
    monkeypatch.setattr("nas.store.optuna_study.LOCK_TIMEOUT_S", 0.2)
    with sqlite3.connect(tmp_path / "store" / "studies.db") as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with raises("unavailable", server=False, cause="OperationalError") as error:
            search()
        assert "locked" in str(error.value)  # as SQLite says
        connection.rollback()
    assert outcomes(nas.load("s", storage=search_args["storage"])) == before
    assert len(search(trials=2)) == 2


def test_file_that_is_no_database_stays_as_it_is(search: Search, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "studies.db").write_text("precious, and not a database at all " * 40)
    with raises("bad-file", problem="format") as error:
        search()
    assert error.value.fields["storage"].endswith("studies.db")
    assert "precious" in (tmp_path / "store" / "studies.db").read_text()


def truncate(content: bytes) -> bytes:
    return content[:5000]


def flip_in_schema(content: bytes) -> bytes:
    """Flip a bit of the schema, so that SQLite's error message is not valid text."""
    return content.replace(b"CREATE TABLE nas_rows", b"CREATE T\xcdBLE nas_rows")


def test_damaged_store_stays_as_it_is(search: Search, search_args: dict[str, Any], tmp_path: Path) -> None:
    search(trials=1)
    file = tmp_path / "store" / "studies.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # else all rows are in the write-ahead log
    content = file.read_bytes()
    for damage in (truncate, flip_in_schema):
        file.write_bytes(broken_content := damage(content))
        for read_store in (search, lambda: nas.load("s", storage=search_args["storage"])):
            with raises("bad-file", problem="damaged") as error:
                read_store()
            assert error.value.fields["storage"].endswith("studies.db")
            assert "malformed" in str(error.value)
        assert file.read_bytes() == broken_content


def test_study_without_rows_is_not_the_newest(
    search: Search, search_args: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    search(trials=1)

    def unavailable(*words: Any, **options: Any) -> WorkerPool:
        raise UserError("unavailable", "no cluster answers.", cluster="somewhere")

    monkeypatch.setattr(nas.engine.run, "make_pool", unavailable)
    with raises("unavailable", cluster="somewhere"):
        search(study="later")
    assert nas.load(storage=search_args["storage"]).name == "s"
    assert nas.load("later", storage=search_args["storage"]).rows() == []


def test_decoding_error_of_a_task_is_not_taken_for_a_damaged_store(search_args: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_text(
        "from toy_tasks import Toy\n"
        "class Latin(Toy):\n"
        "    def fingerprint(self, recipe):\n"
        "        return b'\\xe9'.decode('utf-8')\n"
    )
    with pytest.raises(UnicodeDecodeError):
        nas.evaluate(f"{tmp_path}/latin.py:Latin", preset="smoke", storage=search_args["storage"])


def test_search_of_another_version_stays_a_search(search: Search, search_args: dict[str, Any], tmp_path: Path) -> None:
    search(trials=1)
    with closing(sqlite3.connect(tmp_path / "store" / "studies.db")) as connection:
        query = "UPDATE study_user_attributes SET value_json = json_remove(value_json, '$.rungs') WHERE key = ?"
        assert connection.execute(query, (CONFIG,)).rowcount == 1
        connection.commit()
    assert Store(search_args["storage"]).searches() == {"s": None}
    with raises("mismatch", option="--study", expected=tuple(field.name for field in fields(SearchConfig))):
        search(trials=2)
    with raises("mismatch", option="--study", value="s"):
        nas.evaluate(search_args["task"], preset="smoke", seed=9, study="s", storage=search_args["storage"])
    assert len(nas.load("s", storage=search_args["storage"])) == 1
