"""Fetch with starts and goals on opposite sides of the table. Needs the extra "rl"."""

from dataclasses import dataclass
from typing import Any

from gymnasium import Env, Wrapper

RADIUS = 0.1

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Ranges of start and goal, in meters. Fetch's table spans 1.05 to 1.55 in x and 0.4 to 1.1 in y.

    Attributes:
        x: x of the cube and of the goal.
        start_y: y of the cube.
        goal_y: y of the goal.
        lift: Maximum height of the goal above the table, uniform; 0 leaves it on the table.
    """

    x: Range
    start_y: Range
    goal_y: Range
    lift: float


class FetchTableWrapper(Wrapper[Any, Any, Any, Any]):
    """FetchPush or FetchPickAndPlace with cube and goal drawn uniformly from a layout."""

    def __init__(self, environment: Env[Any, Any], layout: TableLayout) -> None:
        super().__init__(environment)
        self.layout = layout
        fetch: Any = environment.unwrapped
        fetch.distance_threshold = RADIUS

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Move the arm to its start, and place cube and goal by the layout."""
        self.env.reset(seed=seed, options=options)
        fetch: Any = self.env.unwrapped
        draw, layout = fetch.np_random.uniform, self.layout
        cube = fetch._utils.get_joint_qpos(fetch.model, fetch.data, "object0:joint").copy()
        cube[:2] = draw(*layout.x), draw(*layout.start_y)
        fetch._utils.set_joint_qpos(fetch.model, fetch.data, "object0:joint", cube)
        fetch._mujoco.mj_forward(fetch.model, fetch.data)
        fetch.goal[:] = draw(*layout.x), draw(*layout.goal_y), fetch.height_offset + draw(0, 1) * layout.lift
        return fetch._get_obs(), {}
