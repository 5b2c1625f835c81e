"""Hypervolume that points add to others.

Shapes: N = points so far, C = other points, K = objectives, R = directions, Z = outcomes.
"""

import numpy as np

from results.stats.gaussian_process import Array

DIRECTIONS = 64


class HypervolumeGain:
    """Hypervolume of points and the gains of other points, by random directions: cheap for any number of objectives.

    The hypervolume is, up to a constant, the mean over directions r on the positive unit sphere of the greatest
    min_k(max(0, (reference - point)_k / r_k))^K (Zhang and Golovin, "Random Hypervolume Scalarizations for
    Provable Multi-Objective Black Box Optimization", ICML 2020). Each objective is scaled by its range over all points;
    the reference is slightly beyond the worst.

    Attributes:
        total: The hypervolume of the points.

    Args:
        points: The points so far: [N, K].
        others: Possible points, included in the ranges: [C, K].
        random: Generator of the directions.
    """

    def __init__(self, points: Array, others: Array, random: np.random.Generator) -> None:
        all_points = np.concatenate([points, others])
        best, worst = all_points.min(axis=0), all_points.max(axis=0)
        flat = worst <= best  # an objective in which points are equal must not limit them
        self._range = np.where(flat, 1.0, worst - best)
        self._reference = worst + np.where(flat, 1.0, 0.02 * self._range)
        directions = np.abs(random.standard_normal((DIRECTIONS, points.shape[1])))
        self._directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)  # [R, K]
        lengths = self._lengths(points)
        self._best = lengths.max(axis=0)  # [R]
        first = lengths.argmax(axis=0)
        lengths[first, np.arange(len(first))] = 0.0
        without_first = lengths.max(axis=0)
        self._without = np.where(np.arange(len(points))[:, None] == first, without_first, self._best)  # [N, R]
        self.total = float(self._best.mean())

    def gain(self, outcomes: Array) -> Array:
        """Return the mean gain of each point over its outcomes: [Z, C, K] -> [C]."""
        return self._mean_of_greater(outcomes, self._best) - self.total

    def repeat_gain(self, outcomes: Array) -> Array:
        """Return the mean gain of the first N points if their values change to these outcomes: [Z, N, K] -> [N]."""
        return self._mean_of_greater(outcomes, self._without[: outcomes.shape[1]]) - self.total

    def _mean_of_greater(self, outcomes: Array, lengths: Array) -> Array:
        sums = sum(np.maximum(self._lengths(points), lengths).mean(axis=1) for points in outcomes)
        return np.asarray(sums / len(outcomes))

    def _lengths(self, values: Array) -> Array:
        gains = np.maximum((self._reference - values) / self._range, 0)
        along = gains.T[:, :, None] / self._directions.T[:, None, :]  # [K, C, R]
        return np.asarray(along.min(axis=0) ** len(along))
