"""Fetch's table with starts and goals on opposite sides of it. Needs the extra "rl"."""

from dataclasses import dataclass
from typing import Any

from gymnasium import Env, Wrapper

RADIUS = 0.1

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TableFields:
    """Where things are put, in metres. Fetch's table spans 1.05 to 1.55 in x and 0.4 to 1.1 in y.

    Attributes:
        x: Of the cube and of the goal.
        start_y: Of the cube.
        goal_y: Of the goal.
        lift: Of the goal above the table, uniform up to this; 0 leaves it on the table.
    """

    x: Range
    start_y: Range
    goal_y: Range
    lift: float


class AcrossTheTable(Wrapper[Any, Any, Any, Any]):
    """FetchPush or FetchPickAndPlace, its cube and goal drawn from a layout, uniformly."""

    def __init__(self, environment: Env[Any, Any], layout: TableFields) -> None:
        super().__init__(environment)
        self.layout = layout
        fetch: Any = environment.unwrapped
        fetch.distance_threshold = RADIUS

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Bring the arm to its start, and put cube and goal where the layout says."""
        self.env.reset(seed=seed, options=options)
        fetch: Any = self.env.unwrapped
        draw, layout = fetch.np_random.uniform, self.layout
        cube = fetch._utils.get_joint_qpos(fetch.model, fetch.data, "object0:joint").copy()
        cube[:2] = draw(*layout.x), draw(*layout.start_y)
        fetch._utils.set_joint_qpos(fetch.model, fetch.data, "object0:joint", cube)
        fetch._mujoco.mj_forward(fetch.model, fetch.data)
        fetch.goal[:] = draw(*layout.x), draw(*layout.goal_y), fetch.height_offset + draw(0, 1) * layout.lift
        return fetch._get_obs(), {}
