"""A synthetic loss over an implicit space: heads, head dim, hidden and topology of each block of ViT-S.

Costs are real: the network's closed form at 224 pixels. The loss was fixed before any sampler ran on it. Its optimum is
unknown, so a hypervolume is a share of that of everything that all searches of the run have found.
"""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from benchmarks.landscapes import BASE, GAIN
from nas.budget.bounds import Budget, parse_budget
from nas.budget.implicit.budget_dp import BudgetDP
from results.stats.hypervolume import hypervolume
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.block_segments import segments_of
from search_spaces.models.vit import count_vit
from search_spaces.spaces.catalog import per_block
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.spec import Spec

BUDGET = "21M<=params<=23M,flops<=9500M"
GROUPS = 4  # of blocks, as `per-block` has them at depths of 8, 12 and 16
DEEP_BUDGET = "28M<=params<=31M,flops<=12500M"


@dataclass(frozen=True)
class Inside:
    """The set of architectures within a budget, tested one at a time."""

    budget: Budget

    def __contains__(self, architecture: Architecture) -> bool:
        return self.budget.allows(counts(architecture))


@dataclass(frozen=True)
class LargeLandscape:
    """A search problem with an unknown front; both objectives, loss and flops, are minimized.

    Attributes:
        feasible: The candidates within the budget.
        inside: The architectures within the budget.
    """

    feasible: BudgetDP
    inside: Inside

    def measure(self, architecture: Architecture, seed: int) -> tuple[float, float]:
        """Return the loss and the FLOPs."""
        return loss(architecture), float(counts(architecture)["flops"])


def landscape() -> LargeLandscape:
    """Return `per-block` around ViT-S, with the topologies that have a synthetic loss."""
    budget = parse_budget([BUDGET])
    return LargeLandscape(BudgetDP(searched_space(BASE), counts, budget), Inside(budget))


def searched_space(base: Architecture) -> SearchSpace:
    """Return `per-block` around an architecture, with the topologies that have a synthetic loss."""
    space = per_block(base)
    topologies = tuple(name for name in ("resnet", *GAIN) if name in space.axes["topology:1"])
    return space.with_axes(dict.fromkeys(space.segments["topology"], topologies))


def seconds_to_count() -> float:
    """Return the CPU seconds to count 10^36 members of 16 blocks within two bounds, and to draw ten."""
    random, began = np.random.default_rng(0), time.process_time()
    members = BudgetDP(searched_space(replace(BASE, depth=16)), counts, parse_budget([DEEP_BUDGET]))
    for _ in range(10):
        members.draw(random)
    assert members.number > 10**36
    return time.process_time() - began


def counts(architecture: Architecture) -> dict[str, int]:
    """Return the network's costs."""
    form = count_vit(architecture, (3, 224, 224), 16, 1000)
    return {"params": form.params, "macs": form.macs, "flops": 2 * form.macs}


def loss(architecture: Architecture) -> float:
    """Return a power law in the capacity of blocks: attention matters early, features late, and both interact.

    A topology gains more in later groups, and more again if the group before has the same one.
    """
    last, capacity, off = architecture.depth - 1, 0.0, 0.0
    for number in range(architecture.depth):
        block, late = architecture.at_block(number), number / last
        attention = block.heads * block.head_dim / block.width
        features = block.hidden / (4 * block.width)
        capacity += (1.3 - 0.6 * late) * attention**0.5 + (0.7 + 0.6 * late) * features**0.5
        capacity += 0.4 * (attention * features) ** 0.25
        off += 0.06 * math.log(block.head_dim / 64) ** 2 / architecture.depth
    names = topologies_by_group(architecture)
    gain = sum(GAIN.get(name, 0.0) * (0.6 + 0.3 * group) / len(names) for group, name in enumerate(names))
    gain += 0.01 * sum(a == b != "resnet" for a, b in pairwise(names))
    return 0.9 + 0.55 * (capacity / (2.4 * architecture.depth)) ** -0.8 + off - gain


def topologies_by_group(architecture: Architecture) -> list[str]:
    """Return the name of the topology of each of the space's groups of blocks."""
    firsts = range(0, architecture.depth, architecture.depth // GROUPS)
    segments = segments_of(architecture.topology, architecture.depth)
    return [next(Spec.parse(one).name for one, blocks in segments if first in blocks) for first in firsts]


def shares(fronts: Iterable[Iterable[Architecture]]) -> list[float]:
    """Return the hypervolume of each search's architectures, all within the budget, as a share of all together.

    The reference point is the worst loss with the worst FLOPs of all.
    """
    each = [np.array([(loss(one), counts(one)["flops"]) for one in of]).reshape(-1, 2) for of in map(list, fronts)]
    everything = np.concatenate(each)
    worst = everything.max(axis=0)
    return [hypervolume(values, worst) / hypervolume(everything, worst) for values in each]
