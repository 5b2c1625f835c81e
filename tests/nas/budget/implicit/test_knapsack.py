"""Knapsack: counts and draws, compared with an enumeration of all choices."""

from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

import nas.budget.implicit.knapsack
from expect import raises
from nas.budget.implicit.knapsack import Cost, Knapsack, Part, random_below


@cache
def kinds_of(seed: int, quantities: int) -> list[list[Part]]:
    """Three kinds of parts with equal parts in each kind; some costs are negative."""
    random = np.random.default_rng(seed)
    kinds: list[list[Part]] = []
    for options, parts, unit in ((4, 3, 7), (3, 3, 10), (2, 2, 1)):
        costs: Part = [tuple(map(int, random.integers(-3, 9, quantities) * unit)) for _ in range(options)]
        kinds.append([costs] * parts)
    return kinds


@cache
def sums_of(seed: int, quantities: int, most: int) -> dict[tuple[int, ...], list[int]]:
    """Every choice among at most `most` parts of each kind, with its sums."""
    parts = [part for kind in kinds_of(seed, quantities) for part in kind[:most]]
    return {
        choice: [sum(part[option][q] for part, option in zip(parts, choice, strict=True)) for q in range(quantities)]
        for choice in product(*(range(len(part)) for part in parts))
    }


def naive_choices(seed: int, low: Cost, high: Cost, most: int = 3) -> set[tuple[int, ...]]:
    """The choices whose sums are within the bounds, by enumeration."""
    return {
        choice
        for choice, sums in sums_of(seed, len(low), most).items()
        if all(a <= total <= b for a, total, b in zip(low, sums, high, strict=True))
    }


RANGES: list[tuple[Cost, Cost]] = [
    ((0,), (0,)),
    ((0,), (10**30,)),
    ((40,), (90,)),
    ((-(10**30),), (60,)),
    ((77,), (77,)),
    ((60,), (10**30,)),
    ((10**9,), (10**10,)),
    ((30, -50), (140, 60)),
    ((-(10**30), 70), (110, 10**30)),
    ((9, 0), (8, 100)),
]


@pytest.mark.parametrize("seed", range(3))
def test_number_of_choices_equals_that_of_an_enumeration(seed: int) -> None:
    numbers = [Knapsack(kinds_of(seed, len(low)), low, high).number for low, high in RANGES]
    assert numbers == [len(naive_choices(seed, low, high)) for low, high in RANGES]


@pytest.mark.parametrize(("low", "high"), [RANGES[1], RANGES[2], RANGES[7]])
def test_all_choices_are_equally_likely(low: Cost, high: Cost) -> None:
    kinds = [kind[:2] for kind in kinds_of(1, len(low))]
    inside = naive_choices(1, low, high, most=2)
    assert 20 < len(inside) <= 576
    knapsack, random = Knapsack(kinds, low, high), np.random.default_rng(5)
    draws = Counter(tuple(knapsack.draw(random)) for _ in range(12 * len(inside)))
    assert set(draws) == inside
    assert chisquare([draws[choice] for choice in inside]).pvalue > 0.001


def test_numbers_beyond_64_bits_are_exact() -> None:
    part: Part = [(0,), (1,)]
    half = Knapsack([[part] * 100, [part] * 101], (0,), (100,))
    assert half.number == 2**200
    box = Knapsack([[[(0, 0), (1, 2)]] * 100, [[(0, 0), (1, 2)]] * 101], (0, 0), (100, 10**6))
    assert box.number == 2**200
    assert sum(half.draw(np.random.default_rng(0))) <= 100


def test_empty_knapsack_has_one_choice() -> None:
    assert Knapsack([], (0,), (0,)).number == 1
    assert Knapsack([], (0,), (5,)).draw(np.random.default_rng(0)) == []
    assert Knapsack([], (1,), (5,)).number == 0


def test_too_many_sums_are_an_error_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[list[Part]] = [[[(7**i, 5**i), (11**i, 3**i)] for i in range(part, part + 5)] for part in (1, 6)]
    assert Knapsack(kinds, (0, 0), (10**20, 10**20)).number == 2**10
    monkeypatch.setattr(nas.budget.implicit.knapsack, "MAX_PAIRS", 500)
    with raises("too-large", pairs=1024, most=500):
        print(Knapsack(kinds, (0, 0), (10**20, 10**20)).number)


def test_random_whole_numbers_are_uniform() -> None:
    random = np.random.default_rng(0)
    draws = Counter(random_below(5, random) for _ in range(5000))
    assert set(draws) == set(range(5))
    assert chisquare(list(draws.values())).pvalue > 0.001
    assert random_below(1, random) == 0
    assert random_below(10**40, random) < 10**40
