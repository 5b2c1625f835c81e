"""What a training that was held at a rung tells: how it would have ended, by those that were there and went on.

Shapes: T = trials, K = objectives.
"""

from dataclasses import replace

import numpy as np

from nas.early_stopping import MOST_RUNGS, PAIRS, expected_end
from nas.sampling.history import Tried


def as_if_ended(tried: Tried) -> Tried:
    """What was tried, where trainings that were held have the values that they are expected to end with.

    Nothing is told of a rung from which fewer than PAIRS have gone on to their end.
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
