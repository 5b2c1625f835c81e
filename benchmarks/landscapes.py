"""Synthetic losses over an enumerated space, so that the true front of a search is known.

Costs are real: a ViT's closed form at 224 pixels. Losses are synthetic, and were fixed before any sampler ran on them.
Their smoothness differs, and one is not smooth.
"""

import math
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nas.budget.bounds import Feasible, feasible, parse_budget
from results.stats.hypervolume import hypervolume
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.canonical_text import with_defaults
from search_spaces.models.vit import count_vit
from search_spaces.spaces import catalog
from search_spaces.spaces.axis_names import option_of
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.count import Count
from search_spaces.support.spec import Spec
from search_spaces.topologies.registry import resolve_topology

BASE = Architecture(depth=12, heads=6, head_dim=64, width=384, hidden=1536)  # ViT-S

Loss = Callable[[Architecture, Count], float]

GAIN = {"grn-v1": 0.010, "grn-v2": 0.016, "grn-v3": 0.024, "dca": 0.034, "ancre": 0.018, "rmt": 0.030,
         "hyper": 0.026, "denseformer": 0.014}  # fmt: skip


@dataclass(frozen=True)
class Landscape:
    """A search problem with a known front; both objectives, loss and flops, are minimized.

    Attributes:
        feasible: The candidates within the budget.
        flops: Architecture -> FLOPs, for the whole space.
        loss: Architecture -> true loss, for the whole space.
        noise: Standard deviation of a measured loss around the true one.
    """

    feasible: Feasible
    flops: Mapping[Architecture, int]
    loss: Mapping[Architecture, float]
    noise: float

    @cached_property
    def inside(self) -> frozenset[Architecture]:
        """The architectures within the budget."""
        return frozenset(candidate.architecture for candidate in self.feasible)

    def measure(self, architecture: Architecture, seed: int) -> tuple[float, float]:
        """Return the loss measured with a seed, and the FLOPs."""
        noise = self.noise * random.Random(f"{architecture.key} {seed}").gauss()
        return self.loss[architecture] + noise, float(self.flops[architecture])

    def hypervolume(self, architectures: set[Architecture]) -> float:
        """Return the hypervolume of true values as a share of the whole feasible set's.

        The reference point is the worst feasible loss with the worst feasible FLOPs.
        """
        return self._hypervolume(architectures) / self._hypervolume(self.inside)

    def _hypervolume(self, architectures: Collection[Architecture]) -> float:
        worst = (
            max(self.loss[architecture] for architecture in self.inside),
            max(self.flops[architecture] for architecture in self.inside),
        )
        values = [(self.loss[architecture], self.flops[architecture]) for architecture in architectures]
        return hypervolume(np.array(values, dtype=float).reshape(-1, 2), np.array(worst, dtype=float))


def space() -> SearchSpace:
    """Return `joint` around ViT-S with every depth and number of heads, so that small budgets still fill a search.

    Its topologies are those with a synthetic loss, whatever else is installed.
    """
    joint = catalog.joint(BASE)
    depths, heads = joint.axes["depth"], joint.axes["heads"]
    every = {
        "depth": tuple(range(int(depths[0]), int(depths[-1]) + 1)),
        "heads": tuple(range(int(heads[0]), int(heads[-1]) + 1)),
    }
    fields = {axis: values for axis, values in joint.axes.items() if option_of(axis) is None}
    options = {axis: joint.axes[axis] for name in GAIN for axis in joint.axes if axis.startswith(f"{name}.")}
    axes = {**fields, **every, "topology": ("resnet", *GAIN), **options}
    return SearchSpace("joint, every depth and heads", BASE, axes)


def landscapes(
    budgets: Mapping[str, str], losses: Mapping[str, tuple[Loss, float]] | None = None
) -> dict[tuple[str, str], Landscape]:
    """Return (name of a loss, name of a budget) -> landscape; `losses` defaults to LOSSES."""
    search_space = space()
    counts = {
        architecture: count_vit(architecture, (3, 224, 224), 16, 1000) for architecture in search_space.architectures
    }
    flops = {architecture: 2 * count.macs for architecture, count in counts.items()}
    inside = {
        name: feasible(search_space, lambda architecture: {"params": counts[architecture].params}, parse_budget([text]))
        for name, text in budgets.items()
    }
    landscapes_by_name = {}
    for name, (loss, noise) in (losses or LOSSES).items():
        of_all = {architecture: loss(architecture, count) for architecture, count in counts.items()}
        for budget, members in inside.items():
            landscapes_by_name[name, budget] = Landscape(members, flops, of_all, noise)
    return landscapes_by_name


def interacting(architecture: Architecture, count: Count) -> float:
    """Return a power law in parameters with interactions: of shape, of topology and depth, and of options."""
    depth, heads = math.log(architecture.depth / 12), math.log(architecture.heads / 6)
    mismatch = math.log(architecture.heads * architecture.head_dim / architecture.width)
    efficiency = math.exp(-0.18 * mismatch**2 - 0.10 * (depth - heads - 0.35) ** 2)
    scale = 0.9 + 0.55 * math.pow(count.params * efficiency / 22e6, -0.28)
    head_dim = 0.05 * math.log(architecture.head_dim / 64) ** 2 * math.exp(-heads / 2)
    return scale + head_dim - _gain(architecture) * math.exp(0.6 * depth)


def additive(architecture: Architecture, count: Count) -> float:
    """Return a loss that is additive over axes."""
    depth, heads = math.log(architecture.depth / 12), math.log(architecture.heads / 6)
    head_dim, topology = math.log(architecture.head_dim / 64), _topology_spec(architecture)
    shape = -0.22 * depth - 0.12 * heads + 0.05 * heads**2 - 0.09 * head_dim + 0.04 * head_dim**2
    option = max(_option(topology), 0.01)
    return 1.5 + shape - 2 * GAIN.get(topology.name, 0.0) + 0.004 * abs(math.log2(option / 2))


def rugged_loss(architecture: Architecture, count: Count) -> float:
    """Return the interacting loss plus waves with a phase for each topology, and noise fixed for each architecture."""
    phase = random.Random(str(_topology_spec(architecture))).uniform(0, 2 * math.pi)
    depth, heads, head_dim = (math.log(getattr(architecture, name)) for name in ("depth", "heads", "head_dim"))
    waves = 0.02 * math.sin(3 * depth + phase) + 0.015 * math.sin(4 * heads - 2 * phase)
    waves += 0.01 * math.cos(2 * head_dim * depth + phase)
    return interacting(architecture, count) + waves + 0.017 * random.Random(architecture.key).gauss()


def wild(architecture: Architecture, count: Count) -> float:
    """Return a random wave field over the shape, different for each topology, on a slope in parameters."""
    place = [math.log(getattr(architecture, name)) for name in ("depth", "heads", "head_dim")]
    field = 0.0
    topology = _topology_spec(architecture)
    for owner in ("shared", topology.name, str(topology)):
        source = random.Random(owner)
        for _ in range(6):
            angle = sum(source.gauss(0, 1.2) * position for position in place) + source.uniform(0, 2 * math.pi)
            field += 0.02 * math.sin(angle)
    return 1.5 - 0.12 * math.log(count.params / 22e6) + field


LOSSES: Mapping[str, tuple[Loss, float]] = {
    "interacting": (interacting, 0.0),
    "additive": (additive, 0.0),
    "rugged": (rugged_loss, 0.0),
    "wild": (wild, 0.0),
    "noisy": (interacting, 0.02),
}
"""Name -> the true loss, and the standard deviation of its measurement noise."""


def _gain(architecture: Architecture) -> float:
    topology = _topology_spec(architecture)
    gain, option = GAIN.get(topology.name, 0.0), _option(topology)
    match topology.name:
        case "dca":
            return gain * (1 - 0.25 * abs(math.log2(option / 2)))
        case "rmt":
            return gain * (1.2 - 0.25 * abs(math.log2(2 * option / architecture.head_dim)))
        case "hyper" if option == 4:
            return gain * (1.25 if architecture.depth >= 12 else 0.6)
        case "ancre":
            return gain * (1.1 if option < 0.05 else 0.9)
    return gain


def _topology_spec(architecture: Architecture) -> Spec:
    """Return the topology with its searched options, defaults included."""
    spec = with_defaults(Spec.parse(architecture.topology))
    axes = resolve_topology(spec.name)[0].axes
    return Spec(spec.name, {option: value for option, value in spec.options.items() if option in axes})


def _option(topology: Spec) -> float:
    return float(next(iter(topology.options.values()), 0))
