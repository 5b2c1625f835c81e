"""The counted knapsack, held against all choices one by one."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

import nas.unlisted.knapsack
from nas.unlisted.knapsack import Cost, Knapsack, Part, below
from search_spaces.errors import UserError


def kinds_of(seed: int, quantities: int) -> list[list[Part]]:
    """Three kinds of parts, those of one kind alike, negative costs included."""
    random = np.random.default_rng(seed)
    kinds: list[list[Part]] = []
    for options, parts, unit in ((4, 3, 7), (3, 3, 10), (2, 2, 1)):
        costs: Part = [tuple(map(int, random.integers(-3, 9, quantities) * unit)) for _ in range(options)]
        kinds.append([costs] * parts)
    return kinds


def by_hand(kinds: list[list[Part]], low: Cost, high: Cost) -> set[tuple[int, ...]]:
    parts = [part for kind in kinds for part in kind]
    inside = set()
    for choice in product(*(range(len(part)) for part in parts)):
        sums = [sum(part[option][q] for part, option in zip(parts, choice, strict=True)) for q in range(len(low))]
        if all(a <= total <= b for a, total, b in zip(low, sums, high, strict=True)):
            inside.add(choice)
    return inside


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
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_the_number_is_that_of_all_choices_one_by_one(low: Cost, high: Cost, seed: int) -> None:
    kinds = kinds_of(seed, len(low))
    assert Knapsack(kinds, low, high).number == len(by_hand(kinds, low, high))


@pytest.mark.parametrize(("low", "high"), [RANGES[1], RANGES[2], RANGES[7]])
def test_each_choice_is_drawn_with_the_same_chance(low: Cost, high: Cost) -> None:
    kinds = [kind[:2] for kind in kinds_of(1, len(low))]
    inside = by_hand(kinds, low, high)
    assert 20 < len(inside) <= 576
    knapsack, random = Knapsack(kinds, low, high), np.random.default_rng(5)
    drawn = Counter(tuple(knapsack.draw(random)) for _ in range(30 * len(inside)))
    assert set(drawn) == inside
    assert chisquare([drawn[choice] for choice in inside]).pvalue > 0.001


def test_numbers_beyond_any_machine_word_are_exact() -> None:
    part: Part = [(0,), (1,)]
    half = Knapsack([[part] * 100, [part] * 101], (0,), (100,))
    assert half.number == 2**200
    box = Knapsack([[[(0, 0), (1, 2)]] * 100, [[(0, 0), (1, 2)]] * 101], (0, 0), (100, 10**6))
    assert box.number == 2**200
    assert sum(half.draw(np.random.default_rng(0))) <= 100


def test_no_part_is_one_choice() -> None:
    assert Knapsack([], (0,), (0,)).number == 1
    assert Knapsack([], (0,), (5,)).draw(np.random.default_rng(0)) == []
    assert Knapsack([], (1,), (5,)).number == 0


def test_too_many_sums_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[list[Part]] = [[[(7**i, 5**i), (11**i, 3**i)] for i in range(part, part + 5)] for part in (1, 6)]
    assert Knapsack(kinds, (0, 0), (10**20, 10**20)).number == 2**10
    monkeypatch.setattr(nas.unlisted.knapsack, "MOST_PAIRS", 500)
    with pytest.raises(UserError, match="Bound one quantity, or take fewer values"):
        print(Knapsack(kinds, (0, 0), (10**20, 10**20)).number)


def test_whole_numbers_below_an_end_are_equally_likely() -> None:
    random = np.random.default_rng(0)
    drawn = Counter(below(5, random) for _ in range(5000))
    assert set(drawn) == set(range(5))
    assert chisquare(list(drawn.values())).pvalue > 0.001
    assert below(1, random) == 0
    assert below(10**40, random) < 10**40
