"""Intervals of means and differences that are looked at together."""

import math
import statistics
from collections.abc import Sequence

from scipy.stats import t

MISTAKEN = 0.05
"""The chance that any of the intervals that are looked at together misses what it is about."""


def interval(values: Sequence[float], together: int) -> tuple[float, float]:
    """Student's interval of the mean of two values or more, one of so many (Bonferroni)."""
    mean = statistics.fmean(values)
    reach = reached(statistics.stdev(values) / math.sqrt(len(values)), len(values) - 1, together)
    return mean - reach, mean + reach


def reached(error: float, freedom: int, together: int) -> float:
    """How far Student's interval reaches to each side: of a standard error of so many degrees of freedom."""
    return float(t.ppf(1 - MISTAKEN / together / 2, freedom)) * error
