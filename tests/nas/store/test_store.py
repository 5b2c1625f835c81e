"""A store has one row for each trial, whoever wrote it."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nas.store.store import Store
from results.records.row import Row
from toy_rows import a_row


@pytest.fixture
def row() -> Row:
    return a_row()


@pytest.fixture(params=["file", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    server: Any = request.getfixturevalue("postgres") if request.param == "server" else None
    store = Store(server.database() if server else f"sqlite:///{tmp_path}/other.db", make=True)
    yield store
    store.engine.dispose()


def test_first_row_of_a_trial_counts(store: Store, row: Row) -> None:
    later = replace(row, metrics={**row.metrics, "accuracy": 0.25})
    assert store.add(row, "s", 0) == row
    assert store.add(later, "s", 0) == row
    assert store.rows_by_number("s") == {0: row}
    assert store.read(["s"]).rows == (row,)
    assert store.add(later, "other", 0) == later, "of another study"


def test_failure_does_not_hide_a_complete_row(store: Store, row: Row) -> None:
    failure = replace(row, status="failed", error="its process died", metrics={}, test={})
    assert store.add(failure, "s", 0) == failure
    assert store.add(row, "s", 0) == row
    assert store.rows_by_number("s") == {0: failure}
    assert store.read(["s"]).rows == (row,), "of one evaluation the complete one counts"
    assert store.add(row, "s", 0) == failure, "it is there already"
    assert store.add(failure, "s", 0) == failure
    assert len(store.read(["s"]).rows) == 1


def test_rows_without_a_trial_may_repeat(store: Store, row: Row) -> None:
    for _ in range(2):
        store.add(row, "evaluations")
    assert store.read(["evaluations"]).rows == (row,)


def test_rows_are_found_by_trial_numbers(store: Store, row: Row) -> None:
    for number in range(3):
        store.add(row, "s", number)
    assert set(store.rows_by_number("s")) == {0, 1, 2}
    assert set(store.rows_by_number("s", [0, 2, 7])) == {0, 2}
    assert store.rows_by_number("s", []) == {}


def test_work_folder_stays_if_a_trial_can_resume(store: Store, row: Row) -> None:
    outcomes: Any = (("complete", False), ("over-budget", False), ("failed", True), ("pruned", True))
    for status, stays in outcomes:
        other = replace(row, status=status)
        folder = store.work_folder(other.identity())
        folder.mkdir(parents=True, exist_ok=True)
        store.remove_work_folder(other)
        assert folder.exists() == stays, status
        shutil.rmtree(folder, ignore_errors=True)
