"""What is believed of candidates' objectives: a Gaussian process where a training tells, a number where counting does.

Shapes: N = candidates with values, C = any candidates, K = objectives, Z = outcomes, D = draws.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from nas.samplers.history import CandidateMeans
from nas.samplers.proposer import SearchState
from results.stats.gaussian_process import Array, GaussianProcess, Indices, Observations

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


class Posterior:
    """What trials and counting say of every candidate's objectives. Each is measured in deviations of the N values.

    Candidates under way are taken to come out as expected.

    Attributes:
        running: Candidates under way, at most RUNNING.
    """

    def __init__(self, situation: SearchState, measured: CandidateMeans) -> None:
        self._places, self._known = situation.coordinates.as_places, situation.known
        self.running = situation.tried.indices[situation.tried.running][:RUNNING]
        known = self._known(measured.indices)
        self._modelled: list[int] = np.flatnonzero(np.isnan(known).any(axis=0)).tolist()
        counted = [k for k in range(known.shape[1]) if k not in self._modelled]
        self._mean, self._unit = np.zeros(known.shape[1]), np.ones(known.shape[1])
        self._mean[counted] = known[:, counted].mean(axis=0)
        self._unit[counted] = np.maximum(known[:, counted].std(axis=0), 1e-12)
        self._processes = [self._process(measured, k) for k in self._modelled]

    def expected(self, at: Indices) -> Expected:
        """What is expected of some candidates."""
        values, moves = self._counted(at), np.zeros((len(at), len(self._mean)))
        for k, process in zip(self._modelled, self._processes, strict=True):
            values[:, k], variance = process.predict(self._places.at(at))
            moves[:, k] = variance / np.sqrt(variance + process.noise)
        return Expected(values, moves)

    def draws(self, at: Indices, number: int, random: np.random.Generator) -> Array:
        """Objectives as they may truly be, together: [D, C, K]."""
        drawn = np.repeat(self._counted(at)[None], number, axis=0)
        for k, process in zip(self._modelled, self._processes, strict=True):
            drawn[:, :, k] = process.draws(self._places.at(at), number, random)
        return drawn

    def _process(self, measured: CandidateMeans, k: int) -> GaussianProcess:
        readings, _, _ = Observations.of(
            measured.values[:, k], measured.seeds, measured.errors[:, k], measured.within[:, k]
        )
        process = GaussianProcess(self._places.at(measured.indices), readings)
        if not len(self.running):
            return process
        ahead, _ = process.predict(self._places.at(self.running))
        later = self._places.at(np.concatenate([measured.indices, self.running]))
        # What comes out as expected says nothing of how large variances are.
        return GaussianProcess(later, readings.extend(ahead), process.scales, process.unit)

    def _counted(self, at: Indices) -> Array:
        return np.asarray((self._known(at) - self._mean) / self._unit)
