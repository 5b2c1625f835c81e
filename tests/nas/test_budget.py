"""Budgets: what their text means, and which architectures keep them."""

from collections.abc import Mapping

import pytest

from nas.budget import Budget, Feasible, feasible, parse_budget
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from search_spaces.space import SearchSpace

BASE = Architecture(depth=4, width=8, hidden=16)


@pytest.fixture
def space() -> SearchSpace:
    return SearchSpace("deep", BASE, {"depth": (1, 2, 4, 8), "hidden": (8, 16)})


def counts(architecture: Architecture) -> Mapping[str, int]:
    return {"params": 100 * architecture.depth, "macs": architecture.hidden, "flops": 2 * architecture.hidden}


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("params<=100k", 100_000, 100_001),
        ("params<100k", 99_999, 100_000),
        ("params>=1e6", 1_000_000, 999_999),
        ("params>1e6", 1_000_001, 1_000_000),
        ("100K >= params", 100_000, 100_001),
        ("20M<=params<=24M", 24_000_000, 24_000_001),
        ("20M<params<24M", 20_000_001, 20_000_000),
        ("24M>=params>=20M", 20_000_000, 19_999_999),
        ("params<=1.5G", 1_500_000_000, 1_500_000_001),
        ("params<=2T", 2 * 10**12, 2 * 10**12 + 1),
        ("params<=2.5", 2, 3),
        ("params>=2.5", 3, 2),
    ],
)
def test_a_bound_means_what_it_says_up_to_the_last_unit(text: str, inside: int, outside: int) -> None:
    budget = parse_budget([text])
    assert budget.allows({"params": inside})
    assert not budget.allows({"params": outside})


@pytest.mark.parametrize("texts", [["flops<=50M", "params<=100k"], ["params<=100k,flops<=50M"]])
def test_several_bounds_are_all_kept_however_they_are_given(texts: list[str]) -> None:
    budget = parse_budget(texts)
    assert budget.allows({"params": 100_000, "flops": 50_000_000})
    assert not budget.allows({"params": 100_001, "flops": 1})
    assert not budget.allows({"params": 1, "flops": 50_000_001})


def test_bounds_on_one_quantity_are_joined() -> None:
    assert parse_budget(["params<=5k", "params>=1k", "params<=4k"]) == parse_budget(["1k<=params<=4k"])


@pytest.mark.parametrize(
    ("texts", "canonical"),
    [
        ([], ""),
        ([" flops < 50M ", "params<=100k"], "params<=100000,flops<=49999999"),
        (["macs>=1k"], "macs>=1000"),
        (["24M>=params>=20M"], "20000000<=params<=24000000"),
    ],
)
def test_the_text_of_a_budget_is_canonical_and_reads_back_as_the_same(texts: list[str], canonical: str) -> None:
    budget = parse_budget(texts)
    assert str(budget) == canonical
    assert parse_budget([canonical]) == budget


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("parms<=10k", "params"),
        ("latency<=10", "unknown budget quantity 'latency'"),
        ("params<=10q", "10q"),
        ("params<=", "100k"),
        ("params<=-5", "-5"),
        ("params<=inf", "inf"),
        ("params<=nan", "nan"),
        ("params<=1e999999999", "1e999999999"),
        ("params", "QUANTITY<=NUMBER"),
        ("params=5", "QUANTITY<=NUMBER"),
        ("params==5", "QUANTITY<=NUMBER"),
        ("20M<=params>=24M", "QUANTITY<=NUMBER"),
        ("24M<=params<=20M", "above the upper"),
        ("params<0", "above the upper|no number"),
    ],
)
def test_a_mistaken_bound_is_refused_with_the_remedy(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        parse_budget([text])


def test_the_feasible_set_is_what_counting_every_architecture_gives(space: SearchSpace) -> None:
    budget = parse_budget(["150<=params<=400,flops<=16"])
    expected = [
        one for one in space if 150 <= 100 * one.architecture.depth <= 400 and 2 * one.architecture.hidden <= 16
    ]
    found = feasible(space, counts, budget)
    assert list(found) == expected
    assert len(found) == len(expected) > 0


def test_without_a_bound_everything_is_feasible_and_nothing_is_counted(space: SearchSpace) -> None:
    def refuse(architecture: Architecture) -> Mapping[str, int]:
        raise AssertionError(architecture)

    assert feasible(space, refuse, Budget()) == Feasible(space, tuple(space))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("params<=99", r"smallest has params=100 \(depth=1,.*--arch"),
        ("params>=1k", r"nearest has params=800 \(depth=8,"),
        ("300<=params<=390", r"nearest has params=400 \(depth=4,"),
        ("params<=150,flops<=15", r"nearest has params=100, flops=16 \(depth=1,"),
    ],
)
def test_a_budget_nobody_keeps_is_refused_with_the_nearest_architecture(
    space: SearchSpace, text: str, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        feasible(space, counts, parse_budget([text]))
