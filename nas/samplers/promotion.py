"""Trainings that were held at a rung: how they would have ended, and which of them go on.

Rungs are those of asynchronous successive halving (L. Li et al., "A System for Massively Parallel Hyperparameter
Tuning", MLSys 2020; with several objectives R. Schmucker et al., arXiv 2106.12639). There, a training goes on where it
is among the best by what was reported at the rung, so that whatever learns slowly is lost, large networks first. Here
it goes on where its end is expected to add to the front: by a Gaussian process of the ends over architectures and
reports, which knows what costs are and how uncertain it is.

Shapes: T = trials, P = trainings that have ended, H = those that are held, K = objectives.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nas.samplers.encoding import Coordinates
from nas.samplers.history import TrialTable, some_of
from nas.samplers.hypervolume import Hypervolume
from nas.samplers.posterior import Expected
from nas.samplers.proposer import Costs, known
from nas.samplers.rungs import MOST_RUNGS
from results.stats.gaussian_process import Array, Features, GaussianProcess, Observations

PAIRS = 8
"""So many trainings must have gone on from a rung to their end before any other is left there."""

LEAST_GAIN = 2e-3
"""What a training must be expected to add to go on, as a share of the front's hypervolume."""

ENDED = 128
"""Trainings that it is told by, at most."""


def promote(coordinates: Coordinates, tried: TrialTable, costs: Costs, seed: int, searching: bool) -> int | None:
    """The number of the trial that began the training to go on with next: from the highest rung, what adds most.

    None where nothing does. While a search goes on, new architectures come first until more are held than have ended.
    """
    random = np.random.default_rng(seed)
    reached = reported(tried).sum(axis=1)
    if searching and PAIRS <= tried.valued.sum() >= tried.held.sum():
        return None
    for rung in reversed(range(MOST_RUNGS)):
        held = np.flatnonzero(tried.held & (reached == rung + 1))
        ended = np.flatnonzero(tried.valued & (reached > rung))
        ended = ended[some_of(tried.values[ended], ENDED, random)]
        if len(held) and len(ended) < PAIRS:
            return int(tried.numbers[held[0]])
        if len(held):
            every = np.concatenate([ended, held])
            at, reports = tried.indices[every], tried.reports[every, rung]
            places, counted = coordinates.as_places.at(at), known(coordinates, costs, at)
            gains = gains_of(places, counted, reports, tried.values[ended], tried.errors[ended], random)
            if gains.max() > LEAST_GAIN:
                return int(tried.numbers[held[gains.argmax()]])
    return None


def gains_of(
    places: Features, counted: Array, reports: Array, values: Array, errors: Array, random: np.random.Generator
) -> Array:
    """What trainings held at a rung are expected to add to the front's hypervolume, as shares of it: [H].

    Of an objective that is counted, the end is known; of the others, a process tells it by the architectures and by
    what each training reported at that rung.

    Args:
        places: Of P architectures whose trainings have ended, and then of H that are held.
        counted: What counting tells of their objectives; NaN where it does not: [P + H, K].
        reports: What they reported at the rung: [P + H, K].
        values: What the first P ended with: [P, K].
        errors: The standard errors of that: [P, K].
        random: Draws outcomes.
    """
    number = len(values)
    expected, moves = counted.copy(), np.zeros(counted.shape)
    for k in np.flatnonzero(np.isnan(counted).any(axis=0)):
        told = Features(np.concatenate([places.sizes, in_its_range(reports[:, k])[:, None]], axis=1), places.words)
        readings, mean, unit = Observations.of(values[:, k], np.ones(number), errors[:, k], np.zeros(number))
        process = GaussianProcess(told.at(np.arange(number)), readings)
        means, variances = process.predict(told)
        expected[:, k], moves[:, k] = mean + unit * means, unit * variances / np.sqrt(variances + process.noise)
    hypervolume = Hypervolume(expected[:number], expected[number:], random)
    outcomes = Expected(expected[number:], moves[number:]).outcomes(1.0, random)
    return hypervolume.gain(outcomes) / hypervolume.reached


def as_if_ended(tried: TrialTable) -> TrialTable:
    """What was tried, where trainings that are held have the values that they are expected to end with.

    Nothing is told of a rung from which fewer than PAIRS have gone on to their end.
    """
    values, errors, told = tried.values.copy(), tried.errors.copy(), reported(tried)
    for rung in range(MOST_RUNGS):
        held = tried.held & told[:, rung]  # what is told from a higher rung is told last, and stays
        ended = tried.valued & told[:, rung]
        if held.any() and ended.sum() >= PAIRS:
            at = tried.reports[:, rung]
            values[held], errors[held] = predict_end(at[ended], tried.values[ended], at[held])
            least = tried.values[ended].min(axis=0)  # what is positive stays so, however far the line is drawn
            values[held] = np.where(least > 0, np.maximum(values[held], least / 2), values[held])
    return replace(tried, values=values, errors=errors)


def predict_end(reports: Array, values: Array, at: Array) -> tuple[Array, Array]:
    """What trainings will end with, and the standard errors of that: [P, K], [P, K], [H, K] -> [H, K] and [H, K].

    By least squares, objective by objective, from the reports of P trainings at a rung to the values they ended with.
    Which trainings went on was chosen by these reports, which leaves the line as it is. Where all reported the same, it
    has the slope 1.
    """
    middle, mean = reports.mean(axis=0), values.mean(axis=0)
    spread = ((reports - middle) ** 2).sum(axis=0)
    flat, divisor = spread == 0, np.where(spread == 0, 1.0, spread)
    slope = np.where(flat, 1.0, ((reports - middle) * (values - mean)).sum(axis=0) / divisor)
    residual = ((values - mean - slope * (reports - middle)) ** 2).sum(axis=0) / (len(values) - 2)
    leverage = 1 / len(values) + np.where(flat, 0.0, (at - middle) ** 2 / divisor)
    return mean + slope * (at - middle), np.sqrt(residual * (1 + leverage))


def reported(tried: TrialTable) -> NDArray[np.bool_]:
    """Whether a trial has reported at each rung: [T, MOST_RUNGS]."""
    return np.asarray(np.isfinite(tried.reports).all(axis=2), dtype=bool)


def in_its_range(values: Array) -> Array:
    """From 0 for the least to 1 for the greatest."""
    return np.asarray((values - values.min()) / max(float(np.ptp(values)), 1e-12))
