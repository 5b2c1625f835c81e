"""Progress lines at the beginning and end of evaluations."""

import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nas
from command_line import log_level
from nas.engine.progress import EvaluationProgress
from nas.evaluation import heartbeat
from nas.workers.resources import Resources
from search_spaces.support import progress
from search_spaces.support.logger import LOGGER
from toy_searches import TOYS


def test_resumed_training_counts_once(search_args: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    row = nas.evaluate(f"{TOYS}:Toy", preset="smoke", storage=search_args["storage"])
    paused_row, other_row = replace(row, status="pruned"), replace(row, seed=1)
    capsys.readouterr()
    with EvaluationProgress("toy", ["accuracy"], ["ended before"], 3) as status:
        for next_row in (paused_row, other_row, row):
            status.add(next_row)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["2/3", "3/3", "3/3"]
    assert ["pruned: " in line for line in lines] == [True, False, False]


def test_known_rows_take_no_time_in_the_estimate(search_args: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int]] = []
    for name in ("set_done", "set_done_untimed"):
        monkeypatch.setattr(progress.Progress, name, lambda self, number, last, name=name: calls.append((name, number)))
    arguments = {"preset": "smoke", "seeds": 1, "resources": Resources(1), "storage": search_args["storage"]}
    nas.compare(f"{TOYS}:Toy", topology=["resnet"], **arguments)
    nas.compare(f"{TOYS}:Toy", topology=["resnet", "rmt"], **arguments)
    assert calls == [("set_done", 1), ("set_done_untimed", 1), ("set_done", 2)]


def test_verbose_prints_beginnings_and_ends(search_args: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    with log_level("DEBUG"):
        nas.evaluate(f"{TOYS}:Toy", preset="smoke", storage=search_args["storage"], settings="penalty=0.02")
        start, end = capsys.readouterr().err.splitlines()
        nas.evaluate(f"{TOYS}:Toy", preset="smoke", storage=search_args["storage"], settings="penalty=0.02")
        (repeat,) = capsys.readouterr().err.splitlines()
    assert "depth=4," in start
    assert start.endswith("seed=0 preset=smoke penalty=0.02")
    assert "complete" in end
    assert "1 steps" in end
    assert "depth=4," in repeat
    assert repeat != start


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_output_has_the_steps_of_a_running_training(
    search_args: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    marker, lines = tmp_path / "seen", []

    def touch(record: logging.LogRecord) -> bool:
        lines.append(line := record.getMessage())
        if re.fullmatch(r"0/2 lasting\b.*\bresnet depth=4 .*\bseed=0\D+\d+\D+10000\D.*", f"{line} "):
            marker.touch()
        return True

    monkeypatch.setattr(LOGGER, "filters", [touch])
    monkeypatch.setattr(progress, "_RARELY_S", 0.1)
    monkeypatch.setenv("SEEN", str(marker))
    arguments = {"preset": "smoke", "resources": Resources(workers), "storage": search_args["storage"]}
    nas.compare(f"{TOYS}:Lasting", topology=["resnet", "rmt"], seeds=1, **arguments)
    assert marker.exists(), lines
    assert not list(Path(search_args["storage"].removeprefix("sqlite:///")).parent.rglob(heartbeat.FILE))
