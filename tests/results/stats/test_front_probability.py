"""Probabilities of being on the front: of draws, calibrated, in small tables and large ones."""

import math

import numpy as np
import pytest

from architecture_lines import line, summaries_of
from results.stats import front_probability
from results.stats.front_probability import front_probabilities
from results.stats.pareto import non_dominated


def test_probabilities_are_shares_of_draws() -> None:
    draws = np.array([[[0, 1], [1, 0], [1, 1]], [[1, 1], [0, 0], [2, 2]]], dtype=float)
    assert front_probabilities(draws).tolist() == [0.5, 1.0, 0.0]


def test_missing_errors_give_no_probability() -> None:
    assert math.isnan(summaries_of([line(d, 0.5 + 0.1 * d, error=None) for d in (1, 2)])["k1"].p_front)


def test_front_without_errors_uses_measured_values_and_no_probabilities() -> None:
    lines = [line(depth, 0.5 + 0.1 * (depth in (2, 4)), error=None) for depth in range(1, 6)]
    summaries = summaries_of([{n: v for n, v in row.items() if not n.endswith("_se")} for row in lines])
    assert all(math.isnan(summary.p_front) for summary in summaries.values())
    assert [key for key, summary in summaries.items() if summary.on_front] == ["k1", "k2"]
    costs = summaries_of(lines, objectives={"flops": "min", "depth": "max"})
    assert all(summary.on_front for summary in costs.values())  # costs have no noise


def test_lucky_result_is_shrunk_towards_its_neighbours() -> None:
    """Accuracy grows with depth; one shallow network is lucky by three standard deviations."""
    random = np.random.default_rng(0)
    lines = [line(d, 0.5 + 0.02 * d + 0.02 * random.normal() + 0.06 * (d == 5), error=0.02) for d in range(1, 21)]
    before = summaries_of(lines)
    assert lines[4]["accuracy"] > lines[5]["accuracy"]  # at lower cost
    after = summaries_of([*lines, line(5, 0.6, seed=1, error=0.02), line(5, 0.6, seed=2, error=0.02)])
    assert 0.1 < before["k6"].p_front < 0.5 < after["k6"].p_front
    assert after["k6"].on_front


def test_probabilities_are_calibrated() -> None:
    """Of architectures with probability p, a share p is on the true front."""
    probabilities, outcomes = [], []
    for seed in range(15):
        random = np.random.default_rng(seed)
        truth = np.sin(np.arange(1, 16) / random.uniform(2, 6) + random.uniform(0, 6)) / 10
        lines = [
            line(d, float(truth[d - 1] + 0.05 * random.normal()), seed=s, error=None, topology="resnet")
            for d in range(1, 16)
            for s in range(2)
        ]
        summaries = summaries_of(lines)
        probabilities += [summaries[f"k{d}"].p_front for d in range(1, 16)]
        outcomes += non_dominated(np.stack([-truth, np.arange(1, 16.0)], axis=1)).tolist()
    chance, share = np.array(probabilities), np.array(outcomes, dtype=float)
    fifth = np.minimum((chance * 5).astype(int), 4)
    for number in range(5):
        assert abs(chance[fifth == number].mean() - share[fifth == number].mean()) < 0.15
    assert abs(chance.mean() - share.mean()) < 0.05


def test_large_table_models_candidates_near_its_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_probability, "SAMPLE_SIZE", 12)
    monkeypatch.setattr(front_probability, "CONTENDERS", 4)
    summaries = summaries_of([line(depth, 0.5 + 0.02 * depth - 0.001 * depth**2) for depth in range(1, 31)])
    assert len(summaries) == 30
    assert {key for key, summary in summaries.items() if summary.on_front} == {f"k{depth}" for depth in range(1, 11)}
    assert 10 <= sum(summary.p_front > 0 for summary in summaries.values()) <= 14
    assert {summary.tier for summary in summaries.values()} > {1}


def test_probabilities_are_calibrated_in_large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model must not be fitted to the luckiest results only."""
    monkeypatch.setattr(front_probability, "SAMPLE_SIZE", 60)
    monkeypatch.setattr(front_probability, "CONTENDERS", 30)
    probability_sum, count = 0.0, 0
    for seed in range(3):
        random = np.random.default_rng(seed)
        depths = np.arange(1, 401)
        truth = 0.5 + np.sin(depths / 130) / 5
        lines = [line(int(d), float(truth[d - 1] + 0.05 * random.normal()), error=0.05) for d in depths]
        summaries = summaries_of([{**row, "topology": "resnet"} for row in lines])
        depths_on_front = [int(key[1:]) for key, summary in summaries.items() if summary.on_front]
        best = non_dominated(np.stack([-truth, depths], axis=1))
        off = [summaries[f"k{d}"].expected["accuracy"] - truth[d - 1] for d in depths_on_front]
        assert abs(float(np.mean(off))) < 0.04  # 0.1 and more with the luckiest only
        probability_sum += sum(summary.p_front for summary in summaries.values())
        count += int(best[[d - 1 for d in range(1, 401) if summaries[f"k{d}"].p_front > 0]].sum())
    assert probability_sum < 1.5 * count + 10


def test_front_of_hundreds_is_complete() -> None:
    summaries = summaries_of([line(depth, 0.1 + depth / 1000, error=1e-5) for depth in range(1, 301)])
    assert sum(summary.on_front for summary in summaries.values()) == 300


def test_equal_seeds_give_probability_one() -> None:
    """Two equal seeds of each architecture leave no noise."""
    summaries = summaries_of([line(d, 0.5 + 0.1 * d, seed=s, error=None) for d in (1, 2) for s in range(2)])
    assert all(summary.p_front > 0.9 for summary in summaries.values())
