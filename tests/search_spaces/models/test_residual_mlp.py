"""Networks of goal-conditioned RL: published sizes, topologies and initialization."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from expect import raises
from grouped import grouped
from nas.costs.count import meta_device
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.residual_mlp import GoalAgent, ResidualMLP, Sizes, count_goal_agent, count_residual_mlp
from search_spaces.support.count import Count
from search_spaces.topologies.registry import TOPOLOGIES, incompatibility_reason

HUMANOID = Sizes(state=268, goal=3, action=17)
PAPER = Architecture(depth=4, width=256, hidden=256)  # 16 layers
SMALL = Architecture(depth=3, width=12, hidden=20)
SIZES = Sizes(state=5, goal=2, action=3)
CASES = [*TOPOLOGIES.names(), "rmt(values=4)"]
VALID_CASES = [case for case in CASES if incompatibility_reason(replace(SMALL, topology=case)) is None]
Agree = Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]


@pytest.mark.parametrize(("layers", "millions"), [(16, (1.140, 1.151, 1.079)), (64, (4.32, 4.33, 4.26))])
def test_the_networks_of_humanoid_have_the_published_sizes(layers: int, millions: tuple[float, ...]) -> None:
    with torch.device("meta"):
        agent = GoalAgent(replace(PAPER, depth=layers // 4), HUMANOID)
    digits = 3 if layers == 16 else 2
    for network, expected in zip((agent.actor, agent.phi, agent.psi), millions, strict=True):
        params = sum(parameter.numel() for parameter in network.parameters())
        assert round(params / 1e6, digits) == expected


def reference(network: ResidualMLP, x: Tensor) -> Tensor:
    """The published network, with a skip around every four layers."""

    def layer(module: nn.Module, x: Tensor) -> Tensor:
        weights = dict(module.named_parameters())
        z = x @ weights["dense.weight"].T + weights["dense.bias"]
        z = (z - z.mean(-1, keepdim=True)) / (z.var(-1, correction=0, keepdim=True) + 1e-6).sqrt()
        z = z * weights["norm.weight"] + weights["norm.bias"]
        return z * torch.sigmoid(z)

    x = layer(network.first, x)
    for block in network.stack.layers:
        y = x
        for module in block.get_submodule("layers"):
            y = layer(module, y)
        x = x + y
    return x @ network.head.weight.T + network.head.bias


def test_the_resnet_network_equals_the_published_one() -> None:
    torch.manual_seed(0)
    network, x = ResidualMLP(SMALL, 7, 4), torch.randn(6, 7)
    torch.testing.assert_close(network(x), reference(network, x))


def test_every_linear_map_starts_uniform_by_its_inputs_and_without_bias() -> None:
    torch.manual_seed(0)
    for module in GoalAgent(PAPER, HUMANOID).modules():
        if isinstance(module, nn.Linear):
            bound = 1 / math.sqrt(module.in_features)
            assert 0.98 * bound < module.weight.abs().max() <= bound
            torch.testing.assert_close(module.weight.std(), torch.tensor(bound / math.sqrt(3)), rtol=0.05, atol=0)
            assert not module.bias.any()


def test_the_spread_of_actions_stays_between_its_bounds() -> None:
    agent = GoalAgent(SMALL, SIZES)
    for shift, expected in ((1e3, 2.0), (-1e3, -5.0), (0.0, -1.5)):
        with torch.no_grad():
            agent.actor.head.weight.zero_()
            agent.actor.head.bias.fill_(shift)
        _, log_std = agent.policy(torch.randn(4, 5), torch.randn(4, 2))
        torch.testing.assert_close(log_std, torch.full((4, 3), expected))


def test_every_topology_without_heads_builds_an_agent() -> None:
    with grouped() as case:
        for topology in CASES:
            architecture = replace(SMALL, topology=topology)
            with case(topology):
                if topology not in VALID_CASES:
                    with raises("unsupported", option="topology", value=topology):
                        GoalAgent(architecture, SIZES)
                    continue
                agent = GoalAgent(architecture, SIZES)
                sum(part.sum() for part in agent(torch.randn(4, 5), torch.randn(4, 2), torch.randn(4, 3))).backward()
                assert all(parameter.grad is not None for parameter in agent.phi.parameters())


def check_counts(topologies: Iterable[str], depth: int, width: int, hidden: int, agree: Agree) -> None:
    """Assert that counters and closed form agree on agents with these topologies."""
    with grouped() as case:
        for topology in topologies:
            with case(f"{topology}, depth {depth}"):
                architecture = Architecture(depth=depth, width=width, hidden=hidden, topology=topology)
                with meta_device():
                    agent = GoalAgent(architecture, SIZES)
                    example = torch.zeros(1, 5), torch.zeros(1, 2), torch.zeros(1, 3)
                agree(agent, example, count_goal_agent(architecture, SIZES))


def test_closed_form_and_both_counters_agree_on_an_agent(agree: Agree) -> None:
    check_counts(("resnet", "dca", "hyper"), 2, 20, 12, agree)


def test_closed_form_and_both_counters_agree_on_a_network_of_each_topology(agree: Agree) -> None:
    with grouped() as case:
        for topology in VALID_CASES:
            with case(topology):
                architecture = replace(SMALL, depth=2, topology=topology)
                with meta_device():
                    network, example = ResidualMLP(architecture, 7, 4), torch.zeros(1, 7)
                agree(network, (example,), count_residual_mlp(architecture, 7, 4))


@pytest.mark.slow
def test_closed_form_and_both_counters_agree_on_every_agent(agree: Agree) -> None:
    check_counts(VALID_CASES, 1, 12, 20, agree)
    check_counts(VALID_CASES, 6, 20, 12, agree)


def test_four_topologies_need_heads() -> None:
    invalid = {name for name in TOPOLOGIES.names() if incompatibility_reason(replace(SMALL, topology=name))}
    assert invalid == {"depth-lstm", "rmt", "svformer", "value-residual"}


def test_hidden_features_are_between_the_four_layers() -> None:
    network = ResidualMLP(SMALL, 7, 4)
    block = network.stack.layers[0]
    maps = [module for module in block.modules() if isinstance(module, nn.Linear)]
    assert [(m.in_features, m.out_features) for m in maps] == [(12, 20), (20, 20), (20, 20), (20, 12)]
    params = sum(parameter.numel() for parameter in network.parameters())
    assert count_residual_mlp(SMALL, 7, 4).params == params


def test_an_agent_with_heads_is_refused() -> None:
    with raises("unsupported", option="heads", value=2, choices=(0,)):
        GoalAgent(replace(SMALL, heads=2, head_dim=4), SIZES)
