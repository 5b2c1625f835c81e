"""Gymnasium's Humanoid with a goal to walk to. Needs the extra "rl"."""

import math
from typing import Any

import numpy as np
from gymnasium import Env, Wrapper, spaces

RADIUS = 0.5
_SPHERE = 2  # mujoco.mjtGeom.mjGEOM_SPHERE
_NEAREST, _FARTHEST, _HEIGHT = 1.0, 5.0, 1.25


class HumanoidWithGoal(Wrapper[Any, Any, Any, Any]):
    """Humanoid whose torso must come within 0.5 m of a point 1 to 5 m away in any direction, 1.25 m above the ground.

    Wraps Humanoid-v5 with the torso's position in its observation.
    """

    def __init__(self, environment: Env[Any, Any]) -> None:
        super().__init__(environment)
        observation = environment.observation_space
        place = spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.observation_space = spaces.Dict(
            {"observation": observation, "achieved_goal": place, "desired_goal": place}
        )
        self.goal = np.zeros(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Stand up, and draw a goal."""
        observation, _ = self.env.reset(seed=seed, options=options)
        generator = self.env.unwrapped.np_random
        far, direction = generator.uniform(_NEAREST, _FARTHEST), generator.uniform(0, 2 * math.pi)
        self.goal = np.array((far * math.cos(direction), far * math.sin(direction), _HEIGHT))
        return self._goal_observation(observation), {"success": self._at_goal(observation)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step. The reward is 1 at the goal, else 0; Humanoid's own is not used."""
        observation, _, terminated, truncated, _ = self.env.step(action)
        success = self._at_goal(observation)
        return self._goal_observation(observation), float(success), terminated, truncated, {"success": success}

    def render(self) -> Any:
        """Return an image, with a ball at the goal."""
        plain: Any = self.env.unwrapped
        viewer = plain.mujoco_renderer._get_viewer("rgb_array")
        viewer.add_marker(pos=self.goal, size=[RADIUS / 2] * 3, rgba=[1, 0, 0, 1], type=_SPHERE, label="")
        return self.env.render()

    def _goal_observation(self, observation: Any) -> dict[str, Any]:
        return {"observation": observation, "achieved_goal": observation[:3], "desired_goal": self.goal}

    def _at_goal(self, observation: Any) -> bool:
        return bool(np.linalg.norm(observation[:3] - self.goal) < RADIUS)
