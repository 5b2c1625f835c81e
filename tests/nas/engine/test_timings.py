"""A search's report of where its time went."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.engine.timings import Timings
from nas.workers.resources import Resources
from toy_rows import a_row
from toy_searches import TOYS


def tables_in(lines: list[str]) -> list[tuple[float, dict[str, float]]]:
    """The total of each table, and the seconds of its rows by name; checks that shares add up to 100 %."""
    tables: list[tuple[float, dict[str, float]]] = []
    shares: list[float] = []
    for line in lines:
        if head := re.match(r"([\d.]+) s ", line):
            tables.append((float(head[1]), {}))
        elif row := re.fullmatch(r"  (\S.*?) +([\d.]+) s +([\d.]+)%", line):
            tables[-1][1][row[1]] = float(row[2])
            shares.append(float(row[3]))
    assert sum(shares) == pytest.approx(100 * len(tables), abs=0.5)
    return tables


def test_timings_add_up_seconds_by_activity(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("nas.engine.timings.time.perf_counter", lambda: now[0])
    timings = Timings()
    with timings.track("sleeping"):
        now[0] += 2
    with timings.track("sleeping", 2):
        now[0] += 3
    with suppress(ValueError), timings.track("failing"):
        now[0] += 5
        raise ValueError
    now[0] += 4
    timings.add(a_row(provenance={"wall_s": 3.0, "fit_s": 2.0}))
    timings.add(a_row(provenance={}))
    (clock, seconds), (workers, worker_seconds) = tables_in(timings.lines())
    assert (clock, [*seconds.values()]) == (14.0, [5.0, 5.0, 4.0])
    assert [*seconds][:2] == ["sleeping", "failing"]
    assert (workers, [*worker_seconds.values()]) == (6.0, [2.0, 1.0, 3.0])
    assert "35.7%" in timings.lines()[1]


def test_search_reports_its_timings_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOYS_FITTED", str(tmp_path / "fitted"))
    monkeypatch.setenv("TOYS_SECONDS", "0.1")
    arguments: dict[str, Any] = {
        "preset": "smoke",
        "trials": 2,
        "resources": Resources(1),
        "storage": f"sqlite:///{tmp_path}/s.db",
    }
    study = nas.search(f"{TOYS}:Counted", timings=True, **arguments)
    (clock, seconds), (_, worker_seconds) = tables_in(capsys.readouterr().err.splitlines())
    assert len(seconds) == 7
    assert {"loading", "proposing", "evaluating", "storing"} <= seconds.keys()
    assert sum(seconds.values()) == pytest.approx(clock, abs=0.4)
    assert 0 < worker_seconds["training"] <= seconds["evaluating"]
    fits = [row.provenance["fit_s"] for row in study.rows()]
    assert sum(fits) == pytest.approx(worker_seconds["training"], abs=0.06)
    assert all(0 < row.provenance["fit_s"] < row.provenance["wall_s"] for row in study.rows())
    nas.search(f"{TOYS}:Counted", **{**arguments, "trials": 3})
    assert not tables_in(capsys.readouterr().err.splitlines())
