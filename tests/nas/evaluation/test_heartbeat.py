"""A training's progress, for other processes that wait for it."""

import os
import time
from pathlib import Path

import pytest

from nas.evaluation import heartbeat
from nas.evaluation.heartbeat import Heartbeat, has_recent_heartbeat, read_heartbeat


def test_progress_can_be_read_until_the_training_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.0)
    heartbeat_file = Heartbeat(str(tmp_path / "e"))
    assert read_heartbeat(str(tmp_path / "e")) is None
    heartbeat_file(3, 10)
    assert read_heartbeat(str(tmp_path / "e")) == (3, 10)
    assert read_heartbeat(str(tmp_path / "e"), max_steps=5) == (3, 5)
    heartbeat_file.forget()
    assert read_heartbeat(str(tmp_path / "e")) is None


def test_old_progress_is_not_current(tmp_path: Path) -> None:
    assert not has_recent_heartbeat(None)
    assert not has_recent_heartbeat(str(tmp_path))
    (tmp_path / heartbeat.FILE).write_text("3 10\n")
    assert has_recent_heartbeat(str(tmp_path))
    os.utime(tmp_path / heartbeat.FILE, (time.time() - 20, time.time() - 20))
    assert not has_recent_heartbeat(str(tmp_path))
    assert has_recent_heartbeat(str(tmp_path), within_s=30)


def test_short_training_writes_nothing(tmp_path: Path) -> None:
    heartbeat_file = Heartbeat(str(tmp_path / "e"))
    heartbeat_file(3, 10)
    heartbeat_file.forget()
    assert list(tmp_path.iterdir()) == []


def test_unwritable_or_broken_progress_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.0)
    (tmp_path / "file").write_text("x")
    Heartbeat(str(tmp_path / "file"))(3, 10)
    Heartbeat(None)(3, 10)
    assert read_heartbeat(None) is None
    (tmp_path / heartbeat.FILE).write_text("3 ")
    assert read_heartbeat(str(tmp_path)) is None
