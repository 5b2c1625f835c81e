"""Residual MLPs without a token axis, for deep goal-conditioned reinforcement learning.

Source: Wang et al., 1000 Layer Networks for Self-Supervised RL (2025), and its official code (scaling-crl). Depth
counts blocks of four layers here, and layers there: their depth 16 is 4 blocks.

Shapes: B = batch, S = features of a state, G = of a goal, A = of an action, R = of a representation, D = width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.dense import DenseBlock, DenseNormSwish, count_dense, count_dense_block, init_linear
from search_spaces.layers.stack import build_stack, count_stack
from search_spaces.support.count import Count, linear
from search_spaces.support.errors import UserError
from search_spaces.topologies.base import Site

REPRESENTATION = 64
"""Output features of both encoders, R."""

_LOG_STD = (-5.0, 2.0)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Features of an agent's inputs and outputs.

    Attributes:
        state: S, including the goal's coordinates.
        goal: G.
        action: A.
    """

    state: int
    goal: int
    action: int


class ResidualMLP(nn.Module):
    """A dense layer, blocks connected by the architecture's topology, and a linear head without a norm before it."""

    def __init__(self, architecture: Architecture, inputs: int, outputs: int) -> None:
        super().__init__()
        if architecture.heads:
            message = f"a residual MLP has no heads, got heads={architecture.heads}. Set heads=0,head_dim=0."
            raise UserError("unsupported", message, option="heads", value=architecture.heads, choices=(0,))
        blocks = [DenseBlock(architecture.width, hidden) for hidden in architecture.by_block("hidden")]
        self.first = DenseNormSwish(inputs, architecture.width)
        self.stack = build_stack(architecture, blocks, None, num_embeddings=1)
        self.head = init_linear(nn.Linear(architecture.width, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Map [B, inputs] to [B, outputs]."""
        return self.head(self.stack(self.first(x)))  # type: ignore[no-any-return]  # nn.Module returns Any


class GoalAgent(nn.Module):
    """An actor, and a critic with two encoders whose distance predicts how soon a goal is reached.

    Attributes:
        actor: Maps state and goal to mean and spread of actions before tanh, with one head for both.
        phi: Maps state and action to a representation.
        psi: Maps a goal to a representation.
    """

    def __init__(self, architecture: Architecture, sizes: Sizes) -> None:
        super().__init__()
        self.actor = ResidualMLP(architecture, sizes.state + sizes.goal, 2 * sizes.action)
        self.phi = ResidualMLP(architecture, sizes.state + sizes.action, REPRESENTATION)
        self.psi = ResidualMLP(architecture, sizes.goal, REPRESENTATION)

    def policy(self, states: Tensor, goals: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log standard deviation, in [-5, 2], of actions before tanh: [B, S], [B, G] to [B, A] each."""
        mean, raw = self.actor(torch.cat((states, goals), dim=-1)).chunk(2, dim=-1)
        low, high = _LOG_STD
        return mean, low + (high - low) / 2 * (torch.tanh(raw) + 1)

    def encode_state_action(self, states: Tensor, actions: Tensor) -> Tensor:
        """Return phi(s, a): [B, S], [B, A] to [B, R]."""
        return self.phi(torch.cat((states, actions), dim=-1))  # type: ignore[no-any-return]

    def encode_goal(self, goals: Tensor) -> Tensor:
        """Return psi(g): [B, G] to [B, R]."""
        return self.psi(goals)  # type: ignore[no-any-return]

    def forward(self, states: Tensor, goals: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Run all three networks once, for counting costs; return action means, phi and psi."""
        mean, _ = self.policy(states, goals)
        return mean, self.encode_state_action(states, actions), self.encode_goal(goals)


def count_residual_mlp(architecture: Architecture, inputs: int, outputs: int) -> Count:
    """Count a ResidualMLP in closed form, for one example."""
    width, depth = architecture.width, architecture.depth
    layers = sum((count_dense_block(width, hidden) for hidden in architecture.by_block("hidden")), Count())
    stack = count_stack(architecture, [Site(("x",), width, True)] * depth, layers, None, positions=1, num_embeddings=1)
    return count_dense(inputs, width) + stack + linear(width, outputs)


def count_goal_agent(architecture: Architecture, sizes: Sizes) -> Count:
    """Count a GoalAgent in closed form, with one run of each network."""
    return (
        count_residual_mlp(architecture, sizes.state + sizes.goal, 2 * sizes.action)
        + count_residual_mlp(architecture, sizes.state + sizes.action, REPRESENTATION)
        + count_residual_mlp(architecture, sizes.goal, REPRESENTATION)
    )
