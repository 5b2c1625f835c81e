"""What all goal tasks share: networks, metrics, and how they are trained."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import load_weights
from search_spaces.models.residual_mlp import GoalAgent, Sizes, count_goal_agent
from search_spaces.support.count import Count
from tasks.base import Fitted, Metric, Task
from tasks.goal_rl import render
from tasks.goal_rl.environments import sizes
from tasks.goal_rl.episodes import at_random, deterministic, evaluate
from tasks.goal_rl.recipe import GoalRecipe
from tasks.goal_rl.training import GoalTraining, Worlds
from tasks.goal_rl.vectors import Environments, environments
from tasks.run import Run
from tasks.training.loop import apart, checkpoint_of, train

if TYPE_CHECKING:
    from gymnasium import Env

_TOGETHER = 16  # environments that are measured in at once
PACKAGES = ("gymnasium", "gymnasium-robotics", "mujoco")


class GoalTask(Task):
    """Reach goals in one kind of environment. Its presets are GoalRecipes.

    `time_at_goal` is the number of steps at the goal in an episode, counted until the episode first ends, and
    `success_any` the share of episodes with at least one. Both are measured with the policy's mean action. Validation
    and test are episodes with other starts and goals; they are the same for all agents.

    Beside the metrics it measures `env_steps` (of all environments) and two speeds.

    With one number of threads and one version of MuJoCo, `fit` gives the same numbers on a CPU to the last bit.

    Attributes:
        goal_at: Where the goal's coordinates begin in an observation; None where they are not in it, and are put in
            front of it.
    """

    metrics = (Metric("time_at_goal", "steps", "max"), Metric("success_any", "share", "max"))
    takes_data = False
    base = Architecture(depth=2, width=64, hidden=64)
    bases = {"paper": Architecture(depth=4, width=256, hidden=256)}  # noqa: RUF012  # 16 layers
    goal_at: ClassVar[int | None]

    @abstractmethod
    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        """One environment with episodes of `length` steps (0: as it says itself), and pictures if `render`.

        Raises:
            UserError: It cannot be made.
        """

    @cached_property
    def sizes(self) -> Sizes:
        """Features of states, goals and actions."""
        with torch.device("cpu"), closing(self.environment(0)) as one:
            return sizes(one, self.name, self.goal_at)

    @property
    def goal(self) -> slice:
        """Where the goal's coordinates stand in a state."""
        first = self.goal_at or 0
        return slice(first, first + self.sizes.goal)

    def packages(self) -> tuple[str, ...]:
        """What else than gymnasium-robotics and MuJoCo its environment comes from."""
        return ()

    def prepare(self) -> None:
        """Make an environment, to see that it can be had."""
        _ = self.sizes

    def build(self, architecture: Architecture) -> GoalAgent:
        """Actor and encoders."""
        return GoalAgent(architecture, self.sizes)

    def example(self) -> tuple[Tensor, ...]:
        """One state, one goal, one action."""
        return tuple(torch.zeros(1, n) for n in (self.sizes.state, self.sizes.goal, self.sizes.action))

    def closed_form(self, architecture: Architecture) -> Count:
        """Actor and both encoders, once each."""
        return count_goal_agent(architecture, self.sizes)

    def fingerprint(self, recipe: GoalRecipe) -> str:
        """Of what the physics is: the task and the versions of its simulator."""
        text = " ".join((self.name, str(self.version), *_versions(*PACKAGES, *self.packages())))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def fit(self, run: Run) -> Fitted:
        """Train by the run's recipe and measure. See Task.fit, and GoalTraining for what a checkpoint continues."""
        with apart(run), closing(self._worlds(run.recipe)) as worlds:
            return train(run, self._training(run, worlds), checkpoint_of(self, run))

    def training_step(self, run: Run) -> Callable[[], None]:
        """What updates actor, entropy's weight and critic once, on a batch of a round that was stepped beforehand."""
        with apart(run), closing(self._worlds(run.recipe)) as worlds:
            training = self._training(run, worlds)
            training.collect()
        return training.update_once

    def _training(self, run: Run, worlds: Worlds) -> GoalTraining:
        agent = self.build(run.architecture)
        if run.start is not None:
            load_weights(agent, run.start, "the checkpoint")
        device = run.device if run.recipe.accelerator == "auto" else torch.device("cpu")
        return GoalTraining(agent.to(device), worlds, run.recipe, run.seed)

    def _worlds(self, recipe: GoalRecipe) -> Worlds:
        return Worlds(
            learned=self._environments(recipe, recipe.environments),
            measured=self._environments(recipe, min(_TOGETHER, recipe.episodes)),
            sizes=self.sizes,
            goal=self.goal,
        )

    def baselines(self, recipe: GoalRecipe) -> Mapping[str, Mapping[str, float]]:
        """Uniform random actions, and the base agent before training, in the same episodes."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            untrained = self.build(self.base)
        policies = {"random actions": at_random(self.sizes.action, 0), "untrained agent": deterministic(untrained)}
        found: dict[str, dict[str, float]] = {name: {} for name in policies}
        with closing(self._environments(recipe, min(_TOGETHER, recipe.episodes))) as measured:
            for name, policy in policies.items():
                for prefix, part in (("", "validation"), ("test_", "test")):
                    metrics = evaluate(measured, policy, part, recipe.episodes)
                    found[name] |= {f"{prefix}{metric}": value for metric, value in metrics.items()}
        return found

    def render(self, network: nn.Module | None, file: Path) -> None:
        """Write a GIF or MP4 of a validation episode, as long as in preset proxy. See Task.render."""
        self.prepare()
        render.check(file)
        if network is not None:
            assert isinstance(network, GoalAgent)
            environment = self.environment(self.presets["proxy"].length, render=True)
            render.film(environment, self.goal_at, network, file)

    def _environments(self, recipe: GoalRecipe, count: int) -> Environments:
        return environments(partial(self.environment, recipe.length), count, self.goal_at, recipe.processes)


def _versions(*packages: str) -> list[str]:
    """Those of the packages that are there: an environment of another package may not need all of ours."""
    found = []
    for name in packages:
        with suppress(PackageNotFoundError):
            found.append(f"{name}={version(name)}")
    return found
