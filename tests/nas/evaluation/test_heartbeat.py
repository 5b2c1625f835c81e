"""Progress of a training, told from its process to whoever waits for it."""

import os
import time
from pathlib import Path

import pytest

from nas.evaluation import heartbeat
from nas.evaluation.heartbeat import ToldSteps, steps_of, tells_steps


def test_progress_is_read_until_the_training_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.0)
    told = ToldSteps(str(tmp_path / "e"))
    assert steps_of(str(tmp_path / "e")) is None
    told(3, 10)
    assert steps_of(str(tmp_path / "e")) == (3, 10)
    assert steps_of(str(tmp_path / "e"), until=5) == (3, 5)
    told.forget()
    assert steps_of(str(tmp_path / "e")) is None


def test_old_progress_is_not_current(tmp_path: Path) -> None:
    assert not tells_steps(None)
    assert not tells_steps(str(tmp_path))
    (tmp_path / heartbeat.FILE).write_text("3 10\n")
    assert tells_steps(str(tmp_path))
    os.utime(tmp_path / heartbeat.FILE, (time.time() - 20, time.time() - 20))
    assert not tells_steps(str(tmp_path))
    assert tells_steps(str(tmp_path), within_s=30)


def test_short_training_writes_nothing(tmp_path: Path) -> None:
    told = ToldSteps(str(tmp_path / "e"))
    told(3, 10)
    told.forget()
    assert list(tmp_path.iterdir()) == []


def test_unwritable_or_broken_progress_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.0)
    (tmp_path / "file").write_text("x")
    ToldSteps(str(tmp_path / "file"))(3, 10)
    ToldSteps(None)(3, 10)
    assert steps_of(None) is None
    (tmp_path / heartbeat.FILE).write_text("3 ")
    assert steps_of(str(tmp_path)) is None
