"""How likely architectures are on the front, where their values are known with errors.

Shapes: d = draws, n = architectures, m = objectives.
"""

import numpy as np
from numpy.typing import NDArray

from results.stats.pareto import non_dominated


def front_probabilities(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """How likely each of n points is on the front, by draws of all their values: [d, n, m] -> [n]."""
    return np.asarray(np.mean([non_dominated(values) for values in draws], axis=0))
