"""A search of an implicit space, from nas.search to the Rows."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import nas
from nas.report.tables import print_records
from nas.request.search_request import format_count
from nas.workers.resources import Resources


def test_search_of_an_implicit_space_counts_its_members_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments: dict[str, Any] = {
        "task": "digits-vit",
        "space": "per-block",
        "budget": "params<=36k",
        "preset": "smoke",
        "settings": "epochs=0,steps=3,reports=1",
        "resources": Resources(1),
        "study": "s",
    }
    first = nas.search(**arguments, trials=1)
    output = capsys.readouterr()
    size = f"{(6 * 4 * 7) ** 4 * 8**2:,}"  # four blocks in two groups
    (summary,) = [line for line in output.err.splitlines() if "per-block" in line]
    assert f" of 5.10e+10 ({size}) " in summary
    assert summary.endswith(" params<=36000")
    study = nas.search(**arguments, trials=3)
    rows = {row.identity(): row for row in study.rows()}
    assert [row.status for row in rows.values()] == ["complete"] * 3
    assert {row.identity() for row in first.rows()} < set(rows)
    assert all((row.costs.params or 0) <= 36_000 for row in rows.values())
    assert sum(bool(row.architecture.blocks) for row in rows.values()) == 2  # all but the base
    assert {row.architecture.depth for row in rows.values()} == {4}


def test_a_long_number_begins_with_its_magnitude() -> None:
    assert format_count(12_345) == "12345"
    assert format_count(10**30) == f"1.00e+30 ({10**30:,})"
    assert format_count(10**400).startswith("1.00e+400 (")


def test_a_table_shows_values_that_differ_between_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    record = {"key": "k", "heads": 8, "hidden": 64, "blocks": "heads=8/4"}
    print_records(Console(width=80), [record], ["key", "heads", "hidden"], "t")
    assert "8/4" in capsys.readouterr().out
