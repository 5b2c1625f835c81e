"""From gymnasium's environments to vectors of states, goals and actions.

Shapes: E = environments, S = features of a state, G = of a goal, A = of an action.
"""

import contextlib
import io
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from search_spaces.mistake import Mistake, unknown
from search_spaces.models.residual_mlp import Sizes

if TYPE_CHECKING:
    from gymnasium import Env

KEYS = ("observation", "achieved_goal", "desired_goal")
_SUCCESS = ("success", "is_success")


def gymnasium() -> ModuleType:
    """The library, with the environments of gymnasium-robotics registered. Raises Mistake where it is missing."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # it prints news of environments that are not used here
            import gymnasium
            import gymnasium_robotics
    except ImportError as error:
        raise Mistake(
            f'goal tasks need gymnasium, gymnasium-robotics and mujoco ({error}). Install the extra "rl": '
            'pip install "nas-bench-wiring[rl]".'
        ) from error
    if "FetchReach-v4" not in gymnasium.registry:
        gymnasium.register_envs(gymnasium_robotics)
    return gymnasium


def make(environment: str, length: int, *, render: bool = False, **options: Any) -> "Env[Any, Any]":
    """An environment by its id, whose episodes end after `length` steps, or where it says itself if that is 0.

    `render` makes it give pictures; `options` go to its constructor.

    Raises:
        Mistake: No such environment, or its episodes have no end.
    """
    gym = gymnasium()
    try:
        spec = gym.spec(environment)
    except (gym.error.Error, ImportError, ValueError):
        raise unknown("environment", environment, installed()) from None
    if not length and spec.max_episode_steps is None:
        raise Mistake(f"episodes of {environment} have no end. Register it with max_episode_steps.")
    if render:
        options["render_mode"] = "rgb_array"
    made: Env[Any, Any] = gym.make(
        environment, max_episode_steps=length or spec.max_episode_steps, disable_env_checker=True, **options
    )
    return made


def installed() -> list[str]:
    """The ids of gymnasium-robotics' goal environments, the latest version of each, with sparse rewards."""
    latest: dict[str, Any] = {}
    for spec in gymnasium().registry.values():
        from_robotics = str(spec.entry_point).startswith("gymnasium_robotics.envs.")
        if from_robotics and not any(word in spec.id for word in ("Dense", "Adroit", "Kitchen")):
            known = latest.setdefault(spec.name, spec)
            latest[spec.name] = max(known, spec, key=lambda one: one.version or 0)
    return sorted(spec.id for spec in latest.values())


def sizes(environment: "Env[Any, Any]", name: str, goal_at: int | None) -> Sizes:
    """Features of its states, goals and actions.

    Raises:
        Mistake: Its observations are no goal environment's, or its actions are not numbers between bounds.
    """
    from gymnasium import spaces

    seen, acts = environment.observation_space, environment.action_space
    remedy = f"Goal environments here: {', '.join(installed())}."
    parts = [seen.spaces.get(key) for key in KEYS] if isinstance(seen, spaces.Dict) else []
    if not parts or not all(isinstance(part, spaces.Box) and len(part.shape) == 1 for part in parts):
        raise Mistake(f"{name} must observe vectors named {', '.join(KEYS)}, got {_line(seen)}. {remedy}")
    if not isinstance(acts, spaces.Box) or len(acts.shape) != 1 or not acts.is_bounded():
        raise Mistake(f"{name} must take vectors of numbers between bounds as actions, got {_line(acts)}. {remedy}")
    observed, achieved = (part.shape[0] for part in parts[:2] if part is not None and part.shape is not None)
    return Sizes(observed + (achieved if goal_at is None else 0), achieved, acts.shape[0])


def _line(space: Any) -> str:
    return " ".join(str(space).split())[:200]


class Environments:
    """Several of one environment, stepped one after the other in this process.

    MuJoCo's steps are too short here to gain from threads, which Python's lock holds up.

    Attributes:
        states: Where they stand, [E, S].
        goals: Where they are to get, [E, G].
    """

    states: Tensor
    goals: Tensor

    def __init__(self, make_one: Callable[[], "Env[Any, Any]"], count: int, goal_at: int | None) -> None:
        from gymnasium.vector import AutoresetMode, SyncVectorEnv

        # With the default, a reset is a step of its own with an action that does nothing: a transition that never was.
        self._vector = SyncVectorEnv([make_one] * count, copy=False, autoreset_mode=AutoresetMode.DISABLED)
        space: Any = self._vector.single_action_space
        self._low, self._range = space.low, space.high - space.low
        self._goal_at = goal_at
        self.count = count

    def reset(self, which: Sequence[bool], seeds: Sequence[int]) -> None:
        """Begin an episode in those of the environments, [E]; it is a function of its seed, [E]."""
        # Options are made anew: gymnasium takes the mask out of them.
        observed, _ = self._vector.reset(seed=list(seeds), options={"reset_mask": np.array(which, dtype=np.bool_)})
        self._see(observed)

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Act, [E, A] in [-1, 1], and say whether each is at its goal and whether its episode has ended, [E] each."""
        # Rounding may leave the bounds by a unit in the last place.
        scaled = np.clip(self._low + (actions.numpy() + 1) / 2 * self._range, self._low, self._low + self._range)
        observed, _, terminated, truncated, told = self._vector.step(scaled.astype(np.float32))
        self._see(observed)
        at_goal = next((told[name] for name in _SUCCESS if name in told), None)
        if at_goal is None:
            raise Mistake(f"a goal environment's info must say {' or '.join(_SUCCESS)}, got {', '.join(told)}.")
        return torch.from_numpy(np.asarray(at_goal, dtype=bool)), torch.from_numpy(terminated | truncated)

    def close(self) -> None:
        """Let go of the simulators."""
        self._vector.close()

    def _see(self, observed: dict[str, np.ndarray[Any, Any]]) -> None:
        parts = [observed["observation"]]
        if self._goal_at is None:
            parts.insert(0, observed["achieved_goal"])
        self.states = torch.from_numpy(np.concatenate(parts, axis=1, dtype=np.float32))
        self.goals = torch.from_numpy(observed["desired_goal"].astype(np.float32))
