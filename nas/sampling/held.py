"""What a training that was held at a rung tells: how it would have ended, by those that were there and went on.

Shapes: T = trials, P = those that have ended, H = those that were held, K = objectives.
"""

from dataclasses import replace

import numpy as np

from nas.early_stopping import MOST_RUNGS
from nas.sampling.history import Tried
from results.process import Array

PAIRS = 5
"""Trainings that must have gone on from a rung to their end before anything is told of the others."""


def as_if_ended(tried: Tried) -> Tried:
    """What was tried, where trainings that were held have the values that they are expected to end with.

    By least squares from the reports at a rung to the values at the end; the standard error is that of one more value.
    Which trainings went on was chosen by these reports, which leaves the line as it is.
    """
    values, errors = tried.values.copy(), tried.errors.copy()
    reported = np.asarray(np.isfinite(tried.reports[:, :, 0]).all(axis=2), dtype=bool)  # [T, MOST_RUNGS]
    for rung in range(MOST_RUNGS):
        held = tried.held & reported[:, rung]  # what is told from a higher rung is told last, and stays
        ended = tried.valued & reported[:, rung]
        if held.any() and ended.sum() >= PAIRS:
            at = tried.reports[:, rung, 0]
            values[held], errors[held] = expected_end(at[ended], tried.values[ended], at[held])
    return replace(tried, values=values, errors=errors)


def expected_end(reports: Array, values: Array, at: Array) -> tuple[Array, Array]:
    """By least squares, the values of one more training and their standard errors: [P, K], [P, K], [H, K] -> [H, K]."""
    middle, mean = reports.mean(axis=0), values.mean(axis=0)
    spread = ((reports - middle) ** 2).sum(axis=0)
    slope = ((reports - middle) * (values - mean)).sum(axis=0) / np.maximum(spread, 1e-300)
    residual = ((values - mean - slope * (reports - middle)) ** 2).sum(axis=0) / (len(values) - 2)
    further = 1 + 1 / len(values) + (at - middle) ** 2 / np.maximum(spread, 1e-300)
    return mean + slope * (at - middle), np.sqrt(residual * further)
