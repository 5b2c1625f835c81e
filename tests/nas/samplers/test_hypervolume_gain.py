"""Gains of hypervolume, against the volumes of boxes."""

import math
from itertools import product

import numpy as np
import pytest

from nas.samplers.hypervolume_gain import HypervolumeGain


def test_hypervolume_gains_where_all_costs_are_equal() -> None:
    cost = 4e6  # a range near zero must not vanish beside it
    front, new = np.array([[0.5, cost], [0.7, cost]]), np.array([[0.3, cost], [0.6, cost]])
    volume = HypervolumeGain(front, new, np.random.default_rng(0))
    better, worse = volume.gain(new[None]) / volume.total
    assert (better > 0.1, worse) == (True, 0.0)


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_gain_equals_the_hypervolume_a_point_adds(objectives: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.samplers.hypervolume_gain.DIRECTIONS", 200_000)
    front = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5], [0.5, 0.5, 0.0], [0.9, 0.9, 1.0]])[:, :objectives]
    new = np.array([[0.2, 0.4, 0.2], [-0.1, 0.3, 0.4], [0.95, 0.95, 0.95]])[:, :objectives]
    corners = np.array([[-0.1] * 3, [1.1 - 0.02 * 1.2 / 1.02] * 3])[:, :objectives]  # the reference becomes 1.1
    hypervolume = HypervolumeGain(front, corners, np.random.default_rng(0))
    ball = math.pi ** (objectives / 2) / (2**objectives * math.gamma(objectives / 2 + 1))
    unit = ball * (1.2 / 1.02) ** objectives
    assert hypervolume.total * unit == pytest.approx(dominated_volume(front), abs=4e-3)
    outcomes = np.stack([new, new + 0.05])
    for gain, one, other in zip(hypervolume.gain(outcomes), *outcomes, strict=True):
        gains = [dominated_volume(np.vstack([front, point])) - dominated_volume(front) for point in (one, other)]
        assert gain * unit == pytest.approx(sum(gains) / 2, abs=4e-3)
    outcomes = np.stack([front - 0.04, front + 0.1])
    for row, gain in enumerate(hypervolume.repeat_gain(outcomes)):
        rest = np.delete(front, row, axis=0)
        changes = [dominated_volume(np.vstack([rest, points[row]])) - dominated_volume(front) for points in outcomes]
        assert gain * unit == pytest.approx(sum(changes) / 2, abs=4e-3)


def dominated_volume(points: np.ndarray) -> float:
    """The volume below the reference 1.1 that some point dominates, summed over the boxes of its grid."""
    points = np.minimum(points, 1.1)
    edges = [sorted({*points[:, k].tolist(), 1.1}) for k in range(points.shape[1])]
    total = 0.0
    for corner in product(*(range(len(edge) - 1) for edge in edges)):
        low = [edge[i] for edge, i in zip(edges, corner, strict=True)]
        if (points <= np.array(low) + 1e-12).all(axis=1).any():
            total += math.prod(edge[i + 1] - edge[i] for edge, i in zip(edges, corner, strict=True))
    return total
