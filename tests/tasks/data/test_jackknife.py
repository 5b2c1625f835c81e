"""Standard errors from leaving out parts of the examples."""

import numpy as np
import pytest

from tasks.data.jackknife import jackknife


def test_the_jackknife_gives_the_error_of_a_mean() -> None:
    draws = np.random.default_rng(0).normal(size=(200, 400))
    found = [jackknife(lambda which, row=row: {"mean": row[which].mean()}, np.arange(400))["mean_se"] for row in draws]
    assert np.mean(found) == pytest.approx(1 / 20, rel=0.03)
    assert np.std(found) / np.mean(found) < 0.2
    assert "mean_se" not in jackknife(lambda which: {"mean": 1.0}, np.arange(1))
    assert "mean_se" not in jackknife(lambda which: {"mean": float("nan")}, np.arange(40))


def test_examples_of_one_document_are_left_out_together() -> None:
    draw = np.random.default_rng(0)
    documents, of = draw.normal(size=(200, 40)), np.repeat(np.arange(40), 10)
    found = [jackknife(lambda which, row=row: {"mean": row[of][which].mean()}, of)["mean_se"] for row in documents]
    assert np.mean(found) == pytest.approx(1 / np.sqrt(40), rel=0.05)
    apart = [jackknife(lambda which, row=row: {"mean": row[of][which].mean()}, np.arange(400)) for row in documents]
    assert np.mean([one["mean_se"] for one in apart]) < 0.6 * np.mean(found)


def test_few_clusters_are_left_out_one_by_one() -> None:
    values, of = np.array([1.0, 2.0, 6.0, 3.0]), np.array([7, 7, 2, 5])
    means = np.array([values[of != one].mean() for one in (2, 5, 7)])
    expected = np.sqrt(2 / 3 * ((means - means.mean()) ** 2).sum())
    assert jackknife(lambda which: {"mean": values[which].mean()}, of)["mean_se"] == pytest.approx(expected)
