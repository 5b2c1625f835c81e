"""Jackknife standard errors."""

import numpy as np
import pytest

from tasks.data.jackknife import jackknife


def test_the_jackknife_gives_the_error_of_a_mean() -> None:
    draws = np.random.default_rng(0).normal(size=(200, 400))
    errors = [jackknife(lambda rows, row=row: {"mean": row[rows].mean()}, np.arange(400))["mean_se"] for row in draws]
    assert np.mean(errors) == pytest.approx(1 / 20, rel=0.03)
    assert np.std(errors) / np.mean(errors) < 0.2
    assert "mean_se" not in jackknife(lambda rows: {"mean": 1.0}, np.arange(1))
    assert "mean_se" not in jackknife(lambda rows: {"mean": float("nan")}, np.arange(40))


def test_examples_of_one_document_are_left_out_together() -> None:
    draw = np.random.default_rng(0)
    documents, of = draw.normal(size=(200, 40)), np.repeat(np.arange(40), 10)
    errors = [jackknife(lambda rows, row=row: {"mean": row[of][rows].mean()}, of)["mean_se"] for row in documents]
    assert np.mean(errors) == pytest.approx(1 / np.sqrt(40), rel=0.05)
    apart = [jackknife(lambda rows, row=row: {"mean": row[of][rows].mean()}, np.arange(400)) for row in documents]
    assert np.mean([each["mean_se"] for each in apart]) < 0.6 * np.mean(errors)


def test_few_clusters_are_left_out_one_by_one() -> None:
    values, of = np.array([1.0, 2.0, 6.0, 3.0]), np.array([7, 7, 2, 5])
    means = np.array([values[of != cluster].mean() for cluster in (2, 5, 7)])
    expected = np.sqrt(2 / 3 * ((means - means.mean()) ** 2).sum())
    assert jackknife(lambda rows: {"mean": values[rows].mean()}, of)["mean_se"] == pytest.approx(expected)
