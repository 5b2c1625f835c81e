"""Gymnasium's goal environments by id, and checks of their spaces."""

import contextlib
import io
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from types import ModuleType
from typing import TYPE_CHECKING, Any

from search_spaces.models.residual_mlp import Sizes
from search_spaces.support.errors import UserError, unknown_name_error

if TYPE_CHECKING:
    from gymnasium import Env

KEYS = ("observation", "achieved_goal", "desired_goal")


def gymnasium() -> ModuleType:
    """Return gymnasium, with gymnasium-robotics' environments registered. Raises UserError if it is missing."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # it prints messages about unused environments
            import gymnasium
            import gymnasium_robotics
    except ImportError as error:
        raise UserError(
            "needs-extra",
            f'goal tasks need gymnasium, gymnasium-robotics and mujoco ({error}). Install the extra "rl": '
            'pip install ".[rl]".',
            extra="rl",
        ) from error
    if "FetchReach-v4" not in gymnasium.registry:
        gymnasium.register_envs(gymnasium_robotics)
    return gymnasium


def make(environment: str, length: int, *, render: bool = False, **options: Any) -> "Env[Any, Any]":
    """Make an environment by its id, with episodes of `length` steps, or its own length if 0.

    `render` makes it return images; `options` go to its constructor.

    Raises:
        UserError: There is no such environment, or its episodes have no end.
    """
    gym = gymnasium()
    try:
        spec = gym.spec(environment)
    except (gym.error.Error, ImportError, ValueError):
        raise unknown_name_error("environment", environment, environment_ids()) from None
    if not length and spec.max_episode_steps is None:
        raise UserError(
            "unsupported",
            f"episodes of {environment} must have a time limit. Register it with max_episode_steps.",
            environment=environment,
            needs="max_episode_steps",
        )
    if render:
        options["render_mode"] = "rgb_array"
    env: Env[Any, Any] = gym.make(
        environment, max_episode_steps=length or spec.max_episode_steps, disable_env_checker=True, **options
    )
    return env


def registering_packages(environment: str) -> list[str]:
    """Return the packages with an environment's code; none if it is unknown or in no package."""
    spec = gymnasium().registry.get(environment)
    entry: Any = spec.entry_point if spec else None
    module = entry if isinstance(entry, str) else getattr(entry, "__module__", "")
    return sorted(set(_distributions().get(module.partition(":")[0].partition(".")[0], [])))


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Return the packages of each module; scanning all installed ones takes half a second."""
    return packages_distributions()


def environment_ids() -> list[str]:
    """Return the ids of gymnasium-robotics' goal environments with sparse rewards, the latest version of each."""
    latest: dict[str, Any] = {}
    for spec in gymnasium().registry.values():
        from_robotics = str(spec.entry_point).startswith("gymnasium_robotics.envs.")
        if from_robotics and not any(word in spec.id for word in ("Dense", "Adroit", "Kitchen")):
            newest = latest.setdefault(spec.name, spec)
            latest[spec.name] = max(newest, spec, key=lambda candidate: candidate.version or 0)
    return sorted(spec.id for spec in latest.values())


def sizes(environment: "Env[Any, Any]", name: str, goal_offset: int | None) -> Sizes:
    """Return the features of states, goals and actions.

    Raises:
        UserError: The observations are not those of a goal environment, or actions are not bounded vectors.
    """
    from gymnasium import spaces

    observation_space, action_space = environment.observation_space, environment.action_space
    ids = tuple(environment_ids())
    remedy = f"Installed goal environments: {', '.join(ids)}."
    parts = [observation_space.spaces.get(key) for key in KEYS] if isinstance(observation_space, spaces.Dict) else []
    if not parts or not all(isinstance(part, spaces.Box) and len(part.shape) == 1 for part in parts):
        raise UserError(
            "unsupported",
            f"observations of {name} must be vectors named {', '.join(KEYS)}, got {_line(observation_space)}. {remedy}",
            environment=name,
            needs="observations",
            choices=ids,
        )
    if not isinstance(action_space, spaces.Box) or len(action_space.shape) != 1 or not action_space.is_bounded():
        raise UserError(
            "unsupported",
            f"actions of {name} must be bounded vectors, got {_line(action_space)}. {remedy}",
            environment=name,
            needs="actions",
            choices=ids,
        )
    state_size, goal_size = (part.shape[0] for part in parts[:2] if part is not None and part.shape is not None)
    return Sizes(state_size + (goal_size if goal_offset is None else 0), goal_size, action_space.shape[0])


def _line(space: Any) -> str:
    return " ".join(str(space).split())[:200]
