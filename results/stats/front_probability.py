"""The probability that architectures are on the front, given draws of their values.

Shapes: d = draws, n = architectures, m = objectives.
"""

import numpy as np
from numpy.typing import NDArray

from results.stats.pareto import non_dominated


def front_probabilities(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of draws in which each point is on the front, less being better: [d, n, m] -> [n]."""
    return np.asarray(np.mean([non_dominated(values) for values in draws], axis=0))
