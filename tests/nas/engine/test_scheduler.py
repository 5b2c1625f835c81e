"""Evaluations: a known row is neither evaluated nor written again."""

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
def arguments(tmp_path: Path) -> dict[str, Any]:
    return {"task": f"{TOYS}:Toy", "preset": "smoke", "storage": f"sqlite:///{tmp_path}/studies.db"}


def row_count(folder: Path) -> int:
    with sqlite3.connect(folder / "studies.db") as connection:
        return int(connection.execute("SELECT COUNT(*) FROM nas_rows").fetchone()[0])


def test_second_evaluation_writes_no_row(arguments: dict[str, Any], tmp_path: Path) -> None:
    first = nas.evaluate(**arguments)
    assert nas.evaluate(**arguments) == first
    assert row_count(tmp_path) == 1


def test_row_has_the_requested_preset(arguments: dict[str, Any]) -> None:
    first = nas.evaluate(**arguments)
    again = nas.evaluate(**{**arguments, "preset": "proxy"})  # both are the same recipe
    assert again == replace(first, preset="proxy")


def test_later_failure_does_not_hide_a_complete_row(arguments: dict[str, Any], tmp_path: Path) -> None:
    row = nas.evaluate(**arguments)
    store = Store(arguments["storage"], make=True)
    store.add(replace(row, status="failed", error="no more luck", metrics={}, test={}), "evaluations")
    assert row_count(tmp_path) == 2
    assert store.read(["evaluations"]).rows == (row,)


def test_wait_for_a_store_in_the_making_has_a_limit(
    arguments: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LOCK_TIMEOUT_S", 0.1)
    lock = f"{tmp_path}/studies.db.lock"
    with FileLock(lock), raises("in-use", path=lock):
        nas.evaluate(**arguments)
    assert nas.evaluate(**arguments).status == "complete"
