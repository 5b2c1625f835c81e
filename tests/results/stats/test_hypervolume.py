"""Hypervolumes, against the union of boxes."""

import re
from itertools import combinations
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from results.stats.hypervolume import hypervolume


def boxes(values: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """Volume of the union of boxes from each point to the reference, by inclusion and exclusion."""
    total = 0.0
    for size in range(1, len(values) + 1):
        for some in combinations(values, size):
            sides = np.maximum(reference - np.max(some, axis=0), 0)
            total += (-1) ** (size + 1) * prod(sides.tolist())
    return total


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_hypervolume_is_that_of_the_union_of_boxes(m: int) -> None:
    for n in (0, 1, 2, 7):
        generator = np.random.default_rng(10 * m + n)
        for levels in (3, 1000):  # with and without ties; some points are worse than the reference
            values = generator.integers(0, levels, (n, m)) / levels
            assert hypervolume(values, np.full(m, 0.8)) == pytest.approx(boxes(values, np.full(m, 0.8)), abs=1e-12)


def test_hypervolume_refuses_nan_and_other_lengths() -> None:
    with pytest.raises(ValueError, match="NaN"):
        hypervolume(np.array([[np.nan, 1.0]]), np.ones(2))
    with pytest.raises(ValueError, match=re.escape("got (2, 1) and (2,)")):
        hypervolume(np.ones((2, 1)), np.ones(2))
