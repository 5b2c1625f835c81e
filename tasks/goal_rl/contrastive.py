"""Losses and updates of contrastive reinforcement learning.

The critic is the distance d(s, a, g) = ||phi(s, a) - psi(g)||: small if action a in state s soon leads to goal g. It
learns to tell the goal that a state reached from the goals of other states in the batch. The actor learns actions that
minimize the distance.

Shapes: B = batch, S = features of a state, G = of a goal, A = of an action, R = of a representation.
"""

import math
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.optim import Adam, Optimizer

from search_spaces.models.residual_mlp import GoalAgent
from tasks.goal_rl.recipe import GoalRecipe

Transitions = tuple[Tensor, Tensor, Tensor]
"""States [B, S], the actions taken there [B, A], and goals that were reached later in the same episode [B, G]."""

_TANH_EPS = 1e-6
_LOGIT_EPS = 1e-6


def critic_loss(phi: Tensor, psi: Tensor, penalty: float) -> Tensor:
    """Return InfoNCE with each state's own goal as the positive, plus a penalty on its log-sum-exp.

    With l_ij = -||phi_i - psi_j||: -mean_i(l_ii - lse_j l_ij) + penalty * mean_i((lse_j(l_ij + 1e-6))^2).
    Maps phi(s, a) [B, R] and psi(g) [B, R] to [].
    """
    logits = -torch.cdist(phi, psi)  # [B, B]
    sums = logits.logsumexp(dim=1)  # [B]
    return (sums - logits.diagonal()).mean() + penalty * (sums + _LOGIT_EPS).square().mean()


def actor_loss(distance: Tensor, log_prob: Tensor, alpha: Tensor) -> Tensor:
    """Return mean(alpha log pi(a | s, g) + ||phi(s, a) - psi(g)||), of two [B] to []."""
    return (alpha * log_prob + distance).mean()


def entropy_loss(log_alpha: Tensor, log_prob: Tensor, target: float) -> Tensor:
    """Return alpha mean(-log pi - target): alpha grows while the entropy is below the target. [B] to []."""
    return log_alpha.exp() * (-log_prob.detach() - target).mean()


def sample_actions(mean: Tensor, log_std: Tensor, noise: Tensor) -> Tensor:
    """Return actions tanh(mean + std * noise), [B, A]."""
    return torch.tanh(mean + log_std.exp() * noise)


def sample_with_log_prob(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return the actions of `sample_actions`, [B, A], and their log densities, [B].

    log pi = sum_i log N(u_i; mean_i, std_i) - log(1 - a_i^2 + 1e-6).
    """
    actions = sample_actions(mean, log_std, noise)
    normal = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
    return actions, (normal - torch.log(1 - actions.square() + _TANH_EPS)).sum(dim=-1)


def actor_goals(goals: Tensor, share: float) -> Tensor:
    """Return the actor's training goals, [B, G]: the first fraction `share` are those of the next sample."""
    swaps = round(share * len(goals))
    return torch.cat((goals.roll(-1, dims=0)[:swaps], goals[swaps:]))


class Losses(NamedTuple):
    """The losses of one update, each []."""

    actor: Tensor
    entropy: Tensor
    critic: Tensor


class Learner:
    """An agent with its three optimizers and the entropy weight alpha, which starts at 1."""

    def __init__(self, agent: GoalAgent, actions: int, recipe: GoalRecipe) -> None:
        self.agent = agent
        self.recipe = recipe
        self.target = recipe.entropy * actions
        device = next(agent.parameters()).device
        self.log_alpha = nn.Parameter(torch.zeros((), device=device))
        self._actor = list(agent.actor.parameters())
        self._critic = list(chain(agent.phi.parameters(), agent.psi.parameters()))
        # Fused: one kernel per optimizer instead of one per parameter, which saves a fifth of an update's time.
        self._optimizers = {
            "actor": Adam(self._actor, lr=recipe.lr, fused=True),
            "alpha": Adam([self.log_alpha], lr=recipe.lr),
            "critic": Adam(self._critic, lr=recipe.lr, fused=True),
        }

    def update(self, batch: Transitions, generator: Generator) -> Losses:
        """Take one step of the actor and of alpha, then one of the critic, on the same batch."""
        states, actions, goals = batch
        aims = actor_goals(goals, self.recipe.goals_of_others)
        mean, log_std = self.agent.policy(states, aims)
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        policy_actions, log_prob = sample_with_log_prob(mean, log_std, noise)
        with torch.no_grad():
            places = self.agent.encode_goal(aims)
        distance = torch.linalg.vector_norm(self.agent.encode_state_action(states, policy_actions) - places, dim=-1)
        actor = actor_loss(distance, log_prob, self.log_alpha.detach().exp())
        entropy = entropy_loss(self.log_alpha, log_prob, self.target)
        # Gradients of only these parameters: the actor's loss must not update the critic.
        _step(self._optimizers["actor"], self._actor, torch.autograd.grad(actor, self._actor))
        _step(self._optimizers["alpha"], [self.log_alpha], torch.autograd.grad(entropy, [self.log_alpha]))
        critic = critic_loss(
            self.agent.encode_state_action(states, actions), self.agent.encode_goal(goals), self.recipe.penalty
        )
        _step(self._optimizers["critic"], self._critic, torch.autograd.grad(critic, self._critic))
        return Losses(actor.detach(), entropy.detach(), critic.detach())

    def state_dict(self) -> dict[str, Any]:
        """Return all state needed to resume."""
        return {
            "agent": self.agent.state_dict(),
            "log_alpha": self.log_alpha.detach(),
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self._optimizers.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.agent.load_state_dict(state["agent"])
        with torch.no_grad():
            self.log_alpha.copy_(state["log_alpha"])
        for name, optimizer in self._optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])


def _step(optimizer: Optimizer, parameters: list[nn.Parameter], gradients: tuple[Tensor, ...]) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()


def updates(learner: Learner, batches: Iterator[Transitions], generator: Generator) -> Tensor:
    """Update on every batch; return the sum of all losses, [], which stays non-finite once one was."""
    total = learner.log_alpha.new_zeros(())
    for batch in batches:
        total = total + sum(learner.update(batch, generator))
    return total
