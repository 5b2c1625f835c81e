"""Gaussian processes over architectures: the posterior of a metric's true values.

An observation is a true value plus noise. A true value is the sum of a parabola along each feature, a smooth remainder
and a nugget per architecture. The remainder is Matern 5/2 (C. Rasmussen and C. Williams, "Gaussian Processes for
Machine Learning", 2006, equation 4.17). The length scales and the variances of remainder, nugget and noise maximize the
posterior: likelihood times prior.

Shapes: N = architectures with observations, C = any architectures, F and W = features.
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
"""Indices of architectures."""


@dataclass(frozen=True)
class Features:
    """Features of architectures, scaled to lengths of about 1.

    Attributes:
        numeric: Numeric features: [N, F].
        one_hot: One-hot features: [N, W].
    """

    numeric: Array
    one_hot: Array

    def at(self, index: Indices) -> "Features":
        """Return the features of some architectures."""
        return Features(self.numeric[index], self.one_hot[index])

    @cached_property
    def parabolas(self) -> Array:
        """Centered features and their squares: [N, 2 (F + W)]."""
        coordinates = np.concatenate([self.numeric, self.one_hot], axis=1) - 0.5
        return np.concatenate([coordinates, coordinates**2], axis=1)


@dataclass(frozen=True)
class Observations:
    """Observations, averaged per architecture and standardized to mean 0 and standard deviation 1.

    Attributes:
        means: Mean of each architecture: [N].
        counts: Number of observations in each mean: [N].
        noise_ratios: Noise variance of one observation, relative to the fitted noise: about 1, [N].
        within: Sum of squared deviations of observations from their architecture's mean, each divided by its noise
            ratio.
    """

    means: Array
    counts: Array
    noise_ratios: Array
    within: float = 0.0

    @classmethod
    def standardize(
        cls, means: Array, counts: Array, errors: Array, squares: Array
    ) -> tuple["Observations", float, float]:
        """Standardize means; return the observations, and the mean and standard deviation that were removed.

        Args:
            means: In any unit: [N].
            counts: Number of observations in each mean: [N].
            errors: Standard error of one observation; ignored if any is unknown or zero: [N].
            squares: Sum of squared deviations of each architecture's observations from its mean: [N].
        """
        mean, std = float(means.mean()), max(float(means.std()), 1e-12)
        ratios = noise_ratios(errors)
        return cls((means - mean) / std, counts, ratios, float((squares / ratios).sum()) / std**2), mean, std

    @classmethod
    def single(cls, values: Array) -> "Observations":
        """Return observations with one per architecture."""
        return cls(values, np.ones(len(values)), np.ones(len(values)))

    def extend(self, means: Array) -> "Observations":
        """Append single observations of other architectures."""
        ones = np.ones(len(means))
        counts, noise_ratios = (np.concatenate([array, ones]) for array in (self.counts, self.noise_ratios))
        return Observations(np.concatenate([self.means, means]), counts, noise_ratios, self.within)


def noise_ratios(errors: Array) -> Array:
    """Return the noise variance of each observation, relative to their mean, from its standard error: [N] -> [N].

    Ratios are limited to the range from 0.1 to 10. They are 1 if any error is unknown or zero.
    """
    variances = errors**2
    if not (np.isfinite(variances).all() and (variances > 0).all()):
        return np.ones(len(errors))
    return np.asarray(np.clip(variances / variances.mean(), 0.1, 10.0))


class Scales(NamedTuple):
    """Hyperparameters of a Gaussian process.

    Attributes:
        noise: Noise variance of an observation, relative to the variance of the parabolas' coefficients.
        nugget: Variance of the part that architectures do not share.
        remainder: Variance of the smooth remainder.
        numeric: Length scale of the remainder along numeric features.
        one_hot: Length scale along one-hot features.
    """

    noise: float
    nugget: float
    remainder: float
    numeric: float
    one_hot: float


_PRIOR = Scales(0.1, 0.001, 1.0, 1.0, 0.7)
_SPREAD = Scales(5.0, 10.0, 3.0, 2.0, 2.0)
"""The prior: lognormal, with these medians and these factors for one standard deviation."""

_GRID: Mapping[str, tuple[float, ...]] = {
    "noise": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    "nugget": (0.0001, 0.001, 0.01, 0.1, 1.0),
    "remainder": (0.3, 1.0, 3.0, 10.0),
    "numeric": (0.4, 0.7, 1.2, 2.0),
    "one_hot": (0.4, 0.7, 1.2, 2.0),
}
# These matrices are small. Beside trainings, BLAS threads that wait for each other take three times as long.
_one_thread = partial(ThreadpoolController().limit, limits=1, user_api="blas")
_SWEEPS = 2  # coordinate descent; a third sweep makes no difference to a search
_EPSILON = 1e-9


class GaussianProcess:
    """The posterior of true values given observations of N architectures. Scales are fitted unless given.

    Args:
        features: Features of the architectures.
        observations: Their observations.
        scales: Scales fitted elsewhere.
        variance_scale: The factor of all variances there; by default, it is estimated from the observations.

    Attributes:
        scales: The fitted scales.
        variance_scale: The factor of all variances.
        noise: Noise variance of an observation whose noise ratio is 1.
    """

    def __init__(
        self,
        features: Features,
        observations: Observations,
        scales: Scales | None = None,
        variance_scale: float | None = None,
    ) -> None:
        self._features = features
        with _one_thread():
            fit = _fit_scales(_Distances(features, features), observations, scales)
        self._fit, self.scales, self.variance_scale = fit, fit.scales, variance_scale or fit.variance_scale
        self.noise = self.scales.noise * self.variance_scale

    def predict(self, at: Features) -> tuple[Array, Array]:
        """Return posterior means and variances of true values: [C] each."""
        with _one_thread():
            cross = self._fit.whiten(_Distances(self._features, at))
        prior = self.scales.remainder + self.scales.nugget + (at.parabolas**2).sum(axis=1)
        variances = np.maximum(prior - (cross**2).sum(axis=0), _EPSILON)
        return cross.T @ self._fit.white, self.variance_scale * variances

    def draws(self, at: Features, number: int, random: np.random.Generator) -> Array:
        """Draw true values from the joint posterior: [number, C]."""
        with _one_thread():
            cross = self._fit.whiten(_Distances(self._features, at))
            covariance = _Distances(at, at).covariance(self.scales) - cross.T @ cross
            values, vectors = np.linalg.eigh(self.variance_scale * covariance)
            # The symmetric root is unique; the signs of eigenvectors depend on rounding.
            root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
            return np.asarray(cross.T @ self._fit.white + random.standard_normal((number, len(root))) @ root)


class _Distances:
    """Distances between two groups of architectures, and the prior covariance of their true values."""

    def __init__(self, first: Features, second: Features) -> None:
        self._numeric, self._one_hot = _squares(first.numeric, second.numeric), _squares(first.one_hot, second.one_hot)
        self._along = first.parabolas @ second.parabolas.T
        self._same = self._numeric + self._one_hot < _EPSILON

    def covariance(self, scales: Scales) -> Array:
        distance = np.sqrt(5 * (self._numeric / scales.numeric**2 + self._one_hot / scales.one_hot**2))
        smooth = scales.remainder * (1 + distance + distance**2 / 3) * np.exp(-distance)
        return np.asarray(smooth + self._along + scales.nugget * self._same)


class _Fit:
    """A process with given scales.

    Attributes:
        variance_scale: The maximum-likelihood factor of all variances.
        white: The whitened observations.
        log_posterior: Log posterior of the scales, up to a constant.
    """

    def __init__(self, scales: Scales, distances: _Distances, observations: Observations) -> None:
        self.scales, counts = scales, observations.counts
        noise = scales.noise * observations.noise_ratios / counts + _EPSILON
        self._root = cholesky(distances.covariance(scales) + np.diag(noise), lower=True, check_finite=False)
        self.white = solve_triangular(self._root, observations.means, lower=True, check_finite=False)
        count, repeats = float(counts.sum()), float((counts - 1).sum())
        self.variance_scale = max(
            (float(self.white @ self.white) + observations.within / scales.noise) / count, _EPSILON
        )
        determinant = 2 * float(np.log(np.diag(self._root)).sum()) + repeats * log(scales.noise)
        deviations = [
            log(first / prior) / log(spread) for first, prior, spread in zip(scales, _PRIOR, _SPREAD, strict=True)
        ]
        self.log_posterior = -0.5 * (
            count * log(self.variance_scale) + determinant + sum(first**2 for first in deviations)
        )

    def whiten(self, distances: _Distances) -> Array:
        """Return the covariance of true values with the whitened observations: [N, C]."""
        cross = distances.covariance(self.scales)
        return np.asarray(solve_triangular(self._root, cross, lower=True, check_finite=False))


def _fit_scales(distances: _Distances, observations: Observations, scales: Scales | None) -> _Fit:
    """Fit with the given scales, or maximize the log posterior by coordinate search over a grid."""
    fit = _Fit(scales or _PRIOR, distances, observations)
    for _ in range(0 if scales else _SWEEPS):
        for name, values in _GRID.items():
            neighbours = [fit.scales._replace(**{name: value}) for value in values]
            fits = [_Fit(scales, distances, observations) for scales in neighbours if scales != fit.scales]
            fit = max([fit, *fits], key=lambda candidate: candidate.log_posterior)
    return fit


def _squares(first: Array, second: Array) -> Array:
    """Return squared distances: [N, F] and [C, F] -> [N, C]."""
    return np.asarray(np.maximum((first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2 * first @ second.T, 0.0))
