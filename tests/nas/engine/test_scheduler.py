"""The loop of all evaluations: a known row is neither evaluated nor written again."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

import nas
from expect import raises
from nas.store import locks
from nas.store.store import Store
from toy_searches import TOYS


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    return {"task": f"{TOYS}:Toy", "preset": "smoke", "storage": f"sqlite:///{tmp_path}/studies.db"}


def lines(folder: Path) -> int:
    with sqlite3.connect(folder / "studies.db") as connection:
        return int(connection.execute("SELECT COUNT(*) FROM nas_rows").fetchone()[0])


def test_row_asked_for_twice_is_written_once(asked: dict[str, Any], tmp_path: Path) -> None:
    first = nas.evaluate(**asked)
    assert nas.evaluate(**asked) == first
    assert lines(tmp_path) == 1


def test_row_has_the_preset_that_was_asked_for(asked: dict[str, Any]) -> None:
    first = nas.evaluate(**asked)
    again = nas.evaluate(**{**asked, "preset": "proxy"})  # the toy's two are one recipe
    assert again == replace(first, preset="proxy")


def test_later_failure_does_not_hide_a_complete_row(asked: dict[str, Any], tmp_path: Path) -> None:
    row = nas.evaluate(**asked)
    store = Store(asked["storage"], make=True)
    store.add(replace(row, status="failed", error="no more luck", metrics={}, test={}), "evaluations")
    assert lines(tmp_path) == 2
    assert store.read(["evaluations"]).rows == (row,)


def test_store_being_made_by_another_process_is_waited_for_until_a_limit(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LOCK_TIMEOUT_S", 0.1)
    lock = f"{tmp_path}/studies.db.lock"
    with FileLock(lock), raises("in-use", path=lock):
        nas.evaluate(**asked)
    assert nas.evaluate(**asked).status == "complete"
