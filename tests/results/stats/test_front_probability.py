import numpy as np

from results.stats.front_probability import front_probabilities


def test_probabilities_are_shares_of_draws() -> None:
    draws = np.array([[[0, 1], [1, 0], [1, 1]], [[1, 1], [0, 0], [2, 2]]], dtype=float)
    assert front_probabilities(draws).tolist() == [0.5, 1.0, 0.0]
