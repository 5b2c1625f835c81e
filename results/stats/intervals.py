"""Intervals of means and differences that are looked at together."""

import math
import statistics
from collections.abc import Sequence

from scipy.stats import t

ERROR_RATE = 0.05
"""The chance that any of the intervals that are looked at together misses what it is about."""


def interval(values: Sequence[float], comparisons: int) -> tuple[float, float]:
    """Student's interval of the mean of two values or more, one of so many (Bonferroni)."""
    mean = statistics.fmean(values)
    half = half_width(statistics.stdev(values) / math.sqrt(len(values)), len(values) - 1, comparisons)
    return mean - half, mean + half


def half_width(error: float, freedom: int, comparisons: int) -> float:
    """How far Student's interval reaches to each side: of a standard error of so many degrees of freedom."""
    return float(t.ppf(1 - ERROR_RATE / comparisons / 2, freedom)) * error
