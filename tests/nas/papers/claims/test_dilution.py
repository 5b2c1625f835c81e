"""Figure 1's networks and how a network starts under DCA, step by step."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas.papers.claims import dilution
from nas.papers.claims.dilution import DCAInitialization, Dilution, LowRankNetwork, final_log10_loss
from tasks.vision.digits import DigitsViT


def printed(maps: list[Tensor], weights: list[Tensor], x: Tensor) -> Tensor:
    """Each layer reads a weighted sum of the input and of all outputs before it, and so does the end."""
    outputs = [x]
    for t in range(len(maps)):
        read = sum(weights[t][j] * output for j, output in enumerate(outputs))
        outputs.append(read @ maps[t].T)
    return sum(weights[-1][j] * output for j, output in enumerate(outputs))  # type: ignore[return-value]  # never 0


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("topology", ["resnet", "grn-v1"])
def test_network_of_figure_1_takes_the_steps_of_its_gradients(
    topology: str, affine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dilution, "_STEPS", 25)
    found, rate = final_log10_loss(topology, affine, 1e-3, seed=0), 1e-3
    torch.manual_seed(0)
    matrix = torch.randn(100, 100) if affine else torch.eye(100)
    offset = torch.randn(100) if affine else torch.zeros(100)
    layers = [[each.weight.detach() for each in LowRankNetwork().maps] for _ in range(10)]
    assert [[list(each.shape) for each in layer] for layer in layers] == [[[3, 100], [100, 3]]] * 10
    weights, losses = [torch.ones(t) for t in range(1, 12)], []
    for _ in range(25):
        x = torch.randn(100, 100)
        learnt = [each.requires_grad_() for each in (*(m for layer in layers for m in layer), *weights)]
        off = printed([up @ down for down, up in layers], weights, x) - x @ matrix.T - offset
        loss = (off**2).sum() / 100
        steps = torch.autograd.grad(loss, learnt)
        moved = [each.detach() - rate * step for each, step in zip(learnt, steps, strict=True)]
        layers = [moved[2 * t : 2 * t + 2] for t in range(10)]
        weights = moved[20:] if topology == "grn-v1" else [torch.ones(t) for t in range(1, 12)]
        losses.append(loss.item())
    assert found == pytest.approx(math.log10(sum(losses[-20:]) / 20), abs=1e-4)


def test_rates_are_chosen_on_seeds_that_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Losses in decades: resnet is at 2 with its better rate, and GRN-v1 half a decade lower, or 3 on a random map."""
    wanted = {("resnet", False): (5.0, 2.0), ("grn-v1", False): (1.5, 4.0), ("resnet", True): (2.0, 9.0)}

    def fake_decades(topology: str, affine: bool, rate: float, seed: int, layers: int = 10) -> float:
        at_rates = wanted.get((topology, affine), (-1.0, -0.5))
        decades = at_rates[dict(dilution.TARGETS)[affine].index(rate)]
        lucky = -9.0 if seed < 2 and decades != min(at_rates) else 0.0  # the worse one, on the seeds that count
        return decades + lucky + 0.01 * seed * (topology == "resnet")

    monkeypatch.setattr(dilution, "final_log10_loss", fake_decades)
    identity, random = Dilution(seeds=2).values().values()
    assert identity == pytest.approx([0.5, 0.51])
    assert random == pytest.approx([3.0, 3.01])


def test_start_of_another_network_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    actual = dilution.retrofit

    def twice(weights: Any, base: Any, topology: str, build: Any) -> nn.Module:
        built.append(topology)
        other = actual(weights, base, topology, build)
        with torch.no_grad():
            other.head.weight.mul_(2), other.head.bias.mul_(2)
        return other

    monkeypatch.setattr(DigitsViT, "base", DigitsViT.base.with_fields({"depth": 2}))
    found = DCAInitialization().findings()
    assert [finding.claim for finding in found] == list(DCAInitialization.claims)
    assert {finding.verdict for finding in found} == {"agrees"}
    assert len({finding.values for finding in found}) > 1  # they are not one network
    monkeypatch.setattr(dilution, "retrofit", twice)
    for name, values in DCAInitialization().values().items():
        assert values == pytest.approx([1.0] * 4, rel=1e-6), name
    assert built == [name for name in ("grn-v1", "grn-v2", "grn-v3", "dca", "dca(k=2)") for _ in range(4)]
