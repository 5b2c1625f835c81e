"""A goal task in NumPy, for tests that do not need the simulator."""

from typing import Any

import gymnasium
import numpy as np

from tasks.goal_rl.recipe import GoalRecipe
from tasks.goal_rl.task import GoalTask
from tasks.load import load_task

SHORT = GoalRecipe(length=10, environments=2, unroll=10, rounds=2, updates=2, batch=8, reports=2, episodes=2)
BOX = {name: gymnasium.spaces.Box(-10, 10, (size,)) for name, size in (("observation", 4), ("achieved_goal", 2))}


def goal_task(name: str) -> GoalTask:
    task = load_task(name)
    assert isinstance(task, GoalTask)
    return task


class Reach(gymnasium.Env[Any, Any]):
    """A ball on a table, moved by two forces; the goal is within half a metre."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012
    render_mode = "rgb_array"
    observation_space = gymnasium.spaces.Dict({**BOX, "desired_goal": BOX["achieved_goal"]})
    action_space = gymnasium.spaces.Box(-1, 1, (2,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.position, self.goal = self.np_random.uniform(-1, 1, (2, 2))
        self.velocity, self.steps = np.zeros(2), 0
        return self.observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.velocity = 0.9 * self.velocity + 0.1 * action
        self.steps += 1
        self.position = np.clip(self.position + 0.1 * self.velocity, -10, 10)
        return self.observation(), 0.0, False, False, {"success": np.linalg.norm(self.position - self.goal) < 0.5}

    def render(self) -> Any:
        """A picture whose brightness is the number of steps."""
        return np.full((32, 48, 3), min(40 * self.steps, 255), np.uint8)

    def observation(self) -> dict[str, Any]:
        state = np.concatenate((self.position, self.velocity))
        return {"observation": state, "achieved_goal": self.position, "desired_goal": self.goal}


class ReachTask(GoalTask):
    """The ball task. Episodes have 20 steps by default."""

    name = "reach"
    version = 1
    goal_offset = 0
    bases = {}  # noqa: RUF012
    presets = {"smoke": SHORT, "proxy": SHORT}  # noqa: RUF012

    def environment(self, length: int, *, render: bool = False) -> gymnasium.Env[Any, Any]:
        return gymnasium.wrappers.TimeLimit(Reach(), length or 20)
