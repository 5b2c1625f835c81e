"""The posterior of candidates' objectives: Gaussian processes of the trained ones, exact counts of the others.

Shapes: N = candidates with values, C = any candidates, K = objectives, Z = outcomes, D = draws.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from nas.samplers.history import CandidateMeans
from nas.samplers.proposer import SearchState
from results.stats.gaussian_process import Array, GaussianProcess, Indices, Observations

RUNNING = 32
"""Largest number of running candidates that are assumed to end as predicted."""

_OUTCOMES = ndtri((np.arange(8) + 0.5) / 8)  # equally likely standardized deviations of an outcome


@dataclass(frozen=True)
class Predictions:
    """Predicted objectives of candidates.

    Attributes:
        values: Predicted objectives: [C, K].
        change_stds: Standard deviation of each prediction's change by one more training: [C, K].
    """

    values: Array
    change_stds: Array

    def lookahead_values(self, exploration: float, random: np.random.Generator) -> Array:
        """Return possible predictions after one more training, with deviations scaled by `exploration`: [Z, C, K]."""
        by_objective = [random.permutation(_OUTCOMES) for _ in range(self.values.shape[1])]
        return np.asarray(self.values + exploration * self.change_stds * np.stack(by_objective, axis=1)[:, None, :])


class Posterior:
    """The posterior of every candidate's objectives, in units of the standard deviations of the N values.

    Running candidates are assumed to end as predicted.

    Attributes:
        running: Candidates with a running trial, at most RUNNING.
    """

    def __init__(self, state: SearchState, means: CandidateMeans) -> None:
        self._features, self._cost_matrix = state.coordinates.features, state.cost_matrix
        self.running = state.trials.indices[state.trials.running][:RUNNING]
        counts = self._cost_matrix(means.indices)
        self._model_columns: list[int] = np.flatnonzero(np.isnan(counts).any(axis=0)).tolist()
        count_columns = [k for k in range(counts.shape[1]) if k not in self._model_columns]
        self._mean, self._std = np.zeros(counts.shape[1]), np.ones(counts.shape[1])
        self._mean[count_columns] = counts[:, count_columns].mean(axis=0)
        self._std[count_columns] = np.maximum(counts[:, count_columns].std(axis=0), 1e-12)
        self._processes = [self._process(means, k) for k in self._model_columns]

    def predict(self, indices: Indices) -> Predictions:
        """Return the predicted objectives of some candidates."""
        values, change_stds = self._count_values(indices), np.zeros((len(indices), len(self._mean)))
        for k, process in zip(self._model_columns, self._processes, strict=True):
            values[:, k], variance = process.predict(self._features.at(indices))
            change_stds[:, k] = variance / np.sqrt(variance + process.noise)
        return Predictions(values, change_stds)

    def draws(self, indices: Indices, number: int, random: np.random.Generator) -> Array:
        """Draw joint samples of the candidates' objectives: [D, C, K]."""
        outcomes = np.repeat(self._count_values(indices)[None], number, axis=0)
        for k, process in zip(self._model_columns, self._processes, strict=True):
            outcomes[:, :, k] = process.draws(self._features.at(indices), number, random)
        return outcomes

    def _process(self, means: CandidateMeans, k: int) -> GaussianProcess:
        observations, _, _ = Observations.standardize(
            means.values[:, k], means.seeds, means.errors[:, k], means.squared_deviations[:, k]
        )
        process = GaussianProcess(self._features.at(means.indices), observations)
        if not len(self.running):
            return process
        predictions, _ = process.predict(self._features.at(self.running))
        features = self._features.at(np.concatenate([means.indices, self.running]))
        # Predicted values carry no information on variances: keep the fitted scales.
        return GaussianProcess(features, observations.extend(predictions), process.scales, process.variance_scale)

    def _count_values(self, at: Indices) -> Array:
        return np.asarray((self._cost_matrix(at) - self._mean) / self._std)
