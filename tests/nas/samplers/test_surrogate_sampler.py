"""The surrogate sampler: searches that find the best."""

import math

import numpy as np
import optuna
import pytest

from nas.budget.bounds import Feasible
from nas.samplers.budget_sampler import BudgetSampler
from results.stats.hypervolume import hypervolume
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import SearchSpace

BASE = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=16)
SPACE = SearchSpace(
    "grid",
    BASE,
    {"depth": tuple(range(1, 13)), "heads": (1, 2, 4, 8), "hidden": (8, 16, 32, 64), "topology": ("none", "resnet")},
)
ALL = Feasible(SPACE, tuple(SPACE))


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
        reference = high + 0.1 * (high - low)
        return hypervolume(values, reference) / hypervolume(all_values, reference)

    sampler = BudgetSampler(ALL, "surrogate")
    study, architectures = optuna.create_study(directions=["minimize"] * 3, sampler=sampler), []
    for _ in range(25):
        trial = study.ask()
        architectures.append(sampler.propose(trial).architecture)
        study.tell(trial, values_of(architectures[-1]))
    assert share(architectures) > 0.97  # random search reaches 0.93


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
