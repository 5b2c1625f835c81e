"""Progress lines while evaluations begin and end."""

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


def test_resumed_training_is_counted_once(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    row = nas.evaluate(f"{TOYS}:Toy", preset="smoke", storage=asked["storage"])
    held, other = replace(row, status="pruned"), replace(row, seed=1)
    capsys.readouterr()
    with EvaluationProgress("toy", ["accuracy"], ["ended before"], 3) as shown:
        for one in (held, other, row):
            shown.add(one)
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in said] == ["2/3", "3/3", "3/3"]
    assert ["pruned: " in line for line in said] == [True, False, False]


def test_known_rows_are_not_counted_as_work(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[tuple[str, int]] = []
    for name in ("reach", "reach_at_once"):
        monkeypatch.setattr(
            progress.Progress, name, lambda self, number, last, name=name: reached.append((name, number))
        )
    words = {"preset": "smoke", "seeds": 1, "resources": Resources(1), "storage": asked["storage"]}
    nas.compare(f"{TOYS}:Toy", topology=["resnet"], **words)
    nas.compare(f"{TOYS}:Toy", topology=["resnet", "rmt"], **words)
    assert reached == [("reach", 1), ("reach_at_once", 1), ("reach", 2)]


def test_verbose_prints_beginnings_and_ends(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    with log_level("DEBUG"):
        nas.evaluate(f"{TOYS}:Toy", preset="smoke", storage=asked["storage"], settings="penalty=0.02")
        begun, ended = capsys.readouterr().err.splitlines()
        nas.evaluate(f"{TOYS}:Toy", preset="smoke", storage=asked["storage"], settings="penalty=0.02")
        (known,) = capsys.readouterr().err.splitlines()
    assert "depth=4," in begun
    assert begun.endswith("seed=0 preset=smoke penalty=0.02")
    assert "complete" in ended
    assert "1 steps" in ended
    assert "depth=4," in known
    assert known != begun


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_steps_of_a_running_training_are_printed(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    seen, lines = tmp_path / "seen", []

    def touch(record: logging.LogRecord) -> bool:
        lines.append(line := record.getMessage())
        if re.fullmatch(r"0/2 lasting\b.*\bresnet depth=4 .*\bseed=0\D+\d+\D+10000\D.*", f"{line} "):
            seen.touch()
        return True

    monkeypatch.setattr(LOGGER, "filters", [touch])
    monkeypatch.setattr(progress, "_RARELY_S", 0.1)
    monkeypatch.setenv("SEEN", str(seen))
    words = {"preset": "smoke", "resources": Resources(workers), "storage": asked["storage"]}
    nas.compare(f"{TOYS}:Lasting", topology=["resnet", "rmt"], seeds=1, **words)
    assert seen.exists(), lines
    assert not list(Path(asked["storage"].removeprefix("sqlite:///")).parent.rglob(heartbeat.FILE))
