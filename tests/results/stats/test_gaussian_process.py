"""Gaussian processes over architectures, against the joint density of all single values."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from threadpoolctl import threadpool_info, threadpool_limits

from results.stats import gaussian_process
from results.stats.gaussian_process import Features, GaussianProcess, Observations, Scales

RANDOM = np.random.default_rng(0)
SEEDS = [1, 3, 1, 2, 1, 1]
PLACES = Features(RANDOM.uniform(size=(6, 2)), 0.5**0.5 * np.eye(3)[[0, 1, 2, 0, 1, 2]])
READ = [RANDOM.normal(size=seeds) for seeds in SEEDS]
SHARES = np.array([1.0, 0.5, 2.0, 1.0, 1.0, 0.7])


def readings() -> Observations:
    means = np.array([each.mean() for each in READ])
    within = sum(((each - each.mean()) ** 2).sum() / share for each, share in zip(READ, SHARES, strict=True))
    return Observations(means, np.array(SEEDS, dtype=float), SHARES, float(within))


def covariance(i: int, j: int, places: Features, scales: Scales) -> float:
    """Matern 5/2 with two scales, a parabola along each coordinate, and a nugget per architecture."""
    far = (math.dist(places.numeric[i], places.numeric[j]) / scales.numeric) ** 2
    far += (math.dist(places.one_hot[i], places.one_hot[j]) / scales.one_hot) ** 2
    r = math.sqrt(5 * far)
    x, y = ([*places.numeric[place], *places.one_hot[place]] for place in (i, j))
    lines = sum((a - 0.5) * (b - 0.5) + (a - 0.5) ** 2 * (b - 0.5) ** 2 for a, b in zip(x, y, strict=True))
    nugget = scales.nugget * (far < 1e-9)
    return scales.remainder * (1 + r + r * r / 3) * math.exp(-r) + lines + nugget


def of_all_readings(scales: Scales) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """All single values, their covariance in the process's variance scale, and the architecture of each."""
    whose = [i for i, seeds in enumerate(SEEDS) for _ in range(seeds)]
    gram = np.array([[covariance(i, j, PLACES, scales) for j in whose] for i in whose])
    return np.concatenate(READ), gram + np.diag(scales.noise * SHARES[whose]), whose


def naive_log_posterior(scales: Scales) -> float:
    """The log density of all values under the best variance scale, plus the log prior."""
    values, gram, _ = of_all_readings(scales)
    variance_scale = values @ np.linalg.solve(gram, values) / len(values)
    density = multivariate_normal(np.zeros(len(values)), variance_scale * gram).logpdf(values)
    prior = {"noise": (0.1, 5), "nugget": (0.001, 10), "remainder": (1, 3), "numeric": (1, 2), "one_hot": (0.7, 2)}
    off = [math.log(getattr(scales, name) / median) / math.log(by) for name, (median, by) in prior.items()]
    return float(density - 0.5 * sum(z**2 for z in off))


def test_posterior_agrees_with_the_density_of_all_readings() -> None:
    at = Features(RANDOM.uniform(size=(4, 2)), 0.5**0.5 * np.eye(3)[[0, 1, 2, 0]])
    every = Features(np.vstack([PLACES.numeric, at.numeric]), np.vstack([PLACES.one_hot, at.one_hot]))
    process = GaussianProcess(PLACES, readings())
    values, gram, whose = of_all_readings(process.scales)
    variance_scale = values @ np.linalg.solve(gram, values) / len(values)
    cross = np.array([[covariance(6 + c, i, every, process.scales) for i in whose] for c in range(4)])
    prior = np.array([[covariance(6 + c, 6 + d, every, process.scales) for d in range(4)] for c in range(4)])
    mean = cross @ np.linalg.solve(gram, values)
    posterior = variance_scale * (prior - cross @ np.linalg.solve(gram, cross.T))
    expected, variance = process.predict(at)
    assert expected == pytest.approx(mean, abs=1e-6)
    assert variance == pytest.approx(np.diag(posterior), abs=1e-6)
    assert process.noise == pytest.approx(process.scales.noise * variance_scale)
    draws = process.draws(at, 200_000, np.random.default_rng(1))
    assert draws.mean(axis=0) == pytest.approx(mean, abs=0.02)
    assert np.cov(draws.T) == pytest.approx(posterior, abs=0.02)


def test_draws_do_not_depend_on_signs_of_eigenvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    process = GaussianProcess(PLACES, readings())
    first = process.draws(PLACES, 5, np.random.default_rng(1))
    eigh = np.linalg.eigh

    def flip_signs(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = eigh(matrix)
        return values, vectors * np.where(np.arange(len(values)) % 2, -1.0, 1.0)

    monkeypatch.setattr(np.linalg, "eigh", flip_signs)
    assert process.draws(PLACES, 5, np.random.default_rng(1)) == pytest.approx(first)


def test_no_single_change_of_scale_improves_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_process, "_SWEEPS", 10)
    best = GaussianProcess(PLACES, readings()).scales
    neighbours = [best._replace(**{name: value}) for name, values in gaussian_process._GRID.items() for value in values]
    assert max(neighbours, key=naive_log_posterior) == best
    for first, second in product(neighbours[:3], neighbours[-3:]):  # with equal differences
        distances = gaussian_process._Distances(PLACES, PLACES)
        fits = [gaussian_process._Fit(scales, distances, readings()).log_posterior for scales in (first, second)]
        assert fits[0] - fits[1] == pytest.approx(naive_log_posterior(first) - naive_log_posterior(second), abs=1e-5)


@pytest.mark.parametrize(("seeds", "noise"), [(1, 0.3), (4, 0.3), (4, 0.05)])
def test_noise_is_estimated(seeds: int, noise: float) -> None:
    random = np.random.default_rng(3)
    places = Features(random.uniform(size=(60, 3)), np.zeros((60, 0)))
    truth = np.sin(3 * places.numeric[:, 0]) + places.numeric[:, 1]
    read = truth[:, None] + noise * random.normal(size=(60, seeds))
    std, means = read.std(), read.mean(axis=1)
    within = float(((read - means[:, None]) ** 2).sum()) / std**2
    counts = np.full(60, float(seeds))
    process = GaussianProcess(places, Observations((means - means.mean()) / std, counts, np.ones(60), within))
    assert math.sqrt(process.noise) * std == pytest.approx(noise, rel=0.3)


def test_repeated_seeds_separate_nugget_from_noise() -> None:
    random = np.random.default_rng(3)
    places = Features(random.uniform(size=(60, 3)), np.zeros((60, 0)))
    effects = 0.3 * random.normal(size=60)
    read = (places.numeric[:, 0] + effects)[:, None] + 0.1 * random.normal(size=(60, 3))
    means = read.mean(axis=1)
    squares = ((read - means[:, None]) ** 2).sum(axis=1)
    readings, mean, std = Observations.standardize(means, np.full(60, 3.0), np.zeros(60), squares)
    process = GaussianProcess(places, readings)
    assert math.sqrt(process.noise) * std == pytest.approx(0.1, rel=0.3)
    assert process.scales.nugget > process.scales.noise
    predictions = mean + std * process.predict(places)[0]
    assert np.abs(predictions - (places.numeric[:, 0] + effects)).mean() < 0.07


def test_readings_are_standardized_and_noise_is_in_shares() -> None:
    means, errors = np.array([1.0, 3.0, 5.0]), np.array([0.1, 0.2, 0.3])
    readings, mean, std = Observations.standardize(means, np.array([1.0, 2.0, 1.0]), errors, np.array([0.0, 4.0, 0.0]))
    assert (mean, std) == pytest.approx((3.0, means.std()))
    assert readings.means == pytest.approx((means - 3.0) / means.std())
    assert readings.noise_ratios == pytest.approx(errors**2 / (errors**2).mean())
    assert readings.within == pytest.approx(4.0 / readings.noise_ratios[1] / std**2)
    for unknown in (np.nan, 0.0):
        observations, _, _ = Observations.standardize(means, np.ones(3), np.array([0.1, unknown, 0.3]), np.zeros(3))
        assert observations.noise_ratios.tolist() == [1.0] * 3
    more = readings.extend(np.array([7.0]))
    assert (more.means[-1], more.counts[-1], more.noise_ratios[-1], more.within) == (7.0, 1.0, 1.0, readings.within)


def test_single_architecture_with_equal_values_is_modelled() -> None:
    places = Features(np.zeros((1, 2)), np.zeros((1, 0)))
    mean, variance = GaussianProcess(places, Observations(np.zeros(1), np.ones(1), np.ones(1))).predict(places)
    assert np.isfinite(mean).all()
    assert (variance > 0).all()


def test_given_scales_are_used() -> None:
    scales = Scales(0.2, 0.03, 0.5, 0.9, 0.8)
    assert GaussianProcess(PLACES, readings(), scales).scales == scales


def test_matrices_use_one_thread_and_the_setting_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def record_threads(*args: Any, **kwargs: Any) -> Any:
        threads.extend(blas_threads())
        return cholesky(*args, **kwargs)

    cholesky = gaussian_process.cholesky
    monkeypatch.setattr(gaussian_process, "cholesky", record_threads)
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        GaussianProcess(PLACES, readings())
        assert set(before) == {2}
        assert set(threads) == {1}
        assert blas_threads() == before


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
