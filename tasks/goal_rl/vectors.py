"""Vectors of environments: states, goals and actions of several at once, stepped here or in subprocesses.

Shapes: E = environments, S = features of a state, G = of a goal, A = of an action.
"""

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, final

import joblib
import numpy as np
import torch
from torch import Tensor

from search_spaces.support.errors import UserError

if TYPE_CHECKING:
    from gymnasium import Env

Make = Callable[[], "Env[Any, Any]"]

_SUCCESS = ("success", "is_success")
_DIED = "an environment process died, most likely for lack of memory"


class Environments(ABC):
    """Several copies of one environment.

    Attributes:
        count: Number of environments, E.
        states: Current states, [E, S].
        goals: Current goals, [E, G].
    """

    count: int
    states: Tensor
    goals: Tensor

    @abstractmethod
    def reset(self, mask: Sequence[bool], seeds: Sequence[int]) -> None:
        """Start an episode in the environments of the mask, [E]; it depends only on its seed, [E]."""

    @abstractmethod
    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Take a step, [E, A] in [-1, 1]; return whether each is at its goal, and whether its episode ended, [E] each.

        If an episode ended, `reset` must follow before the next step.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the simulators."""


def make_environments(make: Make, count: int, goal_offset: int | None, processes: int = 1) -> Environments:
    """Make environments: in this process for `processes=1`, in one per core for 0.

    Episodes do not depend on the number of processes.
    """
    processes = min(count, processes or joblib.cpu_count(only_physical_cores=True))
    return (
        SyncVectorEnv(make, count, goal_offset)
        if processes == 1
        else AsyncVectorEnv(make, count, goal_offset, processes)
    )


@final
class SyncVectorEnv(Environments):
    """Environments stepped in sequence in this process. Threads would not help: most of a step holds the GIL."""

    def __init__(self, make: Make, count: int, goal_offset: int | None) -> None:
        from gymnasium.vector import AutoresetMode, SyncVectorEnv

        # By default a reset is a step of its own with an ignored action: a transition that never happened.
        self._vector = SyncVectorEnv([make] * count, copy=False, autoreset_mode=AutoresetMode.DISABLED)
        space: Any = self._vector.single_action_space
        self._low, self._range = space.low, space.high - space.low
        self._goal_offset = goal_offset
        self.count = count

    def reset(self, mask: Sequence[bool], seeds: Sequence[int]) -> None:
        # The options are a new dict each time: gymnasium removes the mask.
        observation, _ = self._vector.reset(seed=list(seeds), options={"reset_mask": np.array(mask, dtype=np.bool_)})
        self._store_observation(observation)

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        # Rounding may exceed the bounds by a unit in the last place.
        native_actions = np.clip(
            self._low + (actions.numpy() + 1) / 2 * self._range, self._low, self._low + self._range
        )
        observation, _, terminated, truncated, info = self._vector.step(native_actions.astype(np.float32))
        self._store_observation(observation)
        at_goal = next((info[name] for name in _SUCCESS if name in info), None)
        if at_goal is None:
            raise UserError(
                "unsupported",
                f"a goal environment's info must contain {' or '.join(_SUCCESS)}, got {', '.join(info)}.",
                needs="success",
                choices=tuple(_SUCCESS),
                value=tuple(info),
            )
        return torch.from_numpy(np.asarray(at_goal, dtype=bool)), torch.from_numpy(terminated | truncated)

    def close(self) -> None:
        self._vector.close()

    def _store_observation(self, observation: dict[str, np.ndarray[Any, Any]]) -> None:
        parts = [observation["observation"]]
        if self._goal_offset is None:
            parts.insert(0, observation["achieved_goal"])
        self.states = torch.from_numpy(np.concatenate(parts, axis=1, dtype=np.float32))
        self.goals = torch.from_numpy(observation["desired_goal"].astype(np.float32))


@final
class AsyncVectorEnv(Environments):
    """Environments in subprocesses, which step their shares in parallel.

    `make` must be picklable. An exception in a subprocess is raised here as a RuntimeError, unless it is a UserError.
    """

    def __init__(self, make: Make, count: int, goal_offset: int | None, processes: int) -> None:
        context = get_context("spawn")  # torch's threads do not survive a fork
        self.count = count
        bounds = [count * part // processes for part in range(processes + 1)]
        self._shares = [slice(*pair) for pair in pairwise(bounds)]
        self._pipes: list[Connection] = []
        for share in self._shares:
            parent_end, child_end = context.Pipe()
            arguments = (child_end, make, share.stop - share.start, goal_offset)
            context.Process(target=_serve, args=arguments, daemon=True).start()
            child_end.close()
            self._pipes.append(parent_end)
        self._answers()  # wait until all are made

    def reset(self, mask: Sequence[bool], seeds: Sequence[int]) -> None:
        requests = [(list(mask[share]), list(seeds[share])) for share in self._shares]
        self._ask([(mask, seeds) if any(mask) else None for mask, seeds in requests])

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        answers = self._ask([actions[share].numpy() for share in self._shares])
        at_goal, dones = (torch.from_numpy(np.concatenate([answer[part] for answer in answers])) for part in (2, 3))
        return at_goal, dones

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.close()

    def _ask(self, requests: Sequence[Any]) -> list[Any]:
        """Send a request to every process, and store the states and goals that they return."""
        try:
            for pipe, request in zip(self._pipes, requests, strict=True):
                pipe.send(request)
        except OSError as error:
            raise RuntimeError(_DIED) from error
        answers = self._answers()
        self.states, self.goals = (
            torch.from_numpy(np.concatenate([answer[part] for answer in answers])) for part in (0, 1)
        )
        return answers

    def _answers(self) -> list[Any]:
        try:
            answers = [pipe.recv() for pipe in self._pipes]
        except (EOFError, OSError) as error:
            raise RuntimeError(_DIED) from error
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers


def _serve(pipe: Connection, make: Make, count: int, goal_offset: int | None) -> None:
    """Confirm that the environments are made, then answer each request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    torch.set_num_threads(1)
    try:
        environments = SyncVectorEnv(make, count, goal_offset)
    except Exception as error:
        pipe.send(_sendable(error))
        return
    pipe.send(None)
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(_answer(environments, request))
        except Exception as error:
            pipe.send(_sendable(error))


def _answer(environments: SyncVectorEnv, request: Any) -> tuple[Any, ...]:
    """Answer a request: None returns states and goals, a reset too; a step also returns at-goal and done flags."""
    outcome: tuple[Any, ...] = ()
    if isinstance(request, np.ndarray):
        outcome = tuple(part.numpy() for part in environments.step(torch.from_numpy(request)))
    elif request is not None:
        environments.reset(*request)
    return environments.states.numpy(), environments.goals.numpy(), *outcome


def _sendable(error: Exception) -> Exception:
    """Return an error that the parent can unpickle, even without the class of the original."""
    return error if isinstance(error, UserError) else RuntimeError(f"{type(error).__name__}: {error}")
