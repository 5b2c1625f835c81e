"""The nearest choice of one option of each part whose summed costs are within their ranges.

Parts are processed in order. Of the partial choices with equal sums only the nearest is kept, and none that the
remaining parts cannot bring inside. Beyond STATES distinct sums, those in one cell of a grid count as equal. A nearer
choice may then be missed, but the result is always inside.

Shapes: S = states, O = options of a part, Q = quantities.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nas.budget.implicit.knapsack import Cost

STATES = 1024
"""Largest number of distinct sums kept from part to part."""

_FAR = 2**61


def nearest_choice(
    parts: Sequence[tuple[Sequence[float], Sequence[Cost]]], low: Cost, high: Cost
) -> tuple[float, list[int]] | None:
    """Return the distance of the nearest choice and the option of each part; None if there is none.

    Args:
        parts: For each part, the distance of each option from its target and its cost.
        low: Lower bound of each quantity.
        high: Upper bound of each quantity.
    """
    floor, ceiling = (np.array([max(-_FAR, min(_FAR, end)) for end in ends], dtype=np.int64) for ends in (low, high))
    costs = [np.array(cost, dtype=np.int64).reshape(len(cost), len(low)) for _, cost in parts]  # [O, Q] each
    least = np.array([cost.min(axis=0) for cost in costs]).reshape(-1, len(low))
    most = np.array([cost.max(axis=0) for cost in costs]).reshape(-1, len(low))
    sums, totals = np.zeros((1, len(low)), dtype=np.int64), np.zeros(1)
    trail: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
    for number, (distances, _) in enumerate(parts):
        options = len(costs[number])
        sums = (sums[:, None] + costs[number]).reshape(-1, len(low))  # [S * O, Q]
        totals = (totals[:, None] + np.array(distances)).ravel()
        inside = (sums + least[number + 1 :].sum(0) <= ceiling) & (sums + most[number + 1 :].sum(0) >= floor)
        states = np.flatnonzero(inside.all(axis=1))
        states = states[_nearest_of_each(sums[states], totals[states])]
        if len(states) > STATES:
            states = states[_nearest_of_each(_cells(sums[states]), totals[states])]
        trail.append((states // options, states % options))
        sums, totals = sums[states], totals[states]
        if not len(states):
            return None
    state = int(totals.argmin())
    distance, choice = float(totals[state]), list[int]()
    for before, option in reversed(trail):
        choice.append(int(option[state]))
        state = int(before[state])
    return distance, choice[::-1]


def _nearest_of_each(keys: NDArray[np.int64], totals: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the index of the nearest of each group of equal keys."""
    order = np.lexsort((totals, *keys.T))
    rows = keys[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return np.sort(order[first])


def _cells(sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the grid cell of each sum; there are at most STATES cells."""
    side = int(STATES ** (1 / sums.shape[1]))
    lowest, span = sums.min(axis=0), np.ptp(sums, axis=0)
    return np.asarray((sums - lowest) // (span // side + 1))
