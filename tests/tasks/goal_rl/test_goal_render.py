"""Films of evaluation episodes."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError
from tasks.goal_rl.recipe import smoke
from tasks.goal_rl.render import film

pytest.importorskip("gymnasium_robotics")
pytest.importorskip("imageio")
sys.path.insert(0, str(Path(__file__).parent))
from reach_task import ReachTask, goal_task

TINY = Architecture(depth=1, width=8, hidden=8)


def test_refuses_a_film_that_cannot_be_written() -> None:
    with raises("unsupported", option="--render", path="film.avi", choices=(".gif", ".mp4")):
        goal_task("goal-point-maze").render(None, Path("film.avi"))
    with raises("unwritable", option="--render", folder="nowhere"):
        goal_task("goal-point-maze").render(None, Path("nowhere/film.gif"))


def test_names_the_packages_to_install_for_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "nothing")
    with raises("needs-system", option="MUJOCO_GL", value="nothing", choices=("egl", "osmesa")):
        goal_task("goal-point-maze").render(None, tmp_path / "film.gif")


def test_renders_an_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # restore what rendering sets
        monkeypatch.delenv(name)
    task = goal_task("goal-point-maze")
    monkeypatch.setattr(type(task), "presets", {"proxy": replace(smoke(), length=4)})
    file = tmp_path / "film.gif"
    try:
        task.render(None, file)
    except UserError as error:
        pytest.skip(str(error))
    task.render(task.build(TINY), file)
    import imageio.v3 as imageio

    pictures = imageio.imread(file)
    assert len(pictures) >= 3
    assert pictures.std() > 10


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_a_film_has_25_pictures_a_second(suffix: str, tmp_path: Path) -> None:
    task, file = ReachTask(), tmp_path / f"film{suffix}"
    film(task.environment(5, render=True), task.goal_offset, task.build(TINY), file)
    import imageio.v3 as imageio

    pictures = imageio.imread(file)
    assert pictures.shape == (3, 32, 48, 3)
    assert [round(picture.mean() / 40) for picture in pictures] == [0, 2, 4]  # of 50 a second
