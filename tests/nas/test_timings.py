"""What a search's time is said to have gone into."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.timings import Timings
from toy_rows import a_row


def seconds(lines: list[str]) -> dict[str, float]:
    found = [re.fullmatch(r"  (\S.*?) +([\d.]+) s +([\d.]+)%", line) for line in lines]
    return {one[1]: float(one[2]) for one in found if one}


def test_seconds_are_added_up_by_what_they_were_spent_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("nas.timings.time.perf_counter", lambda: now[0])
    timings = Timings()
    with timings.on("sleeping"):
        now[0] += 2
    with timings.on("sleeping", 2):
        now[0] += 3
    with suppress(ValueError), timings.on("failing"):
        now[0] += 5
        raise ValueError
    now[0] += 4
    timings.add(a_row(provenance={"wall_s": 3.0, "fit_s": 2.0}))
    timings.add(a_row(provenance={}))
    assert timings.lines() == [
        "14.0 s went into:",
        "  sleeping                            5.0 s  35.7%",
        "  failing                             5.0 s  35.7%",
        "  all else                            4.0 s  28.6%",
        "6.0 s of workers into:",
        "  training                            2.0 s  33.3%",
        "  counting, measuring, keeping        1.0 s  16.7%",
        "  unfinished, beginning, or idle      3.0 s  50.0%",
    ]


def test_a_search_says_where_its_time_went_where_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {"preset": "smoke", "settings": "epochs=3", "trials": 2, "workers": 1}
    asked["storage"] = f"sqlite:///{tmp_path}/s.db"
    study = nas.search("digits-vit", timings=True, **asked)
    said = capsys.readouterr().err.splitlines()
    found = seconds(said)
    whole = float(next(line for line in said if line.endswith("s went into:")).split()[0])
    parts = ("loading", "counting candidates", "preparing the data", "proposing", "evaluating", "storing", "all else")
    assert sum(found[part] for part in parts) == pytest.approx(whole, abs=0.4)
    assert 0 < found["training"] <= found["evaluating"]
    fits = [row.provenance["fit_s"] for row in study.rows()]
    assert sum(fits) == pytest.approx(found["training"], abs=0.06)
    assert all(0 < row.provenance["fit_s"] < row.provenance["wall_s"] for row in study.rows())
    nas.search("digits-vit", **{**asked, "trials": 3})
    assert "went into" not in capsys.readouterr().err
