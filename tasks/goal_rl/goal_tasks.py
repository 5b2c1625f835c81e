"""The goal tasks by name, and one for any goal environment that gymnasium knows.

Goal slices are of the state that the networks read; paper means the Brax environments of the source.
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

    from tasks.goal_rl.fetch_table import TableFields

_WALLS = "11111111 1RG11GG1 1GG1GGG1 11GGG111 1GG1GGG1 1G1GG1G1 1GGG1GG1 11111111"
BIG_MAZE = [[{"1": 1, "R": "r", "G": "g"}[cell] for cell in row] for row in _WALLS.split()]
"""The paper's Big Maze: 1 is a wall, r where an episode starts, g where goals are."""

_PAPER_PRESETS = dict.fromkeys(("paper", "ancre-16", "ancre-64"), PAPER)


def ancre_bases(shallow: float, deep: float) -> dict[str, Architecture]:
    """ANCRe's networks of 16 and 64 layers, by the temperatures that its table 8 prints for an environment."""
    paper = GoalTask.bases["paper"]
    return {
        "paper": paper,
        "ancre-16": replace(paper, topology=f"ancre(temperature={shallow})"),
        "ancre-64": replace(paper, depth=16, topology=f"ancre(temperature={deep})"),
    }


class PointMaze(GoalTask):
    """A ball pushed around a maze. See its subclasses."""

    goal_offset = 0
    maze: ClassVar[str]

    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        """The maze, with one goal an episode, which goes on when the goal is reached."""
        return _maze(f"PointMaze_{self.maze}-v3", length or self.presets["proxy"].length, render)


class GoalPointMaze(PointMaze):
    """A ball with force control in gymnasium-robotics' U-shaped point maze.

    State: position and velocity, 4 features; goal: 0:2, the position. Action: two forces. Success: within 0.45 m of
    the goal (in the code; its documentation says 0.5). Episodes of 300 steps (1000 in paper, 30 in smoke), which
    nothing ends earlier. Start and goal are drawn from the seven free cells of 1 m, different ones, each with up to
    0.25 m beside the middle. The paper has no point maze.
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
    """The same ball in the medium point maze of 6 x 6 cells, where the way is long.

    State, goal, action and success as in goal-point-maze. Episodes of 500 steps (1000 in paper, 30 in smoke). Start
    and goal are drawn from its free cells.
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
    """A four-legged ant in the paper's Big Maze, by gymnasium-robotics' AntMaze.

    State: 29 features, 0:15 positions (x, y, height, orientation, joints) and 15:29 velocities; goal: 0:2. Action: 8
    torques. Success: within 0.45 m of the goal in x and y. Episodes of 1000 steps (300 in proxy, 30 in smoke). Start:
    the cell in row 1, column 1; goal: one of the 25 goal cells of 4 m; both up to 0.1 m beside the middle.

    Other than the paper: MuJoCo for Brax's spring backend, a step of 5 x 0.01 s for 10 x 0.005 s, success at 0.5 m
    there; an episode does not end when the ant falls over or jumps (there, height outside 0.2 to 1); joints start
    without noise; goals are there at the cells' very middle, and start and goal are drawn anew in each episode, where
    Brax keeps those of each environment's first.
    """

    name = "goal-ant-maze"
    version = 1
    bases = ancre_bases(0.01, 0.01)
    goal_offset = None  # AntMaze takes the position out of the observation
    presets = {  # noqa: RUF012
        "smoke": smoke(),
        "proxy": GoalRecipe(length=300, unroll=300, rounds=15, updates=150),
        **_PAPER_PRESETS,
    }

    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        """AntMaze with the Big Maze's walls."""
        environment = _maze(
            "AntMaze_UMaze-v5",
            length or self.presets["paper"].length,
            render,
            maze_map=BIG_MAZE,
            include_cfrc_ext_in_observation=False,
            camera_id=-1,  # the whole maze from above: the ant's own camera sees a wall
            default_camera_config={"distance": 44.0, "elevation": -70.0, "lookat": np.zeros(3)},
        )
        maze: Any = environment.unwrapped
        maze.position_noise_range = 0.1 / maze.maze.maze_size_scaling
        return environment


class GoalHumanoid(GoalTask):
    """A humanoid that is to walk to a place 1 to 5 m away, by gymnasium's Humanoid-v5.

    State: 272 features, 0:24 positions, 24:47 velocities, then inertias (130), velocities of the bodies (78) and the
    actuators' forces (17); goal: 0:3, the torso's x, y, z. Action: 17 torques. Success: within 0.5 m of the goal in
    three dimensions. Episodes of 1000 steps (200 in proxy, 30 in smoke), which end when the torso is not 1 to 2 m
    high. Start: upright at the origin with up to 0.01 of noise in every coordinate; goal: 1 to 5 m away in any
    direction, both uniform, 1.25 m high.

    Other than the paper: MuJoCo for Brax's spring backend, a step of 5 x 0.003 s for 10 x 0.0015 s; 268 features
    there, among them the goal's joint positions; start and goal are drawn anew in each episode.
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
        """Humanoid-v5 that sees where it is, with a goal."""
        options = {"exclude_current_positions_from_observation": False, "include_cfrc_ext_in_observation": False}
        length = length or self.presets["paper"].length
        plain = make("Humanoid-v5", length, render=render, **options)
        from tasks.goal_rl.humanoid import HumanoidWithGoal

        return HumanoidWithGoal(plain)


class TableTask(GoalTask):
    """Fetch's arm with a cube and a goal on opposite sides of the table. See its subclasses."""

    goal_offset = 3
    fetch: ClassVar[str]
    presets = {  # noqa: RUF012
        "smoke": smoke(),
        "proxy": GoalRecipe(length=100, unroll=100, rounds=40, updates=100),
        **_PAPER_PRESETS,
    }

    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        """Fetch, laid out anew in each episode."""
        plain = make(self.fetch, length or self.presets["proxy"].length, render=render)
        from tasks.goal_rl.fetch_table import AcrossTheTable

        return AcrossTheTable(plain, self.layout())

    @abstractmethod
    def layout(self) -> "TableFields":
        """Where cube and goal are put."""


class GoalArmPushHard(TableTask):
    """Push a cube across the table, by gymnasium-robotics' FetchPush.

    State: 25 features, gripper 0:3, cube 3:6, their difference, fingers, the cube's orientation and velocities, the
    gripper's velocity; goal: 3:6, the cube. Action: the gripper's displacement; the fingers are blocked. Success: cube
    within 0.1 m of the goal. Episodes of 1000 steps in paper, 100 in proxy, 30 in smoke, which nothing ends earlier.
    The gripper starts over the middle of the table; the cube starts on the table in a field of 0.36 x 0.2 m, at least
    0.1 m to one side of it, and the goal lies in the same field on the other side, both uniform.

    Other than the paper: a Fetch moved by its gripper for a Panda by its joints (5 actions, 17 features), fields of
    0.5 x 0.5 m there, which Fetch's table and reach do not allow; a step of 20 x 0.002 s for 25 x 0.002 s; start and
    goal are drawn anew in each episode.
    """

    name = "goal-arm-push-hard"
    version = 1
    bases = ancre_bases(0.1, 0.1)
    fetch = "FetchPush-v4"

    def layout(self) -> "TableFields":
        """The cube on one side, the goal on the other."""
        from tasks.goal_rl.fetch_table import TableFields

        return TableFields(x=(1.14, 1.5), start_y=(0.45, 0.65), goal_y=(0.85, 1.05), lift=0.0)


class GoalArmPickPlaceHard(TableTask):
    """Lift a cube over to the other side of the table, by gymnasium-robotics' FetchPickAndPlace.

    State and goal as in goal-arm-push-hard; action: the gripper's displacement and the fingers. Success: cube within
    0.1 m of the goal. Episodes as there. The cube starts in a field of 0.3 x 0.2 m on one side of the middle; the goal
    is above the same field on the other side, 0 to 0.3 m over the table, all uniform.

    Other than the paper (its bin picking): there are no bins with walls to lift the cube over, so goals are in the air
    instead; and what goal-arm-push-hard says of robot, step and reset.
    """

    name = "goal-arm-pick-place-hard"
    version = 1
    bases = ancre_bases(0.01, 0.1)
    fetch = "FetchPickAndPlace-v4"

    def layout(self) -> "TableFields":
        """The cube on one side, the goal above the other."""
        from tasks.goal_rl.fetch_table import TableFields

        return TableFields(x=(1.17, 1.47), start_y=(0.45, 0.65), goal_y=(0.85, 1.05), lift=0.3)


class RegisteredGoalTask(GoalTask):
    """Any goal environment that gymnasium knows by an id: goal:FetchReach-v4. See `goal_task`.

    State: the achieved goal, and behind it the observation; goal: from 0. Success is what the environment's info calls
    success or is_success; episode length and reset are its own.
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
        """Travel to other processes by the id: the class is made for it and has no name."""
        return _registered_task, (self.environment_id,)

    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        """The environment as it is registered."""
        return make(self.environment_id, length, render=render)

    def packages(self) -> tuple[str, ...]:
        """Those that register the environment, where they are not ours."""
        return tuple(name for name in registering_packages(self.environment_id) if name not in PACKAGES)


def goal_task(environment: str) -> type[GoalTask]:
    """Any goal environment that gymnasium knows, by its id: goal:FetchReach-v4. It is made when it is needed."""
    names = {"name": f"goal:{environment}", "version": 1, "environment_id": environment}
    return type("GoalTaskById", (RegisteredGoalTask,), {**names, "__doc__": RegisteredGoalTask.__doc__})


def _registered_task(environment: str) -> GoalTask:
    return goal_task(environment)()


def _maze(environment: str, length: int, render: bool, **options: Any) -> "Env[Any, Any]":
    options |= {"continuing_task": True, "reset_target": False}  # the goal stays, and being there ends nothing
    env = make(environment, length, render=render, **options)
    maze: Any = env.unwrapped
    Path(maze.tmp_xml_file_path).unlink(missing_ok=True)  # the maze's model, read by now and left behind
    return env
