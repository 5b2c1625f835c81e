"""Promotion of trainings that are paused at a rung, by their predicted ends.

Rungs are those of asynchronous successive halving (L. Li et al., "A System for Massively Parallel Hyperparameter
Tuning", MLSys 2020; with several objectives R. Schmucker et al., arXiv 2106.12639). There, a training is promoted if it
is among the best at the rung, which loses slow learners, above all large networks. Here, a training is promoted if its
end is expected to add to the front. The ends are modeled by a Gaussian process over architectures and their values at
rungs, which knows costs and its own uncertainty.

Shapes: T = trials, P = complete trainings, H = paused ones, K = objectives.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nas.samplers.encoding import CandidateEncoding
from nas.samplers.history import TrialTable, subsample
from nas.samplers.hypervolume_gain import HypervolumeGain
from nas.samplers.posterior import Predictions
from nas.samplers.proposer import CountedObjectives, cost_matrix
from nas.samplers.rungs import MAX_RUNGS
from results.stats.gaussian_process import Array, Features, GaussianProcess, Observations

MIN_COMPLETE = 8
"""Complete trainings that a rung needs before trainings stay paused there."""

MIN_GAIN = 2e-3
"""Smallest expected gain of a promotion, as a fraction of the front's hypervolume."""

MAX_COMPLETE = 128
"""Largest number of complete trainings that the model of ends is fitted to."""


def promote(
    coordinates: CandidateEncoding, trials: TrialTable, costs: CountedObjectives, seed: int, searching: bool
) -> int | None:
    """Return the number of the trial to promote next: on the highest rung, the one that adds most to the front.

    None if none adds anything. During a search, new architectures come first until more trainings are paused than done.
    """
    random = np.random.default_rng(seed)
    rungs = has_rung_values(trials).sum(axis=1)
    if searching and MIN_COMPLETE <= trials.has_values.sum() >= trials.is_paused.sum():
        return None
    for rung in reversed(range(MAX_RUNGS)):
        paused = np.flatnonzero(trials.is_paused & (rungs == rung + 1))
        complete = np.flatnonzero(trials.has_values & (rungs > rung))
        complete = complete[subsample(trials.values[complete], MAX_COMPLETE, random)]
        if len(paused) and len(complete) < MIN_COMPLETE:
            return int(trials.root_numbers[paused[0]])
        if len(paused):
            rows = np.concatenate([complete, paused])
            at, rung_values = trials.indices[rows], trials.rung_values[rows, rung]
            features, known_objectives = coordinates.features.at(at), cost_matrix(coordinates, costs, at)
            gains = promotion_gains(
                features, known_objectives, rung_values, trials.values[complete], trials.errors[complete], random
            )
            if gains.max() > MIN_GAIN:
                return int(trials.root_numbers[paused[gains.argmax()]])
    return None


def promotion_gains(
    features: Features,
    known_objectives: Array,
    rung_values: Array,
    values: Array,
    errors: Array,
    random: np.random.Generator,
) -> Array:
    """Return the expected hypervolume gain of trainings paused at a rung, as fractions of the front's: [H].

    Counted objectives are known. The others are predicted by a Gaussian process over the architectures and their
    values at that rung.

    Args:
        features: Features of P architectures with complete trainings, then of H with paused ones.
        known_objectives: Their counted objectives; NaN for trained ones: [P + H, K].
        rung_values: Their objectives at the rung: [P + H, K].
        values: Final values of the first P: [P, K].
        errors: Standard errors of these values: [P, K].
        random: Generator of the outcomes.
    """
    number = len(values)
    predictions, change_stds = known_objectives.copy(), np.zeros(known_objectives.shape)
    for k in np.flatnonzero(np.isnan(known_objectives).any(axis=0)):
        numeric = np.concatenate([features.numeric, min_max_scale(rung_values[:, k])[:, None]], axis=1)
        with_rung_values = Features(numeric, features.one_hot)
        observations, mean, std = Observations.standardize(
            values[:, k], np.ones(number), errors[:, k], np.zeros(number)
        )
        process = GaussianProcess(with_rung_values.at(np.arange(number)), observations)
        means, variances = process.predict(with_rung_values)
        predictions[:, k], change_stds[:, k] = (
            mean + std * means,
            std * variances / np.sqrt(variances + process.noise),
        )
    hypervolume = HypervolumeGain(predictions[:number], predictions[number:], random)
    lookahead_values = Predictions(predictions[number:], change_stds[number:]).lookahead_values(1.0, random)
    return hypervolume.gain(lookahead_values) / hypervolume.total


def fill_predicted_values(trials: TrialTable) -> TrialTable:
    """Return the trials with predicted final values for paused trainings.

    A rung with fewer than MIN_COMPLETE complete trainings predicts nothing.
    """
    values, errors, reached = trials.values.copy(), trials.errors.copy(), has_rung_values(trials)
    for rung in range(MAX_RUNGS):
        paused = trials.is_paused & reached[:, rung]  # the highest rung's prediction wins
        complete = trials.has_values & reached[:, rung]
        if paused.any() and complete.sum() >= MIN_COMPLETE:
            at = trials.rung_values[:, rung]
            values[paused], errors[paused] = predict_end(at[complete], trials.values[complete], at[paused])
            least = trials.values[complete].min(axis=0)  # positive values stay positive under extrapolation
            values[paused] = np.where(least > 0, np.maximum(values[paused], least / 2), values[paused])
    return replace(trials, values=values, errors=errors)


def predict_end(rung_values: Array, values: Array, at: Array) -> tuple[Array, Array]:
    """Predict the ends of trainings, and their standard errors: [P, K], [P, K], [H, K] -> [H, K] and [H, K].

    Least squares for each objective, from the values of P trainings at a rung to their final values. Promotion
    selected these trainings by their values at the rung, which does not bias the line. If these are all equal, the
    slope is 1.
    """
    middle, mean = rung_values.mean(axis=0), values.mean(axis=0)
    spread = ((rung_values - middle) ** 2).sum(axis=0)
    flat, divisor = spread == 0, np.where(spread == 0, 1.0, spread)
    slope = np.where(flat, 1.0, ((rung_values - middle) * (values - mean)).sum(axis=0) / divisor)
    residual = ((values - mean - slope * (rung_values - middle)) ** 2).sum(axis=0) / (len(values) - 2)
    leverage = 1 / len(values) + np.where(flat, 0.0, (at - middle) ** 2 / divisor)
    return mean + slope * (at - middle), np.sqrt(residual * (1 + leverage))


def has_rung_values(trials: TrialTable) -> NDArray[np.bool_]:
    """Return whether a trial has values at each rung: [T, MAX_RUNGS]."""
    return np.asarray(np.isfinite(trials.rung_values).all(axis=2), dtype=bool)


def min_max_scale(values: Array) -> Array:
    """Scale values linearly to the range from 0 to 1."""
    return np.asarray((values - values.min()) / max(float(np.ptp(values)), 1e-12))
