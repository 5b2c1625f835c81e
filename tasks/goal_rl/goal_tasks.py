"""The goal tasks by name, and a task for any goal environment of gymnasium.

Goal slices index the state that the networks read. "Paper" means the Brax environments of the source.
"""

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from search_spaces.architecture.architecture import Architecture
from tasks.goal_rl.environments import gymnasium, make, registering_packages
from tasks.goal_rl.recipe import PAPER, GoalRecipe, smoke
from tasks.goal_rl.task import PACKAGES, GoalTask

if TYPE_CHECKING:
    from gymnasium import Env

    from tasks.goal_rl.fetch_table import TableLayout

_WALLS = "11111111 1RG11GG1 1GG1GGG1 11GGG111 1GG1GGG1 1G1GG1G1 1GGG1GG1 11111111"
BIG_MAZE = [[{"1": 1, "R": "r", "G": "g"}[cell] for cell in row] for row in _WALLS.split()]
"""The paper's Big Maze: 1 is a wall, r the start of episodes, g the goals."""

_PAPER_PRESETS = dict.fromkeys(("paper", "ancre-16", "ancre-64"), PAPER)


def ancre_bases(shallow: float, deep: float) -> dict[str, Architecture]:
    """Return ANCRe's networks of 16 and 64 layers, with the temperatures in its table 8 for an environment."""
    paper = GoalTask.bases["paper"]
    return {
        "paper": paper,
        "ancre-16": replace(paper, topology=f"ancre(temperature={shallow})"),
        "ancre-64": replace(paper, depth=16, topology=f"ancre(temperature={deep})"),
    }


class PointMaze(GoalTask):
    """A ball in a maze; subclasses choose the maze."""

    goal_offset = 0
    maze: ClassVar[str]

    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        """Make the maze with one goal per episode; reaching it does not end the episode."""
        return _maze(f"PointMaze_{self.maze}-v3", length or self.presets["proxy"].length, render)


class GoalPointMaze(PointMaze):
    """A force-controlled ball in gymnasium-robotics' U-shaped point maze.

    State: position and velocity, 4 features; goal: 0:2, the position. Action: two forces. Success: within 0.45 m of the
    goal (by the code; its documentation says 0.5). Episodes have 300 steps (1000 in paper, 30 in smoke) and never
    end early. Start and goal lie in two different cells of 1 m, of seven free ones, up to 0.25 m off the center. The
    paper has no point maze.
    """

    name = "goal-point-maze"
    version = 1
    maze = "UMaze"
    presets = {  # noqa: RUF012  # Task declares it a ClassVar
        "smoke": smoke(),
        "proxy": GoalRecipe(length=300, unroll=300, rounds=20, updates=150, reports=5),
        "paper": PAPER,
    }


class GoalPointMazeMedium(PointMaze):
    """A force-controlled ball in the medium point maze of 6 x 6 cells, with longer paths.

    State, goal, action and success are those of goal-point-maze. Episodes have 500 steps (1000 in paper, 30 in smoke).
    Start and goal are drawn from the free cells.
    """

    name = "goal-point-maze-medium"
    version = 1
    maze = "Medium"
    presets = {  # noqa: RUF012
        "smoke": smoke(),
        "proxy": GoalRecipe(length=500, unroll=500, rounds=20, updates=250, reports=5),
        "paper": PAPER,
    }


class GoalAntMaze(GoalTask):
    """A four-legged ant in the paper's Big Maze, based on gymnasium-robotics' AntMaze.

    State: 29 features, 0:15 positions (x, y, height, orientation, joints) and 15:29 velocities; goal: 0:2. Action: 8
    torques. Success: within 0.45 m of the goal in x and y. Episodes have 1000 steps (300 in proxy, 30 in smoke). Start:
    the cell in row 1, column 1. Goal: one of the 25 goal cells of 4 m. Both are up to 0.1 m off the center.

    Differences from the paper:

    * The simulator is MuJoCo instead of Brax's spring backend.
    * A step takes 5 x 0.01 s instead of 10 x 0.005 s.
    * Success is at 0.45 m instead of 0.5 m.
    * Episodes do not end when the ant falls or jumps; the paper ends them at a height outside 0.2 to 1.
    * Joints start without noise.
    * Goals are off the centers of cells instead of exactly at them.
    * Each episode draws a new start and goal; Brax reuses those of each environment's first episode.
    """

    name = "goal-ant-maze"
    version = 1
    bases = ancre_bases(0.01, 0.01)
    goal_offset = None  # AntMaze removes the position from the observation
    presets = {  # noqa: RUF012
        "smoke": smoke(),
        "proxy": GoalRecipe(length=300, unroll=300, rounds=15, updates=150),
        **_PAPER_PRESETS,
    }

    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        """Make AntMaze with the Big Maze's walls."""
        environment = _maze(
            "AntMaze_UMaze-v5",
            length or self.presets["paper"].length,
            render,
            maze_map=BIG_MAZE,
            include_cfrc_ext_in_observation=False,
            camera_id=-1,  # view from above: the ant's own camera sees a wall
            default_camera_config={"distance": 44.0, "elevation": -70.0, "lookat": np.zeros(3)},
        )
        maze: Any = environment.unwrapped
        maze.position_noise_range = 0.1 / maze.maze.maze_size_scaling
        return environment


class GoalHumanoid(GoalTask):
    """A humanoid that walks to a place 1 to 5 m away, based on gymnasium's Humanoid-v5.

    State: 272 features, 0:24 positions, 24:47 velocities, then inertias (130), velocities of the bodies (78) and the
    actuators' forces (17); goal: 0:3, the torso's x, y, z. Action: 17 torques. Success: within 0.5 m of the goal in
    three dimensions. Episodes have 1000 steps (200 in proxy, 30 in smoke), and end if the torso is not 1 to 2 m high.
    Start: upright at the origin, with up to 0.01 of noise in every coordinate. Goal: 1.25 m high, at a uniform distance
    of 1 to 5 m in a uniform direction.

    Differences from the paper:

    * The simulator is MuJoCo instead of Brax's spring backend.
    * A step takes 5 x 0.003 s instead of 10 x 0.0015 s.
    * The state has 272 features instead of 268, which include the goal's joint positions.
    * Each episode draws a new start and goal.
    """

    name = "goal-humanoid"
    version = 1
    bases = ancre_bases(0.01, 0.01)
    goal_offset = 0
    presets = {  # noqa: RUF012
        "smoke": smoke(),
        "proxy": GoalRecipe(length=200, unroll=200, rounds=15, updates=150),
        **_PAPER_PRESETS,
    }

    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        """Make Humanoid-v5 with its position in the observation, and with a goal."""
        options = {"exclude_current_positions_from_observation": False, "include_cfrc_ext_in_observation": False}
        length = length or self.presets["paper"].length
        plain = make("Humanoid-v5", length, render=render, **options)
        from tasks.goal_rl.humanoid import HumanoidWithGoal

        return HumanoidWithGoal(plain)


class TableTask(GoalTask):
    """Fetch's arm with a cube and a goal on opposite sides of the table; subclasses choose the layout."""

    goal_offset = 3
    fetch: ClassVar[str]
    presets = {  # noqa: RUF012
        "smoke": smoke(),
        "proxy": GoalRecipe(length=100, unroll=100, rounds=40, updates=100),
        **_PAPER_PRESETS,
    }

    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        """Make Fetch with a new layout in each episode."""
        plain = make(self.fetch, length or self.presets["proxy"].length, render=render)
        from tasks.goal_rl.fetch_table import FetchTableWrapper

        return FetchTableWrapper(plain, self.layout())

    @abstractmethod
    def layout(self) -> "TableLayout":
        """Return the ranges of cube and goal."""


class GoalArmPushHard(TableTask):
    """Push a cube across the table, based on gymnasium-robotics' FetchPush.

    State: 25 features, gripper 0:3, cube 3:6, their difference, fingers, the cube's orientation and velocities, the
    gripper's velocity; goal: 3:6, the cube. Action: the gripper's displacement; the fingers are blocked. Success: cube
    within 0.1 m of the goal. Episodes have 1000 steps in paper, 100 in proxy and 30 in smoke, and never end early. The
    gripper starts over the middle of the table. The cube starts on the table in a field of 0.36 x 0.2 m, at least 0.1 m
    to one side of it. The goal is in the same field on the other side. Both are uniform.

    Differences from the paper:

    * The robot is a Fetch moved by its gripper instead of a Panda moved by its joints (5 actions, 17 features).
    * Fields are smaller than 0.5 x 0.5 m, which Fetch's table and reach do not allow.
    * A step takes 20 x 0.002 s instead of 25 x 0.002 s.
    * Each episode draws a new start and goal.
    """

    name = "goal-arm-push-hard"
    version = 1
    bases = ancre_bases(0.1, 0.1)
    fetch = "FetchPush-v4"

    def layout(self) -> "TableLayout":
        from tasks.goal_rl.fetch_table import TableLayout

        return TableLayout(x=(1.14, 1.5), start_y=(0.45, 0.65), goal_y=(0.85, 1.05), lift=0.0)


class GoalArmPickPlaceHard(TableTask):
    """Lift a cube to the other side of the table, based on gymnasium-robotics' FetchPickAndPlace.

    State and goal are those of goal-arm-push-hard. Action: the gripper's displacement and the fingers. Success: cube
    within 0.1 m of the goal. Episodes are those of goal-arm-push-hard. The cube starts in a field of 0.3 x 0.2 m on one
    side of the middle. The goal is above the same field on the other side, 0 to 0.3 m over the table. All are uniform.

    Differences from the paper's bin picking:

    * There are no bins with walls to lift the cube over, so goals are in the air instead.
    * Robot, step and reset differ as in goal-arm-push-hard.
    """

    name = "goal-arm-pick-place-hard"
    version = 1
    bases = ancre_bases(0.01, 0.1)
    fetch = "FetchPickAndPlace-v4"

    def layout(self) -> "TableLayout":
        from tasks.goal_rl.fetch_table import TableLayout

        return TableLayout(x=(1.17, 1.47), start_y=(0.45, 0.65), goal_y=(0.85, 1.05), lift=0.3)


class RegisteredGoalTask(GoalTask):
    """Any goal environment with a gymnasium id: goal:FetchReach-v4. See `goal_task`.

    State: the achieved goal, followed by the observation; goal: from 0. Success is "success" or "is_success" in the
    environment's info. Episode length and reset are the environment's.
    """

    goal_offset = None
    environment_id: ClassVar[str]
    presets = {  # noqa: RUF012
        "smoke": smoke(),
        "proxy": GoalRecipe(unroll=150, rounds=30, updates=100),
        "paper": GoalRecipe(**{**{name: getattr(PAPER, name) for name in PAPER.__slots__}, "length": 0}),
    }

    def __init__(self, data: Path | None = None) -> None:
        super().__init__(data)
        gymnasium()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the id: the class is created dynamically and cannot be imported."""
        return _registered_task, (self.environment_id,)

    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        return make(self.environment_id, length, render=render)

    def packages(self) -> tuple[str, ...]:
        return tuple(name for name in registering_packages(self.environment_id) if name not in PACKAGES)


def goal_task(environment: str) -> type[GoalTask]:
    """Return the task class of a goal environment by its gymnasium id: goal:FetchReach-v4."""
    names = {"name": f"goal:{environment}", "version": 1, "environment_id": environment}
    return type("GoalTaskById", (RegisteredGoalTask,), {**names, "__doc__": RegisteredGoalTask.__doc__})


def _registered_task(environment: str) -> GoalTask:
    return goal_task(environment)()


def _maze(environment: str, length: int, render: bool, **options: Any) -> "Env[Any, Any]":
    options |= {"continuing_task": True, "reset_target": False}  # reaching the goal, which stays, ends no episode
    env = make(environment, length, render=render, **options)
    maze: Any = env.unwrapped
    Path(maze.tmp_xml_file_path).unlink(missing_ok=True)  # the maze's model, already loaded
    return env
