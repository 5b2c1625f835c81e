"""Means of each candidate, compared with sums over its trainings."""

import math
from statistics import fmean

import numpy as np
import pytest

from nas.samplers.history import TrialTable, candidate_means
from nas.samplers.rungs import MAX_RUNGS

VALUES = {4: [(2.0, 10.0), (3.0, 11.0), (4.0, 12.0)], 7: [(5.0, 20.0)], 2: [(1.0, 40.0), (1.5, 90.0)]}
ERRORS = {4: [(0.1, 1.0), (0.2, 2.0), (0.3, 3.0)], 7: [(0.4, 2.0)], 2: [(0.5, 4.0), (0.1, 9.0)]}


def trials() -> TrialTable:
    indices = [candidate for candidate, values in VALUES.items() for _ in values]
    number = len(indices)
    return TrialTable(
        np.array(indices, dtype=np.intp),
        np.array([value for values in VALUES.values() for value in values]),
        np.array([value for values in ERRORS.values() for value in values]),
        np.zeros(number, dtype=bool),
        np.arange(number),
        np.full((number, MAX_RUNGS, 2), np.nan),
    )


def test_candidate_means_have_mean_spread_and_error() -> None:
    means = candidate_means(trials())
    assert means.indices.tolist() == [2, 4, 7]
    assert means.seeds.tolist() == [2, 3, 1]
    for row, candidate in enumerate((2, 4, 7)):
        for k in range(2):  # both span more than a factor of three: logarithms
            logs = [math.log(value[k]) for value in VALUES[candidate]]
            shares = [error[k] / value[k] for error, value in zip(ERRORS[candidate], VALUES[candidate], strict=True)]
            assert means.values[row, k] == pytest.approx(fmean(logs))
            assert means.squared_deviations[row, k] == pytest.approx(sum((log - fmean(logs)) ** 2 for log in logs))
            assert means.errors[row, k] == pytest.approx(math.sqrt(fmean([share**2 for share in shares])))


def test_values_of_small_range_or_both_signs_stay_linear() -> None:
    table = trials()
    table.values[:, 0] = [2.0, 3.0, 4.0, 5.0, 2.0, 2.5]
    table.values[0, 1] = -1.0
    means = candidate_means(table)
    assert means.values[2].tolist() == [5.0, 20.0]
    assert means.errors[2].tolist() == [0.4, 2.0]
