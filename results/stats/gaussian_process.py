"""Gaussian processes over architectures: what readings of a metric say of its true values.

A reading is a true value and noise. True values are a parabola along each coordinate, a smooth remainder (Matern 5/2:
C. Rasmussen and C. Williams, "Gaussian Processes for Machine Learning", 2006, equation 4.17) and a nugget of each
architecture's own. How far they are alike, and how large remainder, nugget and noise are, is fitted: to where the
likelihood of the readings and a prior are greatest.

Shapes: N = architectures with readings, C = any architectures, F and W = coordinates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
"""Which of some architectures."""


@dataclass(frozen=True)
class Features:
    """Where architectures stand: coordinates about as long as 1.

    Attributes:
        sizes: Of what is more or less: [N, F].
        words: Of what is one thing or another: [N, W].
    """

    sizes: Array
    words: Array

    def at(self, index: Indices) -> "Features":
        """Those of some of the architectures."""
        return Features(self.sizes[index], self.words[index])

    @cached_property
    def parabolas(self) -> Array:
        """Centred coordinates and their squares: [N, 2 (F + W)]."""
        coordinates = np.concatenate([self.sizes, self.words], axis=1) - 0.5
        return np.concatenate([coordinates, coordinates**2], axis=1)


@dataclass(frozen=True)
class Observations:
    """Readings, summed up for each architecture; the mean of all is about 0, and their deviation about 1.

    Attributes:
        means: Of each architecture: [N].
        counts: How many readings that is the mean of: [N].
        shares: The variance of the noise of one of them, as a share of what is fitted: about 1, [N].
        within: The sum of squares of all readings about the means of their architectures, each divided by its share.
    """

    means: Array
    counts: Array
    shares: Array
    within: float = 0.0

    @classmethod
    def of(cls, means: Array, counts: Array, errors: Array, squares: Array) -> tuple["Observations", float, float]:
        """Readings in deviations of their means, with the mean and the deviation of these.

        Args:
            means: In any unit: [N].
            counts: How many readings each is the mean of: [N].
            errors: The standard error of one reading; not looked at where any is not known or zero: [N].
            squares: Sums of squares of the readings of each about its mean: [N].
        """
        mean, unit = float(means.mean()), max(float(means.std()), 1e-12)
        variances = errors**2
        shares = np.ones(len(means))
        if np.isfinite(variances).all() and (variances > 0).all():
            shares = np.clip(variances / variances.mean(), 0.1, 10.0)
        return cls((means - mean) / unit, counts, shares, float((squares / shares).sum()) / unit**2), mean, unit

    @classmethod
    def single(cls, values: Array) -> "Observations":
        """One reading of each architecture."""
        return cls(values, np.ones(len(values)), np.ones(len(values)))

    def extend(self, means: Array) -> "Observations":
        """With single readings of other architectures."""
        ones = np.ones(len(means))
        counts, shares = (np.concatenate([array, ones]) for array in (self.counts, self.shares))
        return Observations(np.concatenate([self.means, means]), counts, shares, self.within)


class Scales(NamedTuple):
    """What is fitted.

    Attributes:
        noise: The variance of a reading's noise; that of parabolas' coefficients is 1.
        nugget: The variance of what each architecture has of its own.
        remainder: The variance of the remainder.
        sizes: How far along sizes the remainder is alike.
        words: How far along words.
    """

    noise: float
    nugget: float
    remainder: float
    sizes: float
    words: float


_PRIOR = Scales(0.1, 0.001, 1.0, 1.0, 0.7)
_SPREAD = Scales(5.0, 10.0, 3.0, 2.0, 2.0)
"""The median of each in the prior, and the factor by which two of three are at most off it (lognormal)."""

_GRID: Mapping[str, tuple[float, ...]] = {
    "noise": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    "nugget": (0.0001, 0.001, 0.01, 0.1, 1.0),
    "remainder": (0.3, 1.0, 3.0, 10.0),
    "sizes": (0.4, 0.7, 1.2, 2.0),
    "words": (0.4, 0.7, 1.2, 2.0),
}
# Matrices here are small: beside trainings, threads of a BLAS that wait for each other take three times its work.
_one_thread = partial(ThreadpoolController().limit, limits=1, user_api="blas")
_SWEEPS = 2  # over each scale in turn; the third changes nothing that a search would notice
_EPSILON = 1e-9


class GaussianProcess:
    """What the readings of N architectures say of the true value of any. Scales are fitted where none are given.

    Args:
        features: Of the architectures.
        observations: Of them.
        scales: What was fitted to others.
        unit: What variances were multiplied with there; else it follows from the readings.

    Attributes:
        scales: As they were fitted.
        unit: What all variances are multiplied with.
        noise: The variance of the noise of one reading whose share is 1.
    """

    def __init__(
        self, features: Features, observations: Observations, scales: Scales | None = None, unit: float | None = None
    ) -> None:
        self._features = features
        with _one_thread():
            fit = _fit_scales(_Distances(features, features), observations, scales)
        self._fit, self.scales, self.unit = fit, fit.scales, unit or fit.unit
        self.noise = self.scales.noise * self.unit

    def predict(self, at: Features) -> tuple[Array, Array]:
        """Means and variances of true values: [C] each."""
        with _one_thread():
            cross = self._fit.whiten(_Distances(self._features, at))
        prior = self.scales.remainder + self.scales.nugget + (at.parabolas**2).sum(axis=1)
        variances = np.maximum(prior - (cross**2).sum(axis=0), _EPSILON)
        return cross.T @ self._fit.white, self.unit * variances

    def draws(self, at: Features, number: int, random: np.random.Generator) -> Array:
        """True values as they may be together: [number, C]."""
        with _one_thread():
            cross = self._fit.whiten(_Distances(self._features, at))
            covariance = _Distances(at, at).covariance(self.scales) - cross.T @ cross
            values, vectors = np.linalg.eigh(self.unit * covariance)
            # The symmetric root: there is one only, where eigenvectors' signs hang on the last bit of what they are of.
            root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
            return np.asarray(cross.T @ self._fit.white + random.standard_normal((number, len(root))) @ root)


class _Distances:
    """How far apart two groups of architectures are; the covariance of their true values follows from it."""

    def __init__(self, first: Features, second: Features) -> None:
        self._sizes, self._words = _squares(first.sizes, second.sizes), _squares(first.words, second.words)
        self._along = first.parabolas @ second.parabolas.T
        self._same = self._sizes + self._words < _EPSILON

    def covariance(self, scales: Scales) -> Array:
        distance = np.sqrt(5 * (self._sizes / scales.sizes**2 + self._words / scales.words**2))
        smooth = scales.remainder * (1 + distance + distance**2 / 3) * np.exp(-distance)
        return np.asarray(smooth + self._along + scales.nugget * self._same)


class _Fit:
    """A process with given scales.

    Attributes:
        unit: What all variances are multiplied with: where the likelihood is greatest.
        white: The readings as independent numbers.
        merit: Log of likelihood and prior, up to a constant.
    """

    def __init__(self, scales: Scales, distances: _Distances, observations: Observations) -> None:
        self.scales, counts = scales, observations.counts
        noise = scales.noise * observations.shares / counts + _EPSILON
        self._root = cholesky(distances.covariance(scales) + np.diag(noise), lower=True, check_finite=False)
        self.white = solve_triangular(self._root, observations.means, lower=True, check_finite=False)
        count, repeats = float(counts.sum()), float((counts - 1).sum())
        self.unit = max((float(self.white @ self.white) + observations.within / scales.noise) / count, _EPSILON)
        determinant = 2 * float(np.log(np.diag(self._root)).sum()) + repeats * log(scales.noise)
        deviations = [
            log(first / prior) / log(spread) for first, prior, spread in zip(scales, _PRIOR, _SPREAD, strict=True)
        ]
        self.merit = -0.5 * (count * log(self.unit) + determinant + sum(first**2 for first in deviations))

    def whiten(self, distances: _Distances) -> Array:
        """How the true values of others go with the white readings: [N, C]."""
        cross = distances.covariance(self.scales)
        return np.asarray(solve_triangular(self._root, cross, lower=True, check_finite=False))


def _fit_scales(distances: _Distances, observations: Observations, scales: Scales | None) -> _Fit:
    """With the scales given, or else those of the greatest merit, each sought in turn."""
    fit = _Fit(scales or _PRIOR, distances, observations)
    for _ in range(0 if scales else _SWEEPS):
        for name, values in _GRID.items():
            neighbours = [fit.scales._replace(**{name: value}) for value in values]
            fits = [_Fit(scales, distances, observations) for scales in neighbours if scales != fit.scales]
            fit = max([fit, *fits], key=lambda candidate: candidate.merit)
    return fit


def _squares(first: Array, second: Array) -> Array:
    """Squared distances: [N, F] and [C, F] -> [N, C]."""
    return np.asarray(np.maximum((first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T, 0.0))
