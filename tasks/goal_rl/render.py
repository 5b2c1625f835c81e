"""Films of evaluation episodes, also on machines without a display."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from search_spaces.models.residual_mlp import GoalAgent
from search_spaces.support.errors import UserError
from search_spaces.support.files import check_folder
from tasks.data.splits import derived_seed
from tasks.goal_rl.episodes import deterministic
from tasks.goal_rl.vectors import Environments, SyncVectorEnv

if TYPE_CHECKING:
    from gymnasium import Env

SUFFIXES = (".gif", ".mp4")
_FPS = 25  # maximum frame rate; the film runs at the simulation's pace
_DRAW = "import mujoco; context = mujoco.GLContext(8, 8); context.make_current(); context.free()"


def check(file: Path) -> None:
    """Check that films can be made, and choose MuJoCo's rendering backend.

    Raises:
        UserError: The suffix is unknown, the folder is missing, or no backend works.
    """
    if file.suffix not in SUFFIXES:
        raise UserError(
            "unsupported",
            f"the file name of a film must end in {' or '.join(SUFFIXES)}, got {str(file)!r}.",
            option="--render",
            path=str(file),
            choices=tuple(SUFFIXES),
        )
    check_folder(file, "--render")
    backend = _backend(os.environ.get("MUJOCO_GL"))
    if backend is None:
        preference = os.environ.get("MUJOCO_GL")
        backends = "egl, osmesa" if preference is None else preference
        raise UserError(
            "needs-system",
            f"MuJoCo cannot render with any of these: {backends}. "
            "Install one; on Debian: apt-get install libegl1 or libosmesa6.",
            option="MUJOCO_GL",
            value=preference,
            choices=("egl", "osmesa"),
            needs=("libegl1", "libosmesa6"),
        )
    os.environ["MUJOCO_GL"] = backend


def film(environment: "Env[Any, Any]", goal_offset: int | None, agent: GoalAgent, file: Path) -> None:
    """Write the first validation episode of the agent, by its deterministic policy. Closes the environment."""
    import imageio.v3 as imageio

    pace = environment.metadata.get("render_fps", _FPS)
    every = max(1, round(pace / _FPS))
    with closing(SyncVectorEnv(lambda: environment, 1, goal_offset)) as environments:
        frames = [frame for n, frame in enumerate(_frames(environment, environments, agent)) if n % every == 0]
        pictures, fps = np.stack(frames), pace / every
        if file.suffix == ".gif":
            imageio.imwrite(file, pictures, duration=1000 / fps, loop=0)
        else:
            imageio.imwrite(file, pictures, fps=fps, plugin="FFMPEG", macro_block_size=2)


def _frames(environment: "Env[Any, Any]", environments: Environments, agent: GoalAgent) -> Iterator[Any]:
    policy = deterministic(agent)
    environments.reset([True], [derived_seed(0, "validation", 0)])
    over = False
    while not over:
        yield environment.render()
        _, dones = environments.step(policy(environments.states, environments.goals))
        over = bool(dones.all())
    yield environment.render()


@lru_cache(maxsize=4)
def _backend(preference: str | None) -> str | None:
    """Return a working rendering backend of MuJoCo; tried in a subprocess, since the choice cannot be undone."""
    for name in (preference,) if preference else ("egl", "osmesa"):
        environment = {**os.environ, "MUJOCO_GL": name}
        done = subprocess.run([sys.executable, "-c", _DRAW], env=environment, capture_output=True)  # noqa: S603  # ours
        if done.returncode == 0:
            return name
    return None
