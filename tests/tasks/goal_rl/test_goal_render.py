"""An evaluation episode as a film."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from tasks.goal_rl.recipe import smoke
from tasks.goal_rl.task import GoalTask
from tasks.load import load_task

pytest.importorskip("gymnasium_robotics")

TINY = Architecture(depth=1, width=8, hidden=8)


def task(name: str) -> GoalTask:
    found = load_task(name)
    assert isinstance(found, GoalTask)
    return found


@pytest.mark.parametrize(
    ("file", "message"),
    [("film.avi", ".gif or .mp4"), ("nowhere/film.gif", "folder must exist")],
)
def test_a_film_that_cannot_be_written_is_a_mistake(file: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        task("goal-point-maze").render(None, Path(file))


def test_without_anything_to_draw_with_a_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUJOCO_GL", "nothing")
    with pytest.raises(UserError, match="apt-get install libegl1 or libosmesa6"):
        task("goal-point-maze").render(None, tmp_path / "film.gif")


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_an_episode_is_rendered(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # put back what rendering sets
        monkeypatch.delenv(name)
    one = task("goal-point-maze")
    monkeypatch.setattr(type(one), "presets", {"proxy": replace(smoke(), length=6)})
    file = tmp_path / f"film{suffix}"
    try:
        one.render(None, file)
    except UserError as error:
        pytest.skip(str(error))
    one.render(one.build(TINY), file)
    import imageio.v3 as imageio

    pictures = imageio.imread(file)
    assert len(pictures) >= 3
    assert pictures.std() > 10
