"""Verdicts of claims: intervals inside, outside and across a range."""

import math

import pytest
from scipy.stats import t

from nas.papers.claims import Claim, judge


def claim(low: float = 0.0, high: float = math.inf) -> Claim:
    return Claim(name="a", source="table 1", statement="a is more", quantity="more", low=low, high=high)


def test_verdict_follows_from_interval_and_range() -> None:
    judgements: list[tuple[list[float], float, float, str]] = [
        ([1.0, 1.1, 0.9, 1.0], 0, math.inf, "agrees"),
        ([-1.0, -1.1, -0.9, -1.0], 0, math.inf, "contradicts"),
        ([1.0, -1.0, 0.5, -0.2], 0, math.inf, "not distinguishable"),
        ([1.140, 1.141, 1.139, 1.140], 1.135, 1.145, "agrees"),
        ([0.640, 0.641, 0.639, 0.640], 0.995, 1.005, "contradicts"),
        ([1.140, 1.141, 1.139, 1.140], 1.1400, 1.145, "not distinguishable"),
        ([1.0], 0, math.inf, "not distinguishable"),
    ]
    for values, low, high, verdict in judgements:
        assert judge(claim(low, high), values, 1).verdict == verdict, values


def test_interval_is_students_for_all_claims_together() -> None:
    values = [0.3, 0.5, 0.1, 0.9]
    mean = sum(values) / 4
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / 3)
    reach = t.ppf(1 - 0.05 / 5 / 2, 3) * deviation / 2
    finding = judge(claim(), values, 5)
    assert (finding.low, finding.high) == pytest.approx((mean - reach, mean + reach))
    alone = judge(claim(), values, 1)
    assert alone.low is not None
    assert finding.low is not None
    assert finding.low < alone.low


def test_count_is_its_own_interval() -> None:
    finding = judge(claim(99.5, 100.5), [100.0], 6, exact=True)
    assert (finding.low, finding.high, finding.verdict) == (100.0, 100.0, "agrees")
    assert judge(claim(-math.inf, 1.0), [2.8], 6, exact=True).verdict == "contradicts"


def test_one_draw_and_equal_draws_have_no_interval() -> None:
    for values in ([5.0], [5.0, 5.0, 5.0]):
        finding = judge(claim(), values, 1)
        assert (finding.low, finding.high) == (None, None)
