"""Distances of features, against their definitions."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from tasks.diffusion.frechet import distances, frechet, in_manifold, normal

RANDOM = np.random.RandomState(0)
SOME = RANDOM.randn(40, 5) @ RANDOM.randn(5, 5)
MORE = RANDOM.randn(30, 5) + 1


def test_distance_matches_the_formula() -> None:
    first, second = np.cov(SOME.T), np.cov(MORE.T)
    off = SOME.mean(0) - MORE.mean(0)
    expected = off @ off + np.trace(first + second - 2 * np.real(sqrtm(first @ second)))
    assert frechet(normal(SOME), normal(MORE)) == pytest.approx(expected, rel=1e-9)
    assert frechet(normal(SOME), normal(SOME)) == pytest.approx(0, abs=1e-9)


def test_constant_features_do_not_change_the_distance() -> None:
    flat = np.concatenate((SOME, np.zeros((40, 2))), axis=1)
    other = np.concatenate((MORE, np.zeros((30, 2))), axis=1)
    assert frechet(normal(flat), normal(other)) == pytest.approx(frechet(normal(SOME), normal(MORE)), rel=1e-6)


def test_inside_is_within_the_third_neighbours_distance() -> None:
    reach = [sorted(np.linalg.norm(MORE - point, axis=1))[3] for point in MORE]
    expected = [
        any(np.linalg.norm(point - other) <= far for other, far in zip(MORE, reach, strict=True)) for point in SOME
    ]
    assert 0 < sum(expected) < len(SOME)
    assert in_manifold(SOME, MORE).tolist() == expected


def test_precision_counts_samples_and_recall_counts_data() -> None:
    metrics = distances(SOME, MORE)
    assert metrics["precision"] == in_manifold(SOME, MORE).mean()
    assert metrics["recall"] == in_manifold(MORE, SOME).mean()
    assert metrics["recall_se"] == pytest.approx((metrics["recall"] * (1 - metrics["recall"]) / 30) ** 0.5)
    assert metrics == distances(SOME, MORE), "errors are resampled with a seed of their own"


def test_standard_error_matches_repeated_sampling() -> None:
    """Against the deviation over new sets of normal features."""
    random = np.random.RandomState(1)
    sets = [(random.randn(200, 4), random.randn(200, 4) + 0.5) for _ in range(20)]
    scores = [distances(*each) for each in sets]
    deviation = np.std([each["frechet"] for each in scores])
    assert np.mean([each["frechet_se"] for each in scores]) == pytest.approx(deviation, rel=0.25)


def test_agrees_with_torch_fidelity() -> None:
    import torch
    from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
    from torch_fidelity.metric_prc import calculate_precision_recall_part

    some, more = torch.from_numpy(SOME), torch.from_numpy(MORE)
    reference = fid_statistics_to_metric(fid_features_to_statistics(some), fid_features_to_statistics(more), False)
    metrics = distances(SOME, MORE)
    assert metrics["frechet"] == pytest.approx(reference["frechet_inception_distance"], rel=1e-9)
    shares = calculate_precision_recall_part(some, more)
    assert (metrics["precision"], metrics["recall"]) == pytest.approx(shares)


def test_neighbours_found_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = in_manifold(SOME, MORE).tolist()
    monkeypatch.setattr("tasks.diffusion.frechet._CHUNK", 7)
    assert in_manifold(SOME, MORE).tolist() == whole
