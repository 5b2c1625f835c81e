"""Promotion of trainings that are paused at a rung, by their predicted ends.

Rungs are those of asynchronous successive halving (L. Li et al., "A System for Massively Parallel Hyperparameter
Tuning", MLSys 2020; with several objectives R. Schmucker et al., arXiv 2106.12639). There, a training is promoted if it
is among the best at the rung, which loses slow learners, above all large networks. Here, a training is promoted if its
end is expected to add to the front. The ends are modeled by a Gaussian process over architectures and reports, which
knows costs and its own uncertainty.

Shapes: T = trials, P = complete trainings, H = paused ones, K = objectives.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nas.samplers.encoding import Coordinates
from nas.samplers.history import TrialTable, subsample
from nas.samplers.hypervolume import Hypervolume
from nas.samplers.posterior import Predictions
from nas.samplers.proposer import Costs, cost_matrix
from nas.samplers.rungs import MAX_RUNGS
from results.stats.gaussian_process import Array, Features, GaussianProcess, Observations

PAIRS = 8
"""Complete trainings that a rung needs before trainings stay paused there."""

MIN_GAIN = 2e-3
"""Smallest expected gain of a promotion, as a fraction of the front's hypervolume."""

MAX_COMPLETE = 128
"""Largest number of complete trainings that the model of ends is fitted to."""


def promote(coordinates: Coordinates, trials: TrialTable, costs: Costs, seed: int, searching: bool) -> int | None:
    """Return the number of the trial to promote next: on the highest rung, the one that adds most to the front.

    None if none adds anything. During a search, new architectures come first until more trainings are paused than done.
    """
    random = np.random.default_rng(seed)
    rungs = has_reports(trials).sum(axis=1)
    if searching and PAIRS <= trials.has_values.sum() >= trials.is_paused.sum():
        return None
    for rung in reversed(range(MAX_RUNGS)):
        paused = np.flatnonzero(trials.is_paused & (rungs == rung + 1))
        complete = np.flatnonzero(trials.has_values & (rungs > rung))
        complete = complete[subsample(trials.values[complete], MAX_COMPLETE, random)]
        if len(paused) and len(complete) < PAIRS:
            return int(trials.numbers[paused[0]])
        if len(paused):
            rows = np.concatenate([complete, paused])
            at, reports = trials.indices[rows], trials.reports[rows, rung]
            features, counts = coordinates.features.at(at), cost_matrix(coordinates, costs, at)
            gains = promotion_gains(features, counts, reports, trials.values[complete], trials.errors[complete], random)
            if gains.max() > MIN_GAIN:
                return int(trials.numbers[paused[gains.argmax()]])
    return None


def promotion_gains(
    features: Features, counts: Array, reports: Array, values: Array, errors: Array, random: np.random.Generator
) -> Array:
    """Return the expected hypervolume gain of trainings paused at a rung, as fractions of the front's: [H].

    Counted objectives are known. The others are predicted by a Gaussian process over the architectures and their
    reports at that rung.

    Args:
        features: Features of P architectures with complete trainings, then of H with paused ones.
        counts: Their counted objectives; NaN for trained ones: [P + H, K].
        reports: Their reports at the rung: [P + H, K].
        values: Final values of the first P: [P, K].
        errors: Standard errors of these values: [P, K].
        random: Generator of the outcomes.
    """
    number = len(values)
    predictions, change_stds = counts.copy(), np.zeros(counts.shape)
    for k in np.flatnonzero(np.isnan(counts).any(axis=0)):
        sizes = np.concatenate([features.sizes, min_max_scale(reports[:, k])[:, None]], axis=1)
        with_reports = Features(sizes, features.words)
        observations, mean, unit = Observations.of(values[:, k], np.ones(number), errors[:, k], np.zeros(number))
        process = GaussianProcess(with_reports.at(np.arange(number)), observations)
        means, variances = process.predict(with_reports)
        predictions[:, k], change_stds[:, k] = (
            mean + unit * means,
            unit * variances / np.sqrt(variances + process.noise),
        )
    hypervolume = Hypervolume(predictions[:number], predictions[number:], random)
    outcomes = Predictions(predictions[number:], change_stds[number:]).outcomes(1.0, random)
    return hypervolume.gain(outcomes) / hypervolume.total


def fill_predicted_values(trials: TrialTable) -> TrialTable:
    """Return the trials with predicted final values for paused trainings.

    A rung with fewer than PAIRS complete trainings predicts nothing.
    """
    values, errors, reports = trials.values.copy(), trials.errors.copy(), has_reports(trials)
    for rung in range(MAX_RUNGS):
        paused = trials.is_paused & reports[:, rung]  # the highest rung's prediction wins
        complete = trials.has_values & reports[:, rung]
        if paused.any() and complete.sum() >= PAIRS:
            at = trials.reports[:, rung]
            values[paused], errors[paused] = predict_end(at[complete], trials.values[complete], at[paused])
            least = trials.values[complete].min(axis=0)  # positive values stay positive under extrapolation
            values[paused] = np.where(least > 0, np.maximum(values[paused], least / 2), values[paused])
    return replace(trials, values=values, errors=errors)


def predict_end(reports: Array, values: Array, at: Array) -> tuple[Array, Array]:
    """Predict the ends of trainings, and their standard errors: [P, K], [P, K], [H, K] -> [H, K] and [H, K].

    Least squares for each objective, from the reports of P trainings at a rung to their final values. Promotion
    selected these trainings by their reports, which does not bias the line. If all reports are equal, the slope is 1.
    """
    middle, mean = reports.mean(axis=0), values.mean(axis=0)
    spread = ((reports - middle) ** 2).sum(axis=0)
    flat, divisor = spread == 0, np.where(spread == 0, 1.0, spread)
    slope = np.where(flat, 1.0, ((reports - middle) * (values - mean)).sum(axis=0) / divisor)
    residual = ((values - mean - slope * (reports - middle)) ** 2).sum(axis=0) / (len(values) - 2)
    leverage = 1 / len(values) + np.where(flat, 0.0, (at - middle) ** 2 / divisor)
    return mean + slope * (at - middle), np.sqrt(residual * (1 + leverage))


def has_reports(trials: TrialTable) -> NDArray[np.bool_]:
    """Return whether a trial has reported at each rung: [T, MAX_RUNGS]."""
    return np.asarray(np.isfinite(trials.reports).all(axis=2), dtype=bool)


def min_max_scale(values: Array) -> Array:
    """Scale values linearly to the range from 0 to 1."""
    return np.asarray((values - values.min()) / max(float(np.ptp(values)), 1e-12))
