"""A run that was interrupted goes on where it can."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from search_spaces.architecture import Architecture
from tasks.goal_rl import training
from tasks.goal_rl.recipe import smoke
from tasks.goal_rl.task import GoalTask
from tasks.load import load_task

pytest.importorskip("gymnasium_robotics")

TINY = Architecture(depth=1, width=8, hidden=8)


def ignore(step: int, metrics: Mapping[str, float]) -> None:
    pass


def task(name: str) -> GoalTask:
    found = load_task(name)
    assert isinstance(found, GoalTask)
    return found


class Interrupted(Exception):
    pass


def test_a_run_that_was_interrupted_ends_with_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = task("goal-point-maze")
    whole = one.fit(TINY, "smoke", 0, None, ignore)
    monkeypatch.setattr(training, "_CHECKPOINT_S", 0.0)
    monkeypatch.setattr(training, "_CHECKPOINT_SHARE", 1e9)
    seen: list[int] = []

    def stop(self: training.Run) -> None:
        if self.round == 2 and not seen:
            seen.append(self.round)
            raise Interrupted
        collect(self)

    collect = training.Run._collect
    monkeypatch.setattr(training.Run, "_collect", stop)
    with pytest.raises(Interrupted):
        one.fit(TINY, "smoke", 0, tmp_path, ignore)
    assert (tmp_path / "last.ckpt").exists()
    curve: list[int] = []
    resumed = one.fit(TINY, "smoke", 0, tmp_path, lambda step, metrics: curve.append(step))
    assert resumed == whole
    assert curve == [4]
    assert not list(tmp_path.iterdir())


def test_a_run_stopped_amid_episodes_goes_on_with_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = task("goal-point-maze")
    recipe = replace(smoke(), unroll=12, prefill=1, rounds=4, reports=1)
    monkeypatch.setattr(type(one), "presets", {**one.presets, "amid": recipe})
    monkeypatch.setattr(training, "_CHECKPOINT_S", 0.0)
    monkeypatch.setattr(training, "_CHECKPOINT_SHARE", 1e9)
    begun: list[list[int]] = []

    def stop(self: training.Run) -> None:
        if len(begun) == 2:
            begun.append([])
            raise Interrupted
        collect(self)
        begun.append(list(self.collector.episodes))

    collect = training.Run._collect
    monkeypatch.setattr(training.Run, "_collect", stop)
    with pytest.raises(Interrupted):
        one.fit(TINY, "amid", 0, tmp_path, ignore)
    fitted = one.fit(TINY, "amid", 0, tmp_path, ignore)
    assert begun == [[1, 1], [1, 1], [], [2, 2], [2, 2], [3, 3]]
    assert fitted.steps == 16
    assert fitted.validation["env_steps"] == 5 * 12 * 2


def test_a_checkpoint_of_another_run_or_a_broken_one_is_not_continued(tmp_path: Path) -> None:
    one = task("goal-point-maze")
    whole = one.fit(TINY, "smoke", 0, None, ignore)
    (tmp_path / "last.ckpt").write_bytes(b"no checkpoint")
    with pytest.warns(UserWarning, match="starts anew"):
        assert one.fit(TINY, "smoke", 0, tmp_path, ignore) == whole
    torch.save({"run": "another"}, tmp_path / "last.ckpt")
    assert one.fit(TINY, "smoke", 0, tmp_path, ignore) == whole
