"""What is believed of candidates' objectives: a Gaussian process where a training tells, a number where counting does.

Shapes: N = candidates with values, C = any candidates, K = objectives, Z = outcomes, D = draws.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from nas.sampling.axes import Array, Indices
from nas.sampling.history import Measured
from nas.sampling.proposer import Situation
from results.process import Process, Readings
from results.standing import noise_shares

RUNNING = 32
"""Of the candidates under way, at most so many are taken to come out as expected."""

_OUTCOMES = ndtri((np.arange(8) + 0.5) / 8)  # deviations by which something may come out, each as likely


@dataclass(frozen=True)
class Expected:
    """What is expected of candidates.

    Attributes:
        values: Their objectives: [C, K].
        moves: The deviations of what will be expected of each once it has been trained with one more seed: [C, K].
    """

    values: Array
    moves: Array

    def outcomes(self, weight: float, random: np.random.Generator) -> Array:
        """What may be expected of each then, as if expectations were so much less certain: [Z, C, K]."""
        by_objective = [random.permutation(_OUTCOMES) for _ in range(self.values.shape[1])]
        return np.asarray(self.values + weight * self.moves * np.stack(by_objective, axis=1)[:, None, :])


class Beliefs:
    """What trials and counting say of every candidate's objectives. Each is measured in deviations of the N values.

    Candidates under way are taken to come out as expected.
    """

    def __init__(self, situation: Situation, measured: Measured) -> None:
        self._standing, self._known = situation.coordinates.standing, situation.known
        running = situation.tried.indices[situation.tried.running][:RUNNING]
        known = self._known(measured.indices)
        values = np.where(np.isnan(known), measured.values, known)
        self._mean, self._unit = values.mean(axis=0), np.maximum(values.std(axis=0), 1e-12)
        self._modelled = np.flatnonzero(np.isnan(known).any(axis=0)).tolist()
        readings = [self._readings(measured, k) for k in self._modelled]
        places = self._standing.at(measured.indices)
        self._processes = [Process(places, one) for one in readings]
        if len(running):
            later = self._standing.at(np.concatenate([measured.indices, running]))
            ahead = [process.expected(self._standing.at(running))[0] for process in self._processes]
            fitted = zip(self._processes, readings, ahead, strict=True)
            self._processes = [Process(later, _with(one, more), process.scales) for process, one, more in fitted]

    def expected(self, at: Indices) -> Expected:
        """What is expected of some candidates."""
        values, moves = self._counted(at), np.zeros((len(at), len(self._mean)))
        for k, process in zip(self._modelled, self._processes, strict=True):
            values[:, k], variance = process.expected(self._standing.at(at))
            moves[:, k] = variance / np.sqrt(variance + process.noise)
        return Expected(values, moves)

    def draws(self, at: Indices, number: int, random: np.random.Generator) -> Array:
        """Objectives as they may truly be, together: [D, C, K]."""
        drawn = np.repeat(self._counted(at)[None], number, axis=0)
        for k, process in zip(self._modelled, self._processes, strict=True):
            drawn[:, :, k] = process.draws(self._standing.at(at), number, random)
        return drawn

    def _readings(self, measured: Measured, k: int) -> Readings:
        shares = noise_shares(measured.errors[:, k])
        within = (measured.within[:, k] / shares).sum() / self._unit[k] ** 2
        return Readings((measured.values[:, k] - self._mean[k]) / self._unit[k], measured.seeds, shares, float(within))

    def _counted(self, at: Indices) -> Array:
        return np.asarray((self._known(at) - self._mean) / self._unit)


def _with(readings: Readings, more: Array) -> Readings:
    """Readings, and some more of architectures of their own."""
    ones = np.ones(len(more))
    means, counts, shares = (
        np.concatenate(pair) for pair in ((readings.means, more), (readings.counts, ones), (readings.shares, ones))
    )
    return Readings(means, counts, shares, readings.within)
