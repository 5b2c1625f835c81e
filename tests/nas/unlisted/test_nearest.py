"""The nearest choice, held against all choices one by one, with costs of single units."""

from itertools import product

import numpy as np
import pytest

import nas.unlisted.nearest
from nas.unlisted.nearest import nearest_choice


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("quantities", [1, 2])
def test_the_nearest_choice_is_that_of_all(seed: int, quantities: int) -> None:
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
    found = nearest_choice(parts, low, high)
    if not inside:
        assert found is None
        return
    assert found is not None
    assert tuple(found[1]) in inside
    assert found[0] == pytest.approx(min(inside.values())) == inside[tuple(found[1])]


def test_where_sums_are_many_what_is_found_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas.unlisted.nearest, "STATES", 8)
    random = np.random.default_rng(0)
    parts = [(random.random(5).tolist(), [(int(c),) for c in random.integers(0, 10**6, 5)]) for _ in range(12)]
    found = nearest_choice(parts, (5_900_000,), (6_100_000,))
    assert found is not None
    assert 5_900_000 <= sum(cost[o][0] for (_, cost), o in zip(parts, found[1], strict=True)) <= 6_100_000
    zero = [([0.0 if o == 2 else 1.0 for o in range(5)], cost) for _, cost in parts]
    wanted = sum(cost[2][0] for _, cost in zero)
    assert nearest_choice(zero, (wanted,), (wanted,)) == (0.0, [2] * 12)
