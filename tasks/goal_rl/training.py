"""The loop: step, keep, update, measure; and its checkpoint."""

import math
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Generator

from search_spaces.checkpoint import atomic_replace
from search_spaces.models.residual_mlp import GoalAgent, Sizes
from tasks.base import Diverged, Report
from tasks.goal_rl.contrastive import Learner, updates
from tasks.goal_rl.episodes import Collector, deterministic, evaluate, exploring
from tasks.goal_rl.recipe import GoalRecipe
from tasks.goal_rl.replay import Replay
from tasks.goal_rl.vectors import Environments
from tasks.splits import derived_seed
from tasks.training import kept_state

_CHECKPOINT_S = 60.0
_CHECKPOINT_SHARE = 0.02  # of the time: a full replay of the paper's size takes a while to write


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one training run is made of.

    Attributes:
        environments: What is learned in.
        measured: The same environments to measure in, which must not disturb the others' episodes.
        sizes: Features of states, goals and actions.
        goal: Where the goal's coordinates stand in a state.
        recipe: The settings.
        seed: Of every draw.
        report: Where measurements on the way go.
        identity: All that its numbers depend on, in words.
        checkpoint: The file that an interrupted run is continued from, or None.
    """

    environments: Environments
    measured: Environments
    sizes: Sizes
    goal: slice
    recipe: GoalRecipe
    seed: int
    report: Report
    identity: str
    checkpoint: Path | None


@dataclass(slots=True)
class Spent:
    """What a run has taken since its process began it.

    Attributes:
        steps: Of environments.
        stepping_s: Seconds for these.
        updates: Of the agent.
        updating_s: Seconds for these.
    """

    steps: int = 0
    stepping_s: float = 0.0
    updates: int = 0
    updating_s: float = 0.0

    def speeds(self) -> dict[str, float]:
        """Steps and updates a second."""
        return {
            "env_steps_per_second": self.steps / max(self.stepping_s, 1e-9),
            "updates_per_second": self.updates / max(self.updating_s, 1e-9),
        }


class Run:
    """Trains one agent.

    A run that was interrupted goes on from its last checkpoint, between two rounds. Where rounds end with episodes, it
    ends with the numbers it would have had; where they do not (preset paper), the episodes under way are given up and
    new ones begun.
    """

    def __init__(self, agent: GoalAgent, job: Job) -> None:
        recipe, sizes = job.recipe, job.sizes
        device = next(agent.parameters()).device
        self.job = job
        self.learner = Learner(agent, sizes.action, recipe)
        kept = (recipe.environments, recipe.capacity), (sizes.state, sizes.action)
        self.replay = Replay(*kept, job.goal, recipe.discount, device)
        self.collector = Collector(job.environments, job.seed)
        self.generator = Generator(device).manual_seed(derived_seed(job.seed, "draws"))
        self.round = 0
        self.curve: list[tuple[int, dict[str, float]]] = []
        self.spent = Spent()
        self._save_at = time.monotonic() + _CHECKPOINT_S

    @property
    def agent(self) -> GoalAgent:
        """What is trained."""
        return self.learner.agent

    def train(self) -> None:
        """Go on to the end. Raises Diverged where a loss is not finite."""
        recipe = self.job.recipe
        self._resume()
        while self.round < recipe.prefill + recipe.rounds:
            self._collect()
            self.round += 1
            if self.round > recipe.prefill:
                self._update()
                self._report()
            self._save()

    def measure(self, part: str) -> dict[str, float]:
        """The metrics of a part, by the policy without noise."""
        policy = deterministic(self.agent)
        return dict(evaluate(self.job.measured, policy, part, self.job.recipe.episodes))

    def _collect(self) -> None:
        recipe, began = self.job.recipe, time.perf_counter()
        self.replay.extend(self.collector.roll(recipe.unroll, exploring(self.agent, self.generator)))
        self.spent.steps += recipe.unroll * recipe.environments
        self.spent.stepping_s += time.perf_counter() - began

    def _update(self) -> None:
        recipe, began = self.job.recipe, time.perf_counter()
        batches = (self.replay.sample(recipe.batch, self.generator) for _ in range(recipe.updates))
        loss = updates(self.learner, batches, self.generator).item()
        self.spent.updates += recipe.updates
        self.spent.updating_s += time.perf_counter() - began
        if not math.isfinite(loss):
            raise Diverged(f"the loss is not finite, in round {self.round} of {recipe.prefill + recipe.rounds}")

    def _report(self) -> None:
        recipe, learned = self.job.recipe, self.round - self.job.recipe.prefill
        if learned in recipe.report_rounds():
            self.curve.append((learned * recipe.updates, self.measure("validation")))
            self.job.report(*self.curve[-1])

    def _save(self) -> None:
        """Write a checkpoint where one is due, whole or not at all: a machine may stop at any moment."""
        path, began = self.job.checkpoint, time.monotonic()
        if path is None or began < self._save_at:
            return
        kept = {
            "run": self.job.identity,
            "learner": self.learner.state_dict(),
            "replay": self.replay.state_dict(),
            "episodes": self.collector.episodes,
            "generator": self.generator.get_state(),
            "round": self.round,
            "curve": self.curve,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        torch.save(kept, partial)
        atomic_replace(partial, path)
        now = time.monotonic()
        self._save_at = now + max(_CHECKPOINT_S, (now - began) / _CHECKPOINT_SHARE)

    def _resume(self) -> None:
        """Take up the checkpoint, where there is one of this very run, and say again what it had reported."""
        kept = kept_state(self.job.checkpoint, self.job.identity, "cpu")
        if kept is None:
            return
        self.learner.load_state_dict(kept["learner"])
        self.replay.load_state_dict(kept["replay"])
        self.replay.cut()
        self.collector.episodes = list(kept["episodes"])
        self.generator.set_state(kept["generator"].cpu())
        self.round = kept["round"]
        for step, metrics in kept["curve"]:
            self.curve.append((step, metrics))
            self.job.report(step, metrics)


def trained(agent: GoalAgent, job: Job) -> tuple[Mapping[str, float], Mapping[str, float], Spent]:
    """Train, and measure validation and test; the environments are closed."""
    with closing(job.environments), closing(job.measured):
        run = Run(agent, job)
        run.train()
        return run.measure("validation"), run.measure("test"), run.spent
