"""What all goal tasks share: networks, metrics, and how they are trained."""

import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import closing
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from search_spaces.architecture import Architecture
from search_spaces.count import Count
from search_spaces.models.residual_mlp import GoalAgent, Sizes, count_goal_agent
from tasks.base import Fitted, Metric, Report, Task
from tasks.goal_rl import render
from tasks.goal_rl.environments import sizes
from tasks.goal_rl.episodes import at_random, deterministic, evaluate
from tasks.goal_rl.recipe import GoalRecipe
from tasks.goal_rl.training import Job, trained
from tasks.goal_rl.vectors import Environments, environments

if TYPE_CHECKING:
    from gymnasium import Env

_TOGETHER = 16  # environments that are measured in at once
_PACKAGES = ("gymnasium", "gymnasium-robotics", "mujoco")


class GoalTask(Task):
    """Reach goals in one kind of environment. Its presets are GoalRecipes.

    `time_at_goal` is the number of steps at the goal in an episode, counted until the episode first ends, and
    `success_any` the share of episodes with at least one. Both are measured with the policy's mean action. Validation
    and test are episodes with other starts and goals; they are the same for all agents.

    Beside the metrics a Row has `env_steps` (of all environments), `goals_of_others` (the recipe's) and two speeds.

    With one number of threads and one version of MuJoCo, `fit` gives the same numbers on a CPU to the last bit.

    Attributes:
        goal_at: Where the goal's coordinates begin in an observation; None where they are not in it, and are put in
            front of it.
    """

    metrics = (Metric("time_at_goal", "steps", "max"), Metric("success_any", "share", "max"))
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

    def fit(self, architecture: Architecture, preset: str, seed: int, folder: Path | None, report: Report) -> Fitted:
        """Train by the preset's recipe and measure. See Task.fit, and Run for what a checkpoint continues."""
        recipe: GoalRecipe = self.presets[preset]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            agent = self.build(architecture).to(_device(recipe))
        job = Job(
            environments=self._environments(recipe, recipe.environments),
            measured=self._environments(recipe, min(_TOGETHER, recipe.episodes)),
            sizes=self.sizes,
            goal=self.goal,
            recipe=recipe,
            seed=seed,
            report=report,
            identity=f"{self.name} {self.version} {self.fingerprint} {architecture} {recipe!r} seed={seed}",
            checkpoint=folder / "last.ckpt" if folder else None,
        )
        validation, test, spent = trained(agent, job)
        if job.checkpoint is not None:
            job.checkpoint.unlink(missing_ok=True)
        lived = (recipe.prefill + recipe.rounds) * recipe.unroll * recipe.environments
        return Fitted(
            steps=recipe.rounds * recipe.updates,
            data=self.fingerprint,
            validation={**validation, "env_steps": lived, "goals_of_others": recipe.goals_of_others},
            test=test,
            network=agent,
            speeds=spent.speeds(),
        )

    def baselines(self, preset: str) -> Mapping[str, Mapping[str, float]]:
        """Uniform random actions, and the preset's base agent before training, in the same episodes."""
        recipe: GoalRecipe = self.presets[preset]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            untrained = self.build(self.base_for(preset))
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

    @property
    def fingerprint(self) -> str:
        """Of what the physics is: the task and the versions of its simulator."""
        text = " ".join((self.name, str(self.version), *(f"{name}={version(name)}" for name in _PACKAGES)))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _environments(self, recipe: GoalRecipe, count: int) -> Environments:
        return environments(partial(self.environment, recipe.length), count, self.goal_at, recipe.processes)


def _device(recipe: GoalRecipe) -> torch.device:
    return torch.device("cuda" if recipe.accelerator == "auto" and torch.cuda.is_available() else "cpu")
