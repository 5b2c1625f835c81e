"""The nearest choice, compared with an enumeration of all choices, with costs of single units."""

from itertools import product

import numpy as np
import pytest

import nas.budget.implicit.nearest_sum
from nas.budget.implicit.nearest_sum import nearest_choice


def test_nearest_choice_equals_that_of_an_enumeration() -> None:
    feasible = [check_nearest(seed, quantities) for quantities in (1, 2) for seed in range(20)]
    assert {*feasible} == {True, False}  # both occur


def check_nearest(seed: int, quantities: int) -> bool:
    """Compare the nearest choice of random parts with an enumeration. Return whether any choice is feasible."""
    random = np.random.default_rng(seed)
    parts = [
        (random.random(3).tolist(), [tuple(map(int, random.integers(-4, 9, quantities))) for _ in range(3)])
        for _ in range(5)
    ]
    low = tuple(map(int, random.integers(0, 12, quantities)))
    high = tuple(end + int(random.integers(0, 6)) for end in low)
    inside = {}
    for choice in product(range(3), repeat=5):
        sums = [sum(cost[o][q] for (_, cost), o in zip(parts, choice, strict=True)) for q in range(quantities)]
        if all(a <= total <= b for a, total, b in zip(low, sums, high, strict=True)):
            inside[choice] = sum(far[o] for (far, _), o in zip(parts, choice, strict=True))
    nearest = nearest_choice(parts, low, high)
    assert (nearest is None) == (not inside), seed
    if nearest is not None:
        assert tuple(nearest[1]) in inside, seed
        assert nearest[0] == pytest.approx(min(inside.values())) == inside[tuple(nearest[1])], seed
    return bool(inside)


def test_choice_among_too_many_sums_is_inside_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas.budget.implicit.nearest_sum, "STATES", 8)
    random = np.random.default_rng(0)
    parts = [(random.random(5).tolist(), [(int(c),) for c in random.integers(0, 10**6, 5)]) for _ in range(12)]
    nearest = nearest_choice(parts, (5_900_000,), (6_100_000,))
    assert nearest is not None
    assert 5_900_000 <= sum(cost[o][0] for (_, cost), o in zip(parts, nearest[1], strict=True)) <= 6_100_000
    zero = [([0.0 if o == 2 else 1.0 for o in range(5)], cost) for _, cost in parts]
    target = sum(cost[2][0] for _, cost in zero)
    assert nearest_choice(zero, (target,), (target,)) == (0.0, [2] * 12)
