"""The surrogate sampler: formulas compared with naive ones, and searches that find the best."""

import math
from itertools import product

import numpy as np
import optuna
import pytest

from nas.budget.bounds import Feasible
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.hypervolume import Hypervolume
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import SearchSpace

BASE = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=16)
SPACE = SearchSpace(
    "grid",
    BASE,
    {"depth": tuple(range(1, 13)), "heads": (1, 2, 4, 8), "hidden": (8, 16, 32, 64), "topology": ("none", "resnet")},
)
ALL = Feasible(SPACE, tuple(SPACE))


def test_hypervolume_gains_where_all_costs_are_equal() -> None:
    cost = 4e6  # a range near zero must not vanish beside it
    front, new = np.array([[0.5, cost], [0.7, cost]]), np.array([[0.3, cost], [0.6, cost]])
    volume = Hypervolume(front, new, np.random.default_rng(0))
    better, worse = volume.gain(new[None]) / volume.total
    assert (better > 0.1, worse) == (True, 0.0)


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_gain_equals_the_hypervolume_a_point_adds(objectives: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.samplers.hypervolume.DIRECTIONS", 200_000)
    front = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5], [0.5, 0.5, 0.0], [0.9, 0.9, 1.0]])[:, :objectives]
    new = np.array([[0.2, 0.4, 0.2], [-0.1, 0.3, 0.4], [0.95, 0.95, 0.95]])[:, :objectives]
    corners = np.array([[-0.1] * 3, [1.1 - 0.02 * 1.2 / 1.02] * 3])[:, :objectives]  # the reference becomes 1.1
    hypervolume = Hypervolume(front, corners, np.random.default_rng(0))
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


def loss(architecture: Architecture) -> float:
    """Smooth in every axis and in their product; the best is inside the space."""
    shape = (math.log(architecture.depth / 7)) ** 2 + 0.3 * math.log2(architecture.heads / 4) ** 2
    return shape + 0.1 * abs(math.log2(architecture.hidden / 32)) + 0.5 * (architecture.topology == "none")


@pytest.mark.parametrize(("direction", "seed"), [("minimize", 0), ("maximize", 1), ("minimize", 2)])
def test_surrogate_finds_the_best_of_384_architectures_in_60_trials(direction: str, seed: int) -> None:
    sign, best = 1 if direction == "minimize" else -1, min(map(loss, SPACE.architectures))
    sampler = BudgetSampler(ALL, "surrogate", seed)
    study = optuna.create_study(direction=direction, sampler=sampler)
    for _ in range(60):
        trial = study.ask()
        study.tell(trial, sign * loss(sampler.propose(trial).architecture))
        if sign * study.best_value == best:
            break
    assert sign * study.best_value == best


def test_surrogate_finds_most_of_a_front_of_three_objectives() -> None:
    def values_of(architecture: Architecture) -> list[float]:
        return [loss(architecture), architecture.depth * architecture.heads, float(architecture.hidden)]

    def share(architectures: list[Architecture]) -> float:
        values = np.array([values_of(architecture) for architecture in architectures])
        all_values = np.array([values_of(architecture) for architecture in SPACE.architectures])
        low, high = all_values.min(axis=0), all_values.max(axis=0)
        return dominated_volume((values - low) / (high - low)) / dominated_volume(
            pareto((all_values - low) / (high - low))
        )

    sampler = BudgetSampler(ALL, "surrogate")
    study, architectures = optuna.create_study(directions=["minimize"] * 3, sampler=sampler), []
    for _ in range(25):
        trial = study.ask()
        architectures.append(sampler.propose(trial).architecture)
        study.tell(trial, values_of(architectures[-1]))
    assert share(architectures) > 0.97  # random search reaches 0.93


def pareto(points: np.ndarray) -> np.ndarray:
    """The points that no other dominates."""
    unique = np.unique(points, axis=0)
    return np.array([p for p in unique if not any((q <= p).all() and (q < p).any() for q in unique)])


def test_surrogate_avoids_regions_where_trials_fail() -> None:
    """Shallow networks would be best, but fail."""
    sampler = BudgetSampler(ALL, "surrogate")
    study, depths = optuna.create_study(direction="minimize", sampler=sampler), []
    for _ in range(60):
        trial = study.ask()
        depths.append(sampler.propose(trial).architecture.depth)
        if depths[-1] <= 3:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, float(depths[-1]))
    assert sum(depth <= 3 for depth in depths[30:]) < sum(depth > 3 for depth in depths[30:])


def test_infinite_values_do_no_harm() -> None:
    sampler = BudgetSampler(ALL, "surrogate")
    study = optuna.create_study(direction="minimize", sampler=sampler)
    for number in range(20):
        trial = study.ask()
        study.tell(trial, math.inf if number % 3 == 0 else loss(sampler.propose(trial).architecture))
    assert sampler.propose(study.ask()) in ALL.candidates


def test_constant_objectives_do_no_harm() -> None:
    sampler = BudgetSampler(ALL, "surrogate")
    study, candidates = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler), set()
    for _ in range(20):
        trial = study.ask()
        candidates.add(sampler.propose(trial))
        study.tell(trial, (1.0, 0.0))
    assert len(candidates) == 20
