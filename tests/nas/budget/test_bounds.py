"""Budgets: what their text means, and which architectures are within them."""

from collections.abc import Mapping
from typing import Any

import pytest

from expect import raises
from grouped import grouped
from nas.budget.bounds import Budget, Feasible, feasible, parse_budget
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.errors import Kind

BASE = Architecture(depth=4, width=8, hidden=16)


@pytest.fixture
def space() -> SearchSpace:
    return SearchSpace("deep", BASE, {"depth": (1, 2, 4, 8), "hidden": (8, 16)})


def counts(architecture: Architecture) -> Mapping[str, int]:
    return {"params": 100 * architecture.depth, "macs": architecture.hidden, "flops": 2 * architecture.hidden}


BOUNDS = [
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
]
"""A bound, a number inside, and one outside."""


def test_a_bound_is_exact_to_the_last_unit() -> None:
    with grouped() as case:
        for text, inside, outside in BOUNDS:
            with case(text):
                budget = parse_budget([text])
                assert budget.allows({"params": inside})
                assert not budget.allows({"params": outside})


def test_several_bounds_all_hold() -> None:
    for texts in (["flops<=50M", "params<=100k"], ["params<=100k,flops<=50M"]):
        budget = parse_budget(texts)
        assert budget.allows({"params": 100_000, "flops": 50_000_000})
        assert not budget.allows({"params": 100_001, "flops": 1})
        assert not budget.allows({"params": 1, "flops": 50_000_001})


def test_bounds_on_one_quantity_intersect() -> None:
    assert parse_budget(["params<=5k", "params>=1k", "params<=4k"]) == parse_budget(["1k<=params<=4k"])


CANONICAL: list[tuple[list[str], str]] = [
    ([], ""),
    ([" flops < 50M ", "params<=100k"], "params<=100000,flops<=49999999"),
    (["macs>=1k"], "macs>=1000"),
    (["24M>=params>=20M"], "20000000<=params<=24000000"),
]


def test_the_text_of_a_budget_is_canonical_and_reads_back_the_same() -> None:
    for texts, canonical in CANONICAL:
        budget = parse_budget(texts)
        assert str(budget) == canonical
        assert parse_budget([canonical]) == budget


MISTAKES: list[tuple[str, Kind, dict[str, Any]]] = [
    ("parms<=10k", "unknown-name", {"option": "budget quantity", "value": "parms", "nearest": "params"}),
    ("latency<=10", "unknown-name", {"option": "budget quantity", "value": "latency", "nearest": "latency_ms"}),
    *(
        (f"params<={number}", "bad-syntax", {"option": "--budget", "value": number})
        for number in ("10q", "", "-5", "inf", "nan", "1e999999999")
    ),
    *(
        (text, "bad-syntax", {"option": "--budget", "value": text})
        for text in ("params", "params=5", "params==5", "20M<=params>=24M")
    ),
    ("24M<=params<=20M", "infeasible", {"quantity": "params", "value": "24000000<=params<=20000000"}),
    ("params<0", "infeasible", {"option": "--budget", "quantity": "params"}),
]


def test_mistakes_raise_user_errors() -> None:
    with grouped() as case:
        for text, kind, fields in MISTAKES:
            with case(text), raises(kind, **fields):
                parse_budget([text])


def test_the_feasible_set_equals_brute_force(space: SearchSpace) -> None:
    budget = parse_budget(["150<=params<=400,flops<=16"])
    expected = [
        candidate
        for candidate in space
        if 150 <= 100 * candidate.architecture.depth <= 400 and 2 * candidate.architecture.hidden <= 16
    ]
    members = feasible(space, counts, budget)
    assert list(members) == expected
    assert len(members) == len(expected) > 0


def test_without_bounds_all_is_feasible_without_counts(space: SearchSpace) -> None:
    def refuse(architecture: Architecture) -> Mapping[str, int]:
        raise AssertionError(architecture)

    assert feasible(space, refuse, Budget()) == Feasible(space, tuple(space))


def test_an_infeasible_budget_names_the_nearest_architecture(space: SearchSpace) -> None:
    with grouped() as case:
        for text, costs, depth in (
            ("params<=99", "params=100", 1),
            ("params>=1k", "params=800", 8),
            ("300<=params<=390", "params=400", 4),
            ("params<=150,flops<=15", "params=100, flops=16", 1),
        ):
            with case(text):
                with raises("infeasible", space="deep", costs=costs) as error:
                    feasible(space, counts, parse_budget([text]))
                assert error.value.fields["architecture"].startswith(f"depth={depth},")
