"""Variance components, rank correlations and tiers, against definitions and simulated data."""

import re
from itertools import combinations, product
from statistics import fmean, stdev

import numpy as np
import pytest

from results.stats.reliability import (
    Array,
    Components,
    components,
    jackknife,
    num_distinct_tiers,
    rank_correlation,
    seed_rank_correlation,
    seeds_for,
)


def readings_with(architectures: int, seeds: int, **deviation: float) -> tuple[Array, Array]:
    """Validation and test values with known deviations."""
    random = np.random.default_rng(3)

    def normal(name: str, *shape: int) -> Array:
        return random.normal(0, deviation[name], shape)

    network = normal("architecture", architectures, 1) + normal("seed", architectures, seeds)
    splits = [
        network + normal("examples", architectures, 1) + normal("seed_examples", architectures, seeds) + common
        for common in (7.0, 5.0)  # the offset of a split
    ]
    return splits[0], splits[1]


def by_hand(first: Array, second: Array) -> tuple[float, float]:
    """Variance between and within, sum by sum, as in textbooks."""
    count, seeds = first.shape
    means = [[fmean(values) for values in reading] for reading in (first, second)]
    whole = [fmean(values) for values in means]
    apart = seeds * sum((means[0][a] - whole[0]) * (means[1][a] - whole[1]) for a in range(count)) / (count - 1)
    within = sum(
        (first[a, s] - means[0][a]) * (second[a, s] - means[1][a]) for a, s in product(range(count), range(seeds))
    ) / (count * (seeds - 1))
    return (apart - within) / seeds, within


def test_components_agree_with_analysis_of_variance() -> None:
    validation, test = readings_with(5, 3, architecture=1, seed=0.5, examples=0.3, seed_examples=0.2)
    of, alone = components(validation, test), components(validation)
    between, within = by_hand(validation, validation)
    assert (of.between, of.within) == pytest.approx((between, within))
    assert (alone.architecture, alone.seed) == pytest.approx((between, within))
    assert alone.examples is None
    stretch = (between / by_hand(test, test)[0]) ** 0.5
    assert 0.5 < stretch < 2
    assert (of.architecture, of.seed) == pytest.approx([stretch * part for part in by_hand(validation, test)])
    assert of.examples == pytest.approx(between + within - of.architecture - of.seed)


def test_wider_spread_on_one_split_is_no_noise() -> None:
    validation, test = readings_with(4000, 4, architecture=1.0, seed=0.5, examples=0.4, seed_examples=0.3)
    alike = components(validation, test)
    for factor in (0.7, 1.6):
        assert components(validation, factor * test).reliability() == pytest.approx(alike.reliability())
    assert components(validation, 100 * test).architecture == pytest.approx(50 * alike.architecture, rel=0.05)


def test_components_recover_the_variances_drawn_with() -> None:
    splits = readings_with(4000, 4, architecture=1.0, seed=0.5, examples=0.4, seed_examples=0.3)
    of = components(*splits)
    assert of.architecture == pytest.approx(1.0, abs=0.08)
    assert of.seed == pytest.approx(0.25, abs=0.02)
    assert of.examples == pytest.approx(0.4**2 + 0.3**2, abs=0.03)
    assert of.reliability() == pytest.approx(1 / (1 + 0.25 + 0.16 + 0.09), abs=0.02)
    assert of.reliability(4) == pytest.approx(1 / (1 + 0.16 + 0.34 / 4), abs=0.02)
    assert of.noise(4) == pytest.approx(0.16 + 0.34 / 4, abs=0.03)
    noise_only = readings_with(4000, 4, architecture=0.0, seed=0.5, examples=0.0, seed_examples=0.3)
    assert components(*noise_only).reliability() < 0.05


def test_readings_of_another_shape_are_refused() -> None:
    for shape in ((1, 3), (3, 1), (3,)):
        with pytest.raises(ValueError, match=re.escape(f"got {shape}")):
            components(np.zeros(shape))
    with pytest.raises(ValueError, match=re.escape("(3, 2), got (2, 3)")):
        components(np.zeros((3, 2)), np.zeros((2, 3)))


def test_equal_readings_have_no_reliability() -> None:
    of = components(np.ones((4, 3)), np.ones((4, 3)))
    assert (of.reliability(), of.noise(1)) == (0.0, 0.0)


def test_jackknife_of_a_mean_has_its_standard_error() -> None:
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    mean = jackknife(lambda some: float(some.mean()), values)
    assert mean.value == 4.0
    assert mean.error == pytest.approx(stdev(values.tolist()) / 5**0.5)
    weighted_mean = jackknife(lambda a, b: float((a * b).mean()), values, np.ones(5))
    assert weighted_mean == mean


def tau_b(first: list[float], second: list[float]) -> float:
    """Kendall's tau with ties."""
    pairs = list(combinations(range(len(first)), 2))
    signs = [(np.sign(first[i] - first[j]), np.sign(second[i] - second[j])) for i, j in pairs]
    whole = sum(a * b for a, b in signs)
    return float(whole / (sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs)) ** 0.5)


def test_rank_correlation_is_kendalls_tau() -> None:
    first = np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 5.0], [4.0, 4.0]])
    second = np.array([[1.0, 1.0], [3.0, 2.0], [2.0, 4.0], [9.0, 3.0]])
    by_seed = [tau_b(first[:, seed].tolist(), second[:, seed].tolist()) for seed in range(2)]
    assert rank_correlation(first, second) == pytest.approx(fmean(by_seed))
    assert seed_rank_correlation(first) == pytest.approx(tau_b(first[:, 0].tolist(), first[:, 1].tolist()))
    three = np.concatenate([first, second[:, :1]], axis=1)
    pairs = [tau_b(three[:, i].tolist(), three[:, j].tolist()) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert seed_rank_correlation(three) == pytest.approx(fmean(pairs))
    assert rank_correlation(np.ones((4, 2)), second) == 0.0


def test_tiers_are_farther_apart_than_noise() -> None:
    means = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    exact = Components(architecture=5 / 3, seed=0.0, examples=0.0, between=5 / 3, within=0.0)
    assert num_distinct_tiers(means, exact, 1) == 4
    noisy = Components(exact.architecture, 0.125, 0.0, exact.architecture, 0.125)
    gap = 1.96 * (2 * 0.125) ** 0.5
    drawn_together = noisy.reliability(2)
    assert drawn_together < gap < 1  # by the apparent distances, one seed would separate neighbours
    assert num_distinct_tiers(means, noisy, 1) == 2
    assert num_distinct_tiers(means, noisy, 2) == 4
    assert [num_distinct_tiers(means, noisy, seeds) for seeds in (1, 4, 100, 1000)] == sorted(
        num_distinct_tiers(means, noisy, seeds) for seeds in (1, 4, 100, 1000)
    )
    for count in range(1, 5):
        seeds = seeds_for(count, means, noisy)
        assert seeds is not None
        assert num_distinct_tiers(means, noisy, seeds) >= count
        assert seeds == 1 or num_distinct_tiers(means, noisy, seeds - 1) < count


def test_number_of_examples_limits_the_tiers_of_more_seeds() -> None:
    means = np.array([[0.0, 0.1], [1.0, 0.9], [2.0, 2.2], [3.0, 3.1]])
    of = Components(architecture=1.0, seed=0.0, examples=0.5, between=1.5, within=0.0)
    assert seeds_for(4, means, of) is None
    assert seeds_for(1, means, of) == 1
