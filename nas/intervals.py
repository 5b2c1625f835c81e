"""Intervals of means that are looked at together."""

import math
import statistics
from collections.abc import Sequence

from scipy.stats import t

MISTAKEN = 0.05
"""The chance that any of the intervals that are looked at together misses its mean."""


def interval(values: Sequence[float], together: int) -> tuple[float, float]:
    """Student's interval of the mean of two values or more, one of so many (Bonferroni)."""
    mean = statistics.fmean(values)
    quantile = float(t.ppf(1 - MISTAKEN / together / 2, len(values) - 1))
    reach = quantile * statistics.stdev(values) / math.sqrt(len(values))
    return mean - reach, mean + reach
