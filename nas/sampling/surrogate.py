"""Search by a model of the objectives, over the feasible candidates themselves.

A Gaussian process is fitted to each objective of what was tried. Of the untried candidates, the one is proposed
that would add the most hypervolume to what was found if each of its values came out one deviation better than
expected, weighed with the chance that its evaluation ends with values at all. The set is finite, so nothing is
optimised and nothing has to be moved into the budget.

The kernel is fixed: a parabola along each coordinate and a smooth remainder (Matern 5/2). A search has few axes
and few values, which do not pay for fitting length scales.

Shapes: N = candidates with values, C = the pool looked at, F = coordinates, K = objectives, R = directions.
"""

import numpy as np

from nas.sampling.axes import Array, Coordinates, Indices
from nas.sampling.proposer import Proposer, Situation

START = 8
"""Values there must be before a model is believed; candidates are drawn at random until then."""

POOL, OBSERVED, UNFINISHED, DIRECTIONS = 500, 128, 32, 64
"""At most so many are looked at, drawn at random, so that a proposal costs the same however long the search."""

NOISE = 0.02
"""Variance of an objective's noise, where the kernel's remainder has a variance of 1."""

EXPLORATION = (1, 2, 4, 8)
"""Deviations that values are hoped to come out better than expected: the least that promises anything."""

_WIDE = 3.0  # a positive objective whose values span this factor is modelled by its logarithm: costs multiply


class Surrogate(Proposer):
    """Gaussian processes over the feasible candidates: proposes what may add the most hypervolume."""

    def propose(self, situation: Situation) -> int:
        """Choose by the model, or at random while too little is known."""
        random = np.random.default_rng(situation.seed)
        tried, coordinates = situation.tried, situation.coordinates
        valued = np.isfinite(tried.values).all(axis=1)
        if valued.sum() < START:
            return int(random.choice(situation.drawn))
        seen, values = tried.indices[valued], _standard(tried.values[valued])
        hypervolume = Hypervolume(values, random)
        rows = _at_random(len(seen), OBSERVED, random, first=hypervolume.leaders)
        seen, values = seen[rows], values[rows]
        pool = random.permutation(situation.untried)[:POOL]

        valueless = random.permutation(tried.indices[~valued & ~tried.running])[:UNFINISHED]
        chance = _chance_of_values(coordinates, seen, valueless, pool)
        model = Model(coordinates, seen, values)
        running = tried.indices[~valued & tried.running][:UNFINISHED]
        if len(running):  # they are taken to come out as expected
            expected, _ = model.predict(running)
            hypervolume.add(expected)
            model = Model(coordinates, np.concatenate([seen, running]), np.concatenate([values, expected]))

        mean, deviation = model.predict(pool)
        for weight in EXPLORATION:
            gain = hypervolume.gain(mean - weight * deviation) * chance  # [C]
            if gain.max() > 0:
                return int(pool[gain.argmax()])
        return int(pool[0])


class Model:
    """Gaussian processes that share a kernel, one for each objective, whose mean is taken to be 0.

    Args:
        coordinates: Where the candidates stand.
        seen: Which candidates have values: [N].
        values: The values: [N, K].
    """

    def __init__(self, coordinates: Coordinates, seen: Indices, values: Array) -> None:
        self._coordinates, self._seen = coordinates, seen
        gram = self._kernel(seen, seen) + NOISE * np.eye(len(seen))
        self._whiten = np.linalg.inv(np.linalg.cholesky(gram))  # [N, N]
        self._white = self._whiten @ values
        self._scale = np.sqrt((self._white**2).mean(axis=0))  # [K], by maximum likelihood

    def predict(self, at: Indices) -> tuple[Array, Array]:
        """Mean and standard deviation at other candidates: [C] -> [C, K] and [C, K]."""
        cross = self._whiten @ self._kernel(self._seen, at)  # [N, C]
        own = 1.0 + (self._parabolas(at) ** 2).sum(axis=1)
        left = np.maximum(own - (cross**2).sum(axis=0), 1e-12)
        return cross.T @ self._white, np.sqrt(left)[:, None] * self._scale

    def _kernel(self, left: Indices, right: Indices) -> Array:
        x, y = self._described(left), self._described(right)
        squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T
        distance = np.sqrt(5 * np.maximum(squares, 0))
        matern = (1 + distance + distance**2 / 3) * np.exp(-distance)
        return np.asarray(matern + self._parabolas(left) @ self._parabolas(right).T)

    def _described(self, at: Indices) -> Array:
        return np.concatenate([self._coordinates.places[at], self._coordinates.sizes[at]], axis=1)

    def _parabolas(self, at: Indices) -> Array:
        centred = self._described(at) - 0.5
        return np.concatenate([centred, centred**2], axis=1)


class Hypervolume:
    """How much a point adds to the hypervolume of others, by random directions: cheap for any number of objectives.

    The hypervolume is, up to a constant, the mean over directions r on the positive unit sphere of the greatest
    min_k(max(0, (reference - point)_k / r_k))^K (Zhang and Golovin, "Random Hypervolume Scalarizations for
    Provable Multi-Objective Black Box Optimization", ICML 2020). Each objective is measured in ranges of the
    points; the reference is a tenth of the range beyond the worst of them.

    Attributes:
        leaders: The points that are best in a direction.
    """

    def __init__(self, values: Array, random: np.random.Generator) -> None:
        best, worst = values.min(axis=0), values.max(axis=0)
        self._range = np.maximum(worst - best, 1e-9)
        self._reference = worst + 0.1 * self._range
        directions = np.abs(random.standard_normal((DIRECTIONS, values.shape[1])))
        self._directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)  # [R, K]
        lengths = self._lengths(values)
        self.leaders = np.unique(lengths.argmax(axis=0))
        self._reached = lengths.max(axis=0)  # [R]

    def add(self, values: Array) -> None:
        """Take further points as found: [N, K]."""
        self._reached = np.maximum(self._reached, self._lengths(values).max(axis=0))

    def gain(self, values: Array) -> Array:
        """What each point by itself would add: [C, K] -> [C]."""
        return np.asarray(np.maximum(self._lengths(values) - self._reached, 0).mean(axis=1))

    def _lengths(self, values: Array) -> Array:
        gains = np.maximum((self._reference - values) / self._range, 0)
        along = gains.T[:, :, None] / self._directions.T[:, None, :]  # [K, C, R]
        return np.asarray(along.min(axis=0) ** len(along))


def _standard(values: Array) -> Array:
    """Mean 0 and deviation 1 in each objective: [N, K]."""
    wide = (values.min(axis=0) > 0) & (values.max(axis=0) > _WIDE * values.min(axis=0))
    values = np.where(wide, np.log(np.where(wide, values, 1.0)), values)
    return np.asarray((values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-12))


def _chance_of_values(coordinates: Coordinates, seen: Indices, valueless: Indices, at: Indices) -> Array:
    """How likely an evaluation ends with values, by where others failed or were pruned: [C]."""
    if not len(valueless):
        return np.ones(len(at))
    ended_without = np.repeat([0.0, 1.0], [len(seen), len(valueless)])[:, None]
    share, _ = Model(coordinates, np.concatenate([seen, valueless]), ended_without).predict(at)
    return np.asarray(1 - np.clip(share[:, 0], 0, 1))


def _at_random(count: int, most: int, random: np.random.Generator, first: Indices) -> Indices:
    """At most `most` of the numbers below `count`, drawn at random after those that come first."""
    others = random.permutation(np.setdiff1d(np.arange(count), first))
    return np.concatenate([first, others])[:most].astype(np.intp)
