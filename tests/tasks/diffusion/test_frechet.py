"""Distances of features, by their definitions."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from tasks.diffusion.frechet import distances, frechet, inside, normal

RANDOM = np.random.RandomState(0)
SOME = RANDOM.randn(40, 5) @ RANDOM.randn(5, 5)
OTHERS = RANDOM.randn(30, 5) + 1


def test_the_distance_is_its_formula() -> None:
    first, second = np.cov(SOME.T), np.cov(OTHERS.T)
    off = SOME.mean(0) - OTHERS.mean(0)
    expected = off @ off + np.trace(first + second - 2 * np.real(sqrtm(first @ second)))
    assert frechet(normal(SOME), normal(OTHERS)) == pytest.approx(expected, rel=1e-9)
    assert frechet(normal(SOME), normal(SOME)) == pytest.approx(0, abs=1e-9)


def test_features_that_never_move_are_no_trouble() -> None:
    flat = np.concatenate((SOME, np.zeros((40, 2))), axis=1)
    other = np.concatenate((OTHERS, np.zeros((30, 2))), axis=1)
    assert frechet(normal(flat), normal(other)) == pytest.approx(frechet(normal(SOME), normal(OTHERS)), rel=1e-6)


def test_inside_is_as_near_as_the_third_neighbour() -> None:
    reach = [sorted(np.linalg.norm(OTHERS - one, axis=1))[3] for one in OTHERS]
    expected = [
        any(np.linalg.norm(one - other) <= far for other, far in zip(OTHERS, reach, strict=True)) for one in SOME
    ]
    assert 0 < sum(expected) < len(SOME)
    assert inside(SOME, OTHERS).tolist() == expected


def test_precision_is_of_what_is_drawn_and_recall_of_what_is_real() -> None:
    found = distances(SOME, OTHERS)
    assert found["precision"] == inside(SOME, OTHERS).mean()
    assert found["recall"] == inside(OTHERS, SOME).mean()
    assert found["recall_se"] == pytest.approx((found["recall"] * (1 - found["recall"]) / 30) ** 0.5)
    assert found == distances(SOME, OTHERS), "errors are resampled with a seed of their own"


def test_errors_are_what_other_sets_would_give() -> None:
    """Of normal features, the deviation over sets drawn anew."""
    random = np.random.RandomState(1)
    sets = [(random.randn(200, 4), random.randn(200, 4) + 0.5) for _ in range(60)]
    drawn = [distances(*each) for each in sets]
    deviation = np.std([each["frechet"] for each in drawn])
    assert np.mean([each["frechet_se"] for each in drawn]) == pytest.approx(deviation, rel=0.25)


def test_both_are_what_torch_fidelity_makes_of_the_same_features() -> None:
    import torch
    from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
    from torch_fidelity.metric_prc import calculate_precision_recall_part

    some, others = torch.from_numpy(SOME), torch.from_numpy(OTHERS)
    theirs = fid_statistics_to_metric(fid_features_to_statistics(some), fid_features_to_statistics(others), False)
    found = distances(SOME, OTHERS)
    assert found["frechet"] == pytest.approx(theirs["frechet_inception_distance"], rel=1e-9)
    shares = calculate_precision_recall_part(some, others)
    assert (found["precision"], found["recall"]) == pytest.approx(shares)


def test_neighbours_are_found_in_parts_as_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = inside(SOME, OTHERS).tolist()
    monkeypatch.setattr("tasks.diffusion.frechet._AT_ONCE", 7)
    assert inside(SOME, OTHERS).tolist() == whole
