"""The probability that architectures are on the front.

Gaussian processes (`results.stats.gaussian_process`) give the posterior of all true values. The probability is the
share of posterior draws in which an architecture is on the front.

Shapes: n = architectures, m = objectives, D = posterior draws, c = architectures near the front.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import final

import numpy as np
from numpy.typing import NDArray

from results.records.columns import COUNT_COLUMNS, PROFILE_COLUMNS
from results.stats.features import Record, features_of
from results.stats.gaussian_process import Array, Features, GaussianProcess, Indices, Observations, Scales
from results.stats.pareto import non_dominated

DRAWS = 512
"""Posterior draws."""

SAMPLE_SIZE, CONTENDERS = 384, 128
"""Maximum size of the random sample that a model is fitted to; and how many architectures near the front are drawn."""

NOISE_FREE = frozenset({*COUNT_COLUMNS, *PROFILE_COLUMNS})
"""Columns without training noise."""


@final
@dataclass(frozen=True, eq=False)
class FrontPosterior:
    """The posterior of architectures' objectives, with signs such that less is better.

    Attributes:
        expected: Posterior means: [n, m].
        near: The architectures near the front: [c].
        draws: Posterior draws of these: [D, c, m].
        on_front: Whether each architecture is on the front of the posterior means: [n].
        p_front: The probability that each is on the front: [n]. 0 for those not near it; NaN for the others if
            `has_errors` is false.
        has_errors: Whether the noise of every objective that has some is known.
    """

    expected: Array
    near: Indices
    draws: Array
    on_front: NDArray[np.bool_]
    p_front: Array
    has_errors: bool


def front_probabilities(draws: Array) -> Array:
    """Return the share of draws in which each point is on the front, less being better: [D, c, m] -> [c]."""
    return np.asarray(np.mean([non_dominated(values) for values in draws], axis=0))


def front_posterior(
    groups: Sequence[Sequence[Record]], names: Sequence[str], noisy: Container[str], signs: Array
) -> FrontPosterior:
    """Return the posterior of all architectures' objectives, and their probabilities of being on the front.

    Models are fitted to a random sample, since architectures that measured best are partly lucky. Those near the front,
    by prediction or by measurement, are then conditioned on their own measurements too.

    Args:
        groups: The rows of each architecture, with a number in every objective.
        names: The objectives.
        noisy: Objectives with noise that is known; a model is fitted to each.
        signs: 1 for objectives of which less is better, -1 for the others: [m].
    """
    values = np.array([[fmean(row[name] for row in group) for name in names] for group in groups]) * signs
    random, count = np.random.default_rng(0), len(groups)
    features = features_of([group[0] for group in groups])
    sample = np.sort(random.permutation(count)[:SAMPLE_SIZE])
    models = {k: _Model(features, groups, values[:, k], name, sample) for k, name in enumerate(names) if name in noisy}
    expected = values.copy()
    for k, model in models.items():
        expected[:, k] = model.predict(sample)
    near = np.union1d(_nearest_to_front(expected), _nearest_to_front(values))
    union = np.union1d(sample, near)
    draws = np.repeat(values[None, near], DRAWS, axis=0)
    for k, model in models.items():
        expected[:, k] = model.predict(union)
        draws[:, :, k] = model.draws(union, near, random)
    on_front, p_front = np.zeros(count, dtype=bool), np.zeros(count)
    on_front[near] = non_dominated(expected[near])
    has_errors = all(name in noisy or name in NOISE_FREE for name in names)
    p_front[near] = front_probabilities(draws) if has_errors else np.nan
    return FrontPosterior(expected, near, draws, on_front, p_front, has_errors)


class _Model:
    """The Gaussian process of one metric: scales fitted to one sample, predictions conditioned on any sample."""

    def __init__(
        self, features: Features, groups: Sequence[Sequence[Record]], values: Array, name: str, sample: Indices
    ):
        readings = [[float(row[name]) for row in group] for group in groups]
        errors = [fmean(float(row.get(f"{name}_se") or 0.0) ** 2 for row in group) for group in groups]
        self._features, self._values, self._errors = features, values, np.sqrt(errors)
        self._counts = np.array([float(len(group)) for group in readings])
        self._squares = np.array([sum((value - fmean(group)) ** 2 for value in group) for group in readings])
        self._scales: Scales | None = None
        self._scales = self._process(sample)[0].scales

    def predict(self, sample: Indices) -> Array:
        """Return the posterior means of all architectures given a sample: [n]."""
        process, mean, std = self._process(sample)
        return np.asarray(mean + std * process.predict(self._features)[0])

    def draws(self, sample: Indices, at: Indices, random: np.random.Generator) -> Array:
        """Return posterior draws for c architectures given a sample: [D, c]."""
        process, mean, std = self._process(sample)
        return np.asarray(mean + std * process.draws(self._features.at(at), DRAWS, random))

    def _process(self, sample: Indices) -> tuple[GaussianProcess, float, float]:
        arrays = (array[sample] for array in (self._values, self._counts, self._errors, self._squares))
        readings, mean, std = Observations.standardize(*arrays)
        return GaussianProcess(self._features.at(sample), readings, self._scales), mean, std


def _nearest_to_front(values: Array) -> Indices:
    """Return about CONTENDERS architectures: successive fronts, the best first."""
    remaining, near = np.arange(len(values)), np.zeros(0, dtype=np.intp)
    while len(remaining) and len(near) < CONTENDERS:
        on_front = non_dominated(values[remaining])
        near, remaining = np.concatenate([near, remaining[on_front]]), remaining[~on_front]
    return near
