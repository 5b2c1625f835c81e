"""The hypervolume between points and a reference point.

Shapes: n = points, m = objectives.
"""

import numpy as np
from numpy.typing import NDArray


def hypervolume(values: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """Return the hypervolume between n points and a reference point, where less is better: [n, m] and [m].

    Points that are not better than the reference in every value add nothing. The result is exact: the space is cut at
    the last values, and each slice is a hypervolume in one dimension less (hypervolume by slicing objectives: L. While
    et al., 2006). Two values take a sort and a scan.

    Raises:
        ValueError: Points and reference differ in the number of values, or one is NaN.
    """
    if values.ndim != 2 or reference.shape != (values.shape[1],):
        raise ValueError(f"points and reference must be [n, m] and [m], got {values.shape} and {reference.shape}.")
    if np.isnan(values).any() or np.isnan(reference).any():
        raise ValueError("points and reference must be numbers, got NaN.")
    values = values[(values < reference).all(axis=1)]
    if not len(values):
        return 0.0
    if len(reference) == 1:
        return float(reference[0] - values.min())
    if len(reference) == 2:
        first, second = values[np.argsort(values[:, 0])].T
        best = np.minimum.accumulate(second)
        return float((np.diff(first, append=reference[0]) * (reference[1] - best)).sum())
    values = values[np.argsort(values[:, -1])]
    depths = np.diff(values[:, -1], append=reference[-1])
    slices = [(n + 1, float(depth)) for n, depth in enumerate(depths) if depth]
    return sum(depth * hypervolume(values[:best, :-1], reference[:-1]) for best, depth in slices)
