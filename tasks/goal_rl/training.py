"""Training of an agent in rounds of environment steps and updates, and its checkpoint."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Literal

from torch import Generator, nn

from search_spaces.models.residual_mlp import GoalAgent, Sizes
from tasks.base import Diverged
from tasks.data.splits import derived_seed
from tasks.goal_rl.contrastive import Learner, Transitions, updates
from tasks.goal_rl.episodes import Collector, deterministic, evaluate, exploring
from tasks.goal_rl.recipe import GoalRecipe
from tasks.goal_rl.replay_buffer import ReplayBuffer
from tasks.goal_rl.vectors import Environments
from tasks.training.loop import Training


@dataclass(slots=True)
class Throughput:
    """Counts and times of a run since its process started.

    Attributes:
        steps: Environment steps.
        stepping_s: Seconds for these.
        updates: Updates of the agent.
        updating_s: Seconds for these.
    """

    steps: int = 0
    stepping_s: float = 0.0
    updates: int = 0
    updating_s: float = 0.0

    def speeds(self) -> dict[str, float]:
        """Return steps and updates per second."""
        return {
            "env_steps_per_second": self.steps / max(self.stepping_s, 1e-9),
            "updates_per_second": self.updates / max(self.updating_s, 1e-9),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEnvironments:
    """The environments of a training.

    Attributes:
        train_env: The environments to train in.
        eval_env: Separate environments to evaluate in, so that training episodes are not disturbed.
        sizes: Features of states, goals and actions.
        goal: Slice of the goal's coordinates in a state.
    """

    train_env: Environments
    eval_env: Environments
    sizes: Sizes
    goal: slice

    def close(self) -> None:
        """Close the simulators."""
        self.train_env.close()
        self.eval_env.close()


class GoalTraining(Training):
    """The training of one agent; it advances by a round, which counts as the recipe's `updates` steps.

    An interrupted run resumes between two rounds. Its unfinished episodes are started again and their actions repeated.
    Those longer than the replay buffer are closed.
    """

    def __init__(self, agent: GoalAgent, environments: TrainingEnvironments, recipe: GoalRecipe, seed: int) -> None:
        device = next(agent.parameters()).device
        self.environments, self.recipe = environments, recipe
        self.steps = recipe.rounds * recipe.updates
        self.reports = frozenset(round_number * recipe.updates for round_number in recipe.report_rounds())
        self.learner = Learner(agent, environments.sizes.action, recipe)
        size = (recipe.environments, recipe.capacity), (environments.sizes.state, environments.sizes.action)
        self.replay = ReplayBuffer(*size, environments.goal, recipe.discount, device)
        self.collector = Collector(environments.train_env, seed)
        self.generator = Generator(device).manual_seed(derived_seed(seed, "draws"))
        self.round = 0
        self.throughput = Throughput()

    @property
    def step(self) -> int:
        """Optimizer steps taken, by the actor and by the critic each."""
        return max(0, self.round - self.recipe.prefill) * self.recipe.updates

    @property
    def network(self) -> nn.Module:
        return self.learner.agent

    def advance(self) -> None:
        """Step the environments, and update after the prefill. Raises Diverged if a loss is not finite."""
        self.collect()
        self.round += 1
        if self.round > self.recipe.prefill:
            self._update()

    def check(self) -> None:
        """Do nothing: each round checks its losses."""

    def measure(self, part: Literal["validation", "test"]) -> Mapping[str, float]:
        """Return the metrics of a part under the deterministic policy."""
        return dict(evaluate(self.environments.eval_env, deterministic(self.learner.agent), part, self.recipe.episodes))

    def extra_metrics(self) -> Mapping[str, float]:
        """Return the number of steps of all environments."""
        return {"env_steps": self.round * self.recipe.unroll * self.recipe.environments}

    def speeds(self) -> Mapping[str, float]:
        """Return steps and updates per second since this process started."""
        return self.throughput.speeds()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of agent, optimizers, replay buffer, episodes and generator."""
        return {
            "learner": self.learner.state_dict(),
            "replay": self.replay.state_dict(),
            "episodes": self.collector.episodes,
            "generator": self.generator.get_state(),
            "round": self.round,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, and replay the unfinished episodes."""
        self.learner.load_state_dict(state["learner"])
        self.replay.load_state_dict(state["replay"])
        self.collector.resume(state["episodes"], self.replay.open_episodes())
        self.generator.set_state(state["generator"])
        self.round = state["round"]

    def collect(self) -> None:
        """Step every environment `unroll` times, and store the rollout."""
        recipe, began = self.recipe, time.perf_counter()
        self.replay.extend(self.collector.rollout(recipe.unroll, exploring(self.learner.agent, self.generator)))
        self.throughput.steps += recipe.unroll * recipe.environments
        self.throughput.stepping_s += time.perf_counter() - began

    def update_once(self) -> None:
        """Take a single step of all optimizers, on a collected batch."""
        self.learner.update(next(self._batches()), self.generator)

    def _batches(self) -> Iterator[Transitions]:
        """Return the batches of a round's updates."""
        recipe = self.recipe
        if recipe.window:
            return self.replay.window_batches(recipe.window, recipe.batch, self.generator)
        return (self.replay.sample(recipe.batch, self.generator) for _ in count())

    def _update(self) -> None:
        recipe, began = self.recipe, time.perf_counter()
        loss = updates(self.learner, islice(self._batches(), recipe.updates), self.generator).item()
        self.throughput.updates += recipe.updates
        self.throughput.updating_s += time.perf_counter() - began
        if not math.isfinite(loss):
            raise Diverged(f"the loss is not finite in round {self.round} of {recipe.prefill + recipe.rounds}")
