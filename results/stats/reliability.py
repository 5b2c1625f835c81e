"""Reliability of a metric: how much of its variance is due to architectures, seeds and validation examples.

Shapes: A = architectures, S = seeds, the same for every architecture.
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
"""Two-sided confidence with which two architectures are told apart."""

MAX_SPREAD_RATIO = 2.0
"""Maximum ratio between the spreads of networks on two splits."""

MAX_SEEDS = 1000
"""Maximum number of seeds that is tried."""


@dataclass(frozen=True)
class Estimate:
    """A value and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Components:
    """Variance components of one measurement: one network of an architecture, trained with one seed.

    Networks measured on the same validation examples differ by their architectures, their seeds, and how these examples
    happen to favor some. The common difficulty of the examples is in no component: it does not affect ranks.

    Attributes:
        architecture: Variance of architectures' means over all seeds and examples.
        seed: Variance of an architecture's networks about its mean, over all examples.
        examples: The remaining variance. None without a test split to separate it.
        between: Variance between architectures on these examples, without that of seeds.
        within: Variance between seeds on these examples.
    """

    architecture: float
    seed: float
    examples: float | None
    between: float
    within: float

    def noise(self, seeds: int) -> float:
        """Return the variance of an architecture's mean over this many seeds that is not due to the architecture."""
        return max(self.between - self.architecture, 0.0) + self.within / seeds

    def reliability(self, seeds: int = 1) -> float:
        """Return the share of the variance of means over this many seeds that is due to the architecture, 0 to 1."""
        total = max(self.architecture, 0.0) + self.noise(seeds)
        return max(self.architecture, 0.0) / total if total > 0 else 0.0


def components(validation: Array, test: Array | None = None) -> Components:
    """Estimate variance components from metrics [A, S] on validation and, for the same networks, on test.

    It is a one-way balanced analysis of variance. With a test split, what two disjoint splits have in common is due to
    the networks, and the rest to the examples. So `architecture` and `seed` come from the covariance between the
    splits: products replace squares. Both are scaled to the spread of validation, since a split may spread all networks
    more without changing ranks (congeneric measurements: K. Joreskog, "Statistical Analysis of Sets of Congeneric
    Tests", 1971). As in any analysis of variance, estimates may be negative.

    Raises:
        ValueError: Fewer than two architectures or two seeds, or shapes that differ.
    """
    if validation.ndim != 2 or min(validation.shape) < 2:
        raise ValueError(f"validation must have the shape [A > 1, S > 1], got {validation.shape}.")
    if test is not None and test.shape != validation.shape:
        raise ValueError(f"test must have the shape of validation, {validation.shape}, got {test.shape}.")
    between, within = _components(validation, validation)
    if test is None:
        return Components(between, within, None, between, within)
    stretch = _spread_ratio(between, _components(test, test)[0])
    architecture, seed = (stretch * component for component in _components(validation, test))
    return Components(architecture, seed, between + within - architecture - seed, between, within)


def jackknife(statistic: Callable[..., float], *readings: Array) -> Estimate:
    """Return a statistic of readings [A, ...] with its jackknife standard error over architectures."""
    count = len(readings[0])
    without = np.array([statistic(*(np.delete(reading, i, axis=0) for reading in readings)) for i in range(count)])
    error = sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    return Estimate(statistic(*readings), error)


def rank_correlation(first: Array, second: Array) -> float:
    """Return Kendall's tau (b) of two readings [A, S], averaged over seeds; 0 if one is constant."""
    taus = [kendalltau(first[:, seed], second[:, seed]).statistic for seed in range(first.shape[1])]
    return float(np.mean(np.nan_to_num(taus)))


def seed_rank_correlation(readings: Array) -> float:
    """Return Kendall's tau (b) between two seeds of one reading [A, S], averaged over pairs."""
    pairs = list(combinations(range(readings.shape[1]), 2))
    first, second = (readings[:, [pair[side] for pair in pairs]] for side in (0, 1))
    return rank_correlation(first, second)


def num_distinct_tiers(validation: Array, variances: Components, seeds: int) -> int:
    """Return how many tiers of these architectures can be told apart by means over this many seeds.

    Noise alone separates two equal architectures by more than the gap between tiers with probability 1 - CONFIDENCE.
    Means are shrunk by their reliability, since noise spreads them.
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
    """Return the least number of seeds that separates this many tiers; None if MAX_SEEDS do not.

    More seeds do not reduce the noise of the validation examples.
    """
    low, high = 1, MAX_SEEDS
    if num_distinct_tiers(validation, variances, high) < target:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if num_distinct_tiers(validation, variances, middle) >= target else (middle + 1, high)
    return low


def _spread_ratio(validation: float, test: float) -> float:
    """Return how much more validation spreads architectures than test, from their variances; 1 if one has none.

    Ratios beyond MAX_SPREAD_RATIO are clipped: one split then hardly separates architectures.
    """
    if validation <= 0 or test <= 0:
        return 1.0
    return min(max(sqrt(validation / test), 1 / MAX_SPREAD_RATIO), MAX_SPREAD_RATIO)


def _components(first: Array, second: Array) -> tuple[float, float]:
    """Return products of deviations of two readings, between and within architectures."""
    architectures, seeds = first.shape
    means = [reading.mean(axis=1) for reading in (first, second)]
    between = np.prod([mean - mean.mean() for mean in means], axis=0).sum() * seeds / (architectures - 1)
    residuals = [reading - mean[:, None] for reading, mean in zip((first, second), means, strict=True)]
    within = np.prod(residuals, axis=0).sum() / (architectures * (seeds - 1))
    return float(between - within) / seeds, float(within)
