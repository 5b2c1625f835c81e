"""Rollouts of a policy, for training and evaluation.

Shapes: E = environments, n = steps, S = features of a state, G = of a goal, A = of an action.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Generator, Tensor

from search_spaces.models.residual_mlp import GoalAgent
from tasks.data.splits import derived_seed
from tasks.goal_rl.contrastive import sample_actions
from tasks.goal_rl.replay_buffer import Rollout
from tasks.goal_rl.vectors import Environments

Policy = Callable[[Tensor, Tensor], Tensor]
"""States [E, S] and goals [E, G] to actions [E, A] in [-1, 1], on the CPU."""


def exploring(agent: GoalAgent, generator: Generator) -> Policy:
    """Return the agent's stochastic policy."""
    device = generator.device

    @torch.inference_mode()
    def policy(states: Tensor, goals: Tensor) -> Tensor:
        mean, log_std = agent.policy(states.to(device), goals.to(device))
        noise = torch.randn(mean.shape, generator=generator, device=device)
        return sample_actions(mean, log_std, noise).cpu()

    return policy


def deterministic(agent: GoalAgent) -> Policy:
    """Return the agent's deterministic policy: tanh of the mean."""
    device = next(agent.parameters()).device

    @torch.inference_mode()
    def policy(states: Tensor, goals: Tensor) -> Tensor:
        return torch.tanh(agent.policy(states.to(device), goals.to(device))[0]).cpu()

    return policy


def random_policy(actions: int, seed: int) -> Policy:
    """Return a policy of uniform random actions."""
    generator = Generator().manual_seed(seed)
    return lambda states, goals: 2 * torch.rand(len(states), actions, generator=generator) - 1


class Collector:
    """A collector of continuous rollouts; an episode that ends is followed by the next.

    Episode k of environment e has a seed derived from both, so that a resumed training has the same episodes.

    Attributes:
        episodes: Number of episodes started in each environment, [E].
    """

    def __init__(self, environments: Environments, seed: int) -> None:
        self.environments = environments
        self.seed = seed
        self.episodes = [0] * environments.count
        self._due = [True] * environments.count

    def rollout(self, steps: int, policy: Policy) -> Rollout:
        """Return so many steps of every environment."""
        states, actions, dones, final = [], [], [], []
        for _ in range(steps):
            if any(self._due):
                self._begin()
            states.append(self.environments.states)
            actions.append(policy(self.environments.states, self.environments.goals))
            _, over = self.environments.step(actions[-1])
            dones.append(over)
            final.append(self.environments.states[over])
            self._due = over.tolist()
        return Rollout(torch.stack(states), torch.stack(actions), torch.stack(dones), torch.cat(final))

    def resume(self, episodes: Sequence[int], actions: Sequence[Tensor]) -> None:
        """Replay each environment to [m, A] actions after the start of its last episode; `episodes` were started, [E].

        All environments step together, so the one with the most actions starts first and the others later.
        """
        self.episodes = list(episodes)
        self._due = [len(replay_actions) == 0 for replay_actions in actions]
        seeds = [derived_seed(self.seed, "episode", e, max(0, k - 1)) for e, k in enumerate(self.episodes)]
        most = max(map(len, actions))
        over = [True] * len(actions)
        for step in range(most):
            waits = [most - len(replay_actions) - step for replay_actions in actions]
            due = [done or wait == 0 for done, wait in zip(over, waits, strict=True)]
            if any(due):
                self.environments.reset(due, seeds)
            pairs = zip(actions, waits, strict=True)
            rows = [
                replay_actions[-wait] if wait <= 0 else replay_actions.new_zeros(replay_actions.shape[1])
                for replay_actions, wait in pairs
            ]
            over = self.environments.step(torch.stack(rows))[1].tolist()

    def _begin(self) -> None:
        seeds = [derived_seed(self.seed, "episode", e, k) for e, k in enumerate(self.episodes)]
        self.environments.reset(self._due, seeds)
        self.episodes = [k + due for k, due in zip(self.episodes, self._due, strict=True)]


def evaluate(environments: Environments, policy: Policy, part: str, episodes: int) -> Mapping[str, float]:
    """Return `time_at_goal` and `success_any`, means over episodes, with standard errors.

    The episodes of a part, "validation" or "test", are the same for every agent. An episode that ends early counts its
    steps until then.
    """
    counts: list[Tensor] = []
    for first in range(0, episodes, environments.count):
        seeds = [derived_seed(0, part, first + e) for e in range(environments.count)]
        counts.append(_count_goal_steps(environments, policy, seeds)[: episodes - first])
    steps = torch.cat(counts).double()
    successes = (steps > 0).double()
    error = math.sqrt(len(steps))
    return {
        "time_at_goal": steps.mean().item(),
        "time_at_goal_se": steps.std(correction=0).item() / error,
        "success_any": successes.mean().item(),
        "success_any_se": successes.std(correction=0).item() / error,
    }


def _count_goal_steps(environments: Environments, policy: Policy, seeds: list[int]) -> Tensor:
    """Return the steps at the goal in one episode of each environment, [E]."""
    count = torch.zeros(environments.count)
    running = torch.ones(environments.count, dtype=torch.bool)
    due = running.tolist()
    while running.any():
        if any(due):  # finished episodes restart, since all step together, but do not count
            environments.reset(due, seeds)
        at_goal, over = environments.step(policy(environments.states, environments.goals))
        count += at_goal & running
        running &= ~over
        due = over.tolist()
    return count
