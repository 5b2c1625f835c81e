"""How far a metric can be trusted: what of its variance is the architecture's, the seed's, the validation examples'.

Shapes: A = architectures, S = seeds, the same of every architecture.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import inf, sqrt
from statistics import NormalDist

import numpy as np
from scipy.stats import kendalltau

from results.stats.gaussian_process import Array

CONFIDENCE = 0.95
"""That two architectures are told apart rightly, on both sides."""

MAX_STRETCH = 2.0
"""By which one split may spread networks more than another, and their order be the same."""

MAX_SEEDS = 1000
"""Beyond so many nobody asks."""


@dataclass(frozen=True)
class Estimate:
    """A value and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Components:
    """Variances of one reading of a metric: one network of an architecture, trained with one seed.

    Two networks' readings on the same validation examples differ by what is due to their architectures, to their seeds
    and to the examples, of which others would have given another difference. How hard the examples are for all
    networks alike is in none of these: it ranks nothing.

    Attributes:
        architecture: Of the means of architectures over all seeds and examples.
        seed: Of an architecture's networks about its mean, over all examples.
        examples: What is left. None where there was no test split to tell it from the others.
        between: What differs between architectures on these examples, seeds apart.
        within: What differs between seeds on these examples.
    """

    architecture: float
    seed: float
    examples: float | None
    between: float
    within: float

    def noise(self, seeds: int) -> float:
        """The variance of an architecture's mean over so many seeds that is not the architecture's."""
        return max(self.between - self.architecture, 0.0) + self.within / seeds

    def reliability(self, seeds: int = 1) -> float:
        """The share of the variance of means over so many seeds that is the architecture's, from 0 to 1."""
        total = max(self.architecture, 0.0) + self.noise(seeds)
        return max(self.architecture, 0.0) / total if total > 0 else 0.0


def components(validation: Array, test: Array | None = None) -> Components:
    """Analysis of variance, one way and balanced: [A, S] on validation and, of the same networks, on test.

    What networks have in common on two disjoint splits is theirs, and what they have not is due to the examples. So
    the components are those of the covariance between the splits (the analysis of variance with products in the place
    of squares), and what the validation split varies beyond them is the examples'. A split may spread all networks more
    than the other does, which ranks nothing: the components are stretched to the spread of validation (congeneric
    measurements: K. Joreskog, "Statistical Analysis of Sets of Congeneric Tests", 1971). Estimates may fall below zero,
    as they do in any analysis of variance.

    Raises:
        ValueError: Fewer than two architectures or two seeds, or shapes that differ.
    """
    if validation.ndim != 2 or min(validation.shape) < 2:
        raise ValueError(f"a metric must be [A > 1, S > 1], got {validation.shape}.")
    if test is not None and test.shape != validation.shape:
        raise ValueError(f"test must be of the networks of validation, {validation.shape}, got {test.shape}.")
    between, within = _components(validation, validation)
    if test is None:
        return Components(between, within, None, between, within)
    stretch = _stretch(between, _components(test, test)[0])
    architecture, seed = (stretch * component for component in _components(validation, test))
    return Components(architecture, seed, between + within - architecture - seed, between, within)


def jackknife(statistic: Callable[..., float], *readings: Array) -> Estimate:
    """A statistic of readings [A, ...], with its standard error by leaving out one architecture after the other."""
    count = len(readings[0])
    without = np.array([statistic(*(np.delete(reading, i, axis=0) for reading in readings)) for i in range(count)])
    error = sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    return Estimate(statistic(*readings), error)


def rank_correlation(first: Array, second: Array) -> float:
    """Kendall's tau (b) of the orders of architectures by two readings [A, S], over seeds; 0 where all are equal."""
    taus = [kendalltau(first[:, seed], second[:, seed]).statistic for seed in range(first.shape[1])]
    return float(np.mean(np.nan_to_num(taus)))


def seed_rank_correlation(readings: Array) -> float:
    """The same between any two seeds of one reading [A, S], the mean over pairs."""
    pairs = list(combinations(range(readings.shape[1]), 2))
    first, second = (readings[:, [pair[side] for pair in pairs]] for side in (0, 1))
    return rank_correlation(first, second)


def num_distinct_tiers(validation: Array, variances: Components, seeds: int) -> int:
    """How many of these architectures could be told apart by means over so many seeds.

    Each level lies so far above the one before that noise alone would part two equal ones with a chance of
    1 - CONFIDENCE. Means are drawn towards each other by how reliable they are: noise spreads them.
    """
    means = validation.mean(axis=1)
    means = np.sort(means.mean() + variances.reliability(validation.shape[1]) * (means - means.mean()))
    gap = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2) * sqrt(2 * variances.noise(seeds))
    count, last = 0, -inf
    for value in means:
        if value - last > gap:
            count, last = count + 1, float(value)
    return count


def seeds_for(target: int, validation: Array, variances: Components) -> int | None:
    """The least number of seeds by which so many levels are told apart; None where MAX_SEEDS do not do it.

    No number of seeds goes beyond what the validation examples allow.
    """
    low, high = 1, MAX_SEEDS
    if num_distinct_tiers(validation, variances, high) < target:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if num_distinct_tiers(validation, variances, middle) >= target else (middle + 1, high)
    return low


def _stretch(validation: float, test: float) -> float:
    """How much more validation spreads architectures than test does, by their variances there; 1 where one has none.

    Beyond a factor of MAX_STRETCH it is rather that there is nothing to be seen on one of them.
    """
    if validation <= 0 or test <= 0:
        return 1.0
    return min(max(sqrt(validation / test), 1 / MAX_STRETCH), MAX_STRETCH)


def _components(first: Array, second: Array) -> tuple[float, float]:
    """Between and within architectures, of the products of what two readings differ from their means by."""
    architectures, seeds = first.shape
    means = [reading.mean(axis=1) for reading in (first, second)]
    between = np.prod([mean - mean.mean() for mean in means], axis=0).sum() * seeds / (architectures - 1)
    residuals = [reading - mean[:, None] for reading, mean in zip((first, second), means, strict=True)]
    within = np.prod(residuals, axis=0).sum() / (architectures * (seeds - 1))
    return float(between - within) / seeds, float(within)
