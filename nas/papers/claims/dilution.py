"""DeepCrossAttention: whether a residual network can reproduce its input (figure 1), and how DCA is initialized.

Figure 1 trains ten linear layers of rank 3 on 100 features by SGD on batches of 100 normal samples. The residual
network and GRN-v1 here are this project's topologies around such layers. The paper gives neither learning rates nor the
initialization. Here layers start Xavier-normal, and each network gets the better of two rates, chosen on other seeds.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nas.papers.claims import Claim, Experiment, Values
from search_spaces.layers.stack import Stack
from search_spaces.models.retrofit import retrofit
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import build_topology
from search_spaces.topologies.registry import resolve_topology
from tasks.vision.digits import DigitsViT

_FEATURES, _RANK, _LAYERS, _BATCH, _STEPS = 100, 3, 10, 100, 200
TARGETS = ((False, (0.003, 0.01)), (True, (0.0003, 0.001)))
"""Whether the target is a random affine map instead of the identity, and the rates; three times as much diverges."""
_TOPOLOGIES = ("resnet", "grn-v1")
_SMALL = 1e-12


class LowRankNetwork(nn.Module):
    """A layer x -> V U x with U [rank, D] and V [D, rank]."""

    def __init__(self) -> None:
        super().__init__()
        self.site = Site(("x",), _FEATURES, starts_block=True)
        maps = nn.Linear(_FEATURES, _RANK, bias=False), nn.Linear(_RANK, _FEATURES, bias=False)
        for layer in maps:
            nn.init.xavier_normal_(layer.weight)
        self.maps = nn.Sequential(*maps)

    def forward(self, x: Tensor) -> Tensor:
        """Map [..., D] to [..., D]."""
        return self.maps(x)  # type: ignore[no-any-return]  # nn.Module returns Any


class Dilution(Experiment):
    """Figure 1: both networks learn the identity and a random affine map."""

    paper = "dca"
    setting = f"ten linear layers of rank 3 on 100 features, {_STEPS} batches, a rate chosen on other seeds, 3 seeds"
    claims = tuple(
        Claim(
            name=f"grn-v1 below resnet, {what}",
            source=f"figure 1 ({figure})",
            statement=f"with learned weights the residual network learns {what} better",
            quantity=f"decades by which its loss is below the residual network's after {_STEPS} batches",
        )
        for figure, what in (("a", "the identity"), ("b", "a random map"))
    )

    def __init__(self, seeds: int = 3) -> None:
        self.seeds = seeds

    def values(self) -> Values:
        """Choose a rate for each network, train with it, and return the differences of log10 losses."""
        differences = {}
        for claim, (affine, rates) in zip(self.claims, TARGETS, strict=True):
            tuning_seeds = range(self.seeds, 2 * self.seeds)
            best_rates = {topology: best_rate(topology, affine, rates, tuning_seeds) for topology in _TOPOLOGIES}
            resnet, grn = (
                [final_log10_loss(topology, affine, rate, seed) for seed in range(self.seeds)]
                for topology, rate in best_rates.items()
            )
            differences[claim.name] = [a - b for a, b in zip(resnet, grn, strict=True)]
        return differences


def best_rate(
    topology: str, affine: bool, rates: Sequence[float], seeds: Sequence[int], layers: int = _LAYERS
) -> float:
    """Return the rate with the lowest mean of log10 losses over seeds."""
    return min(rates, key=lambda rate: sum(final_log10_loss(topology, affine, rate, seed, layers) for seed in seeds))


def final_log10_loss(topology: str, affine: bool, rate: float, seed: int, layers: int = _LAYERS) -> float:
    """Return log10 of the mean loss of the last twenty batches; of the first batch's if training diverged."""
    losses = curve(topology, affine, rate, seed, layers)
    end = losses[-20:].mean()
    return (end if end.isfinite() else losses[0]).clamp_min(_SMALL).log10().item()


def curve(topology: str, affine: bool, rate: float, seed: int, layers: int = _LAYERS) -> Tensor:
    """Return the loss of each batch before its step, [steps]."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        matrix = torch.randn(_FEATURES, _FEATURES) if affine else torch.eye(_FEATURES)
        offset = torch.randn(_FEATURES) if affine else torch.zeros(_FEATURES)
        network = _network(topology, layers)
        optimizer = torch.optim.SGD(network.parameters(), rate)
        losses = []
        for _ in range(_STEPS):
            x = torch.randn(_BATCH, _FEATURES)
            loss = (network(x) - x @ matrix.T - offset).square().sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return torch.stack(losses)


def _network(topology: str, number: int) -> Stack:
    layers = [LowRankNetwork() for _ in range(number)]
    wiring = StackSpec(tuple(layer.site for layer in layers), _FEATURES, 0)
    return Stack(layers, build_topology(*resolve_topology(topology), wiring), nn.Identity())


class DCAInitialization(Experiment):
    """Section 5: adding DCA to a trained residual network does not change its outputs."""

    paper = "dca"
    setting = "digits-vit in double precision, the residual network's weights under other topologies, 4 seeds"
    claims = tuple(
        Claim(
            name=f"{topology} starts as resnet",
            source="section 5",
            statement=f"a residual network computes the same as before once it has {topology}",
            quantity="largest difference of an output over the largest output",
            low=-math.inf,
            high=1e-12,
        )
        for topology in ("grn-v1", "grn-v2", "grn-v3", "dca", "dca(k=2)")
    )

    def values(self) -> Values:
        """Compare outputs on the first validation images."""
        return {
            claim.name: [_difference(claim.name.removesuffix(" starts as resnet"), seed) for seed in range(4)]
            for claim in self.claims
        }


def _difference(topology: str, seed: int) -> float:
    task = DigitsViT()
    images = task.load().validation[0][:16].double()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        plain = task.build(task.base)
        other = retrofit(plain.state_dict(), task.base, topology, task.build)
    with torch.no_grad():
        before, after = plain.double().eval()(images), other.double().eval()(images)
    difference: float = ((after - before).abs().max() / before.abs().max()).item()
    return difference
