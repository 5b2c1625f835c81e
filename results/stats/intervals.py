"""Simultaneous confidence intervals of means and differences."""

import math
import statistics
from collections.abc import Sequence

from scipy.stats import t

ERROR_RATE = 0.05
"""Probability that at least one of the simultaneous intervals misses its true value."""


def interval(values: Sequence[float], comparisons: int) -> tuple[float, float]:
    """Return Student's interval of the mean of at least two values, one of several comparisons (Bonferroni)."""
    mean = statistics.fmean(values)
    half = half_width(statistics.stdev(values) / math.sqrt(len(values)), len(values) - 1, comparisons)
    return mean - half, mean + half


def half_width(error: float, freedom: int, comparisons: int) -> float:
    """Return half the width of Student's interval for a standard error with these degrees of freedom."""
    return float(t.ppf(1 - ERROR_RATE / comparisons / 2, freedom)) * error
