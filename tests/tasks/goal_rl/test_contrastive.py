"""Losses against their equations, and the effects of one update."""

import math
from copy import deepcopy

import pytest
import torch
from torch import Generator, Tensor
from torch.distributions import Normal

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.residual_mlp import GoalAgent, Sizes
from tasks.goal_rl.contrastive import (
    Learner,
    Transitions,
    actor_goals,
    actor_loss,
    critic_loss,
    entropy_loss,
    sample_with_log_prob,
    updates,
)
from tasks.goal_rl.recipe import GoalRecipe

SIZES = Sizes(state=5, goal=2, action=3)
RECIPE = GoalRecipe(unroll=5, rounds=1, updates=1, batch=8, lr=1e-2, goals_of_others=0.0)


def agent() -> GoalAgent:
    torch.manual_seed(0)
    return GoalAgent(Architecture(depth=1, width=8, hidden=8), SIZES)


def batch() -> Transitions:
    generator = Generator().manual_seed(1)
    return tuple(torch.randn(8, n, generator=generator) for n in (5, 3, 2))  # type: ignore[return-value]


def test_critic_loss_matches_the_equation() -> None:
    torch.manual_seed(0)
    reach, place = torch.randn(6, 4, dtype=torch.float64), torch.randn(6, 4, dtype=torch.float64)
    info, squares = 0.0, 0.0
    for i in range(6):
        logits = [-math.sqrt(sum((float(a) - float(b)) ** 2 for a, b in zip(reach[i], p, strict=True))) for p in place]
        info -= (logits[i] - math.log(sum(math.exp(logit) for logit in logits))) / 6
        squares += math.log(sum(math.exp(logit + 1e-6) for logit in logits)) ** 2 / 6
    assert critic_loss(reach, place, 0.1).item() == pytest.approx(info + 0.1 * squares, rel=1e-9)
    assert critic_loss(reach, place, 0.0).item() == pytest.approx(info, rel=1e-9)


def test_critic_gradient_is_finite_at_the_goal() -> None:
    reach = torch.randn(30, 4, requires_grad=True)
    critic_loss(reach, reach.detach().clone(), 0.1).backward()
    assert reach.grad is not None
    assert reach.grad.isfinite().all()


def test_actor_and_entropy_losses_match_the_equations() -> None:
    distance, log_prob = torch.tensor([1.0, 3.0]), torch.tensor([0.5, -2.5], requires_grad=True)
    alpha = torch.tensor(0.3)
    assert actor_loss(distance, log_prob, alpha).item() == pytest.approx((0.3 * 0.5 + 1 + 0.3 * -2.5 + 3) / 2)
    loss = entropy_loss(alpha.log(), log_prob, target=-1.5)
    assert loss.item() == pytest.approx(0.3 * ((-0.5 + 1.5) + (2.5 + 1.5)) / 2)
    assert not loss.requires_grad  # no gradient for the policy


def test_action_density_is_that_of_a_squashed_normal() -> None:
    torch.manual_seed(0)
    mean, log_std, noise = torch.randn(7, 3), torch.randn(7, 3), torch.randn(7, 3)
    actions, log_prob = sample_with_log_prob(mean, log_std, noise)
    before = mean + log_std.exp() * noise
    torch.testing.assert_close(actions, before.tanh())
    expected = Normal(mean, log_std.exp()).log_prob(before) - torch.log(1 - before.tanh() ** 2 + 1e-6)
    torch.testing.assert_close(log_prob, expected.sum(1))


def test_the_given_share_of_actor_goals_comes_from_other_samples() -> None:
    goals = torch.arange(8.0)[:, None]
    for share, count in ((0.0, 0), (0.5, 4), (1.0, 8)):
        is_other = actor_goals(goals, share) != goals
        assert is_other.sum() == count
        assert set(actor_goals(goals, share)[:count].flatten().tolist()) <= set(range(8))


def weight_changes(before: GoalAgent, after: GoalAgent) -> dict[str, float]:
    changes = {}
    for name in ("actor", "phi", "psi"):
        pairs = zip(getattr(before, name).parameters(), getattr(after, name).parameters(), strict=True)
        changes[name] = max((a - b).abs().max().item() for a, b in pairs)
    return changes


def test_an_update_changes_all_networks_and_alpha() -> None:
    network = agent()
    before = deepcopy(network)
    learner = Learner(network, 3, RECIPE)
    losses = learner.update(batch(), Generator().manual_seed(0))
    assert all(loss.isfinite() for loss in losses)
    assert all(change > 0 for change in weight_changes(before, network).values())
    assert learner.log_alpha.item() != 0


def by_hand(network: GoalAgent, batch: Transitions, noise: Tensor) -> None:
    """One update with autograd and three Adams, in the published order."""
    states, actions, goals = batch
    log_alpha = torch.zeros((), requires_grad=True)
    mean, log_std = network.policy(states, goals)
    action, log_prob = sample_with_log_prob(mean, log_std, noise)
    distance = (network.encode_state_action(states, action) - network.encode_goal(goals)).norm(dim=1)
    loss = (log_alpha.exp().detach() * log_prob + distance).mean()
    network.zero_grad()
    loss.backward()
    torch.optim.Adam(network.actor.parameters(), lr=1e-2).step()
    network.zero_grad()
    critic_loss(network.encode_state_action(states, actions), network.encode_goal(goals), 0.1).backward()
    torch.optim.Adam([*network.phi.parameters(), *network.psi.parameters()], lr=1e-2).step()


def test_an_update_is_the_actors_step_then_the_critics() -> None:
    actual, expected = agent(), agent()
    Learner(actual, 3, RECIPE).update(batch(), Generator().manual_seed(5))
    by_hand(expected, batch(), torch.randn(8, 3, generator=Generator().manual_seed(5)))
    for mine, their in zip(actual.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(mine, their, rtol=0, atol=1e-5)


def test_alpha_grows_while_the_entropy_is_below_its_target() -> None:
    for target, grows in ((100.0, True), (-100.0, False)):
        learner = Learner(agent(), 3, GoalRecipe(unroll=5, rounds=1, updates=1, entropy=target / 3))
        learner.update(batch(), Generator().manual_seed(0))
        assert (learner.log_alpha.item() > 0) == grows


def test_the_critic_learns_to_recognise_goals() -> None:
    learner, generator = Learner(agent(), 3, RECIPE), Generator().manual_seed(0)
    first = learner.update(batch(), generator).critic
    updates(learner, iter([batch()] * 60), generator)
    assert learner.update(batch(), generator).critic < first / 2


def test_a_loss_that_is_not_finite_is_reported() -> None:
    states, actions, goals = batch()
    learner = Learner(agent(), 3, RECIPE)
    total = updates(learner, iter([(states * math.nan, actions, goals), batch()]), Generator().manual_seed(0))
    assert not total.isfinite()


def test_a_restored_learner_continues_identically() -> None:
    first, generator = Learner(agent(), 3, RECIPE), Generator().manual_seed(0)
    first.update(batch(), generator)
    second = Learner(agent(), 3, RECIPE)
    second.load_state_dict(deepcopy(first.state_dict()))
    for learner in (first, second):
        learner.update(batch(), Generator().manual_seed(9))
    assert all(change == 0 for change in weight_changes(first.agent, second.agent).values())
    assert first.log_alpha == second.log_alpha
