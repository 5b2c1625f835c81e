"""The base class of goal tasks: networks, metrics and training."""

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
from tasks.base import FitResult, Metric, Task
from tasks.goal_rl import render
from tasks.goal_rl.environments import sizes
from tasks.goal_rl.episodes import deterministic, evaluate, random_policy
from tasks.goal_rl.recipe import GoalRecipe
from tasks.goal_rl.training import GoalTraining, TrainingEnvironments
from tasks.goal_rl.vectors import Environments, make_environments
from tasks.run import Run
from tasks.training.loop import checkpoint_for, isolated_rng, train

if TYPE_CHECKING:
    from gymnasium import Env

_EVAL_ENVIRONMENTS = 16  # environments that are evaluated at once
PACKAGES = ("gymnasium", "gymnasium-robotics", "mujoco")


class GoalTask(Task):
    """A task of reaching goals in one environment. Its presets are GoalRecipes.

    `time_at_goal` is the number of steps at the goal until the episode first ends. `success_any` is the fraction of
    episodes with at least one such step. Both use the policy's mean action. Validation and test are episodes with
    different starts and goals; they are the same for all agents.

    Besides the metrics there are `env_steps` (of all environments) and two speeds.

    With a fixed number of threads and version of MuJoCo, `fit` on a CPU is bitwise reproducible.

    Attributes:
        goal_offset: First index of the goal's coordinates in an observation. None if it lacks them; they are then put
            in front of it.
    """

    metrics = (Metric("time_at_goal", "steps", "max"), Metric("success_any", "share", "max"))
    takes_data = False
    base = Architecture(depth=2, width=64, hidden=64)
    bases = {"paper": Architecture(depth=4, width=256, hidden=256)}  # noqa: RUF012  # 16 layers
    goal_offset: ClassVar[int | None]

    @abstractmethod
    def environment(self, length: int, *, render: bool = False) -> "Env[Any, Any]":
        """Make one environment with episodes of `length` steps (0 for its own length), with images if `render`.

        Raises:
            UserError: It cannot be made.
        """

    @cached_property
    def sizes(self) -> Sizes:
        """Features of states, goals and actions."""
        with torch.device("cpu"), closing(self.environment(0)) as environment:
            return sizes(environment, self.name, self.goal_offset)

    @property
    def goal(self) -> slice:
        """Slice of the goal's coordinates in a state."""
        first = self.goal_offset or 0
        return slice(first, first + self.sizes.goal)

    def packages(self) -> tuple[str, ...]:
        """Return packages of the environment, other than gymnasium-robotics and MuJoCo."""
        return ()

    def prepare(self) -> None:
        """Check that an environment can be made."""
        _ = self.sizes

    def build(self, architecture: Architecture) -> GoalAgent:
        """Build the agent: actor and encoders."""
        return GoalAgent(architecture, self.sizes)

    def example(self) -> tuple[Tensor, ...]:
        """Return one state, one goal and one action."""
        return tuple(torch.zeros(1, n) for n in (self.sizes.state, self.sizes.goal, self.sizes.action))

    def closed_form(self, architecture: Architecture) -> Count:
        """Return the count of one call of the actor and of both encoders."""
        return count_goal_agent(architecture, self.sizes)

    def fingerprint(self, recipe: GoalRecipe) -> str:
        """Return hex digits of the task and the versions of its simulator."""
        text = " ".join((self.name, str(self.version), *_versions(*PACKAGES, *self.packages())))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def fit(self, run: Run) -> FitResult:
        """Train by the run's recipe and evaluate. See Task.fit, and GoalTraining for resuming."""
        with isolated_rng(run), closing(self._training_environments(run.recipe)) as environments:
            return train(run, self._training(run, environments), checkpoint_for(self, run))

    def training_step(self, run: Run) -> Callable[[], None]:
        """Return a function that updates actor, entropy weight and critic once, on batches of one collected round."""
        with isolated_rng(run), closing(self._training_environments(run.recipe)) as environments:
            training = self._training(run, environments)
            training.collect()
        return training.update_once

    def _training(self, run: Run, environments: TrainingEnvironments) -> GoalTraining:
        agent = self.build(run.architecture)
        if run.start is not None:
            load_weights(agent, run.start, "the checkpoint")
        device = run.device if run.recipe.accelerator == "auto" else torch.device("cpu")
        return GoalTraining(agent.to(device), environments, run.recipe, run.seed)

    def _training_environments(self, recipe: GoalRecipe) -> TrainingEnvironments:
        return TrainingEnvironments(
            train_env=self._environments(recipe, recipe.environments),
            eval_env=self._environments(recipe, min(_EVAL_ENVIRONMENTS, recipe.episodes)),
            sizes=self.sizes,
            goal=self.goal,
        )

    def baselines(self, recipe: GoalRecipe) -> Mapping[str, Mapping[str, float]]:
        """Return the metrics of uniform random actions, and of the untrained base agent, in the same episodes."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            agent = self.build(self.base)
        policies = {"random actions": random_policy(self.sizes.action, 0), "untrained agent": deterministic(agent)}
        columns: dict[str, dict[str, float]] = {name: {} for name in policies}
        with closing(self._environments(recipe, min(_EVAL_ENVIRONMENTS, recipe.episodes))) as environments:
            for name, policy in policies.items():
                for prefix, part in (("", "validation"), ("test_", "test")):
                    metrics = evaluate(environments, policy, part, recipe.episodes)
                    columns[name] |= {f"{prefix}{metric}": value for metric, value in metrics.items()}
        return columns

    def render(self, network: nn.Module | None, file: Path) -> None:
        """Write a GIF or MP4 of a validation episode of preset proxy's length. See Task.render."""
        self.prepare()
        render.check(file)
        if network is not None:
            assert isinstance(network, GoalAgent)
            environment = self.environment(self.presets["proxy"].length, render=True)
            render.film(environment, self.goal_offset, network, file)

    def _environments(self, recipe: GoalRecipe, count: int) -> Environments:
        return make_environments(partial(self.environment, recipe.length), count, self.goal_offset, recipe.processes)


def _versions(*packages: str) -> list[str]:
    """Return the versions of the installed packages; an environment may not need all of them."""
    versions = []
    for name in packages:
        with suppress(PackageNotFoundError):
            versions.append(f"{name}={version(name)}")
    return versions
