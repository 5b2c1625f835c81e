"""A recipe's axes are searched with those of the architecture; costs are counted once per architecture."""

import math

import optuna
import pytest

from nas.budget.bounds import Feasible, feasible, parse_budget
from nas.samplers.budget_sampler import BudgetSampler
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Candidate, SearchSpace
from toy_space import BASE, ONCE, params, study_with

pytestmark = pytest.mark.usefixtures("quiet")
RECIPES = SearchSpace(
    "recipes",
    BASE,
    {
        "depth": (1, 2, 4),
        "topology": ("resnet", "dca"),
        "dca.k": (1, 2),
        "recipe.lr": (1e-4, 1e-3, 1e-2),
        "recipe.schedule": ("flat", "cosine"),
    },
)


def test_costs_are_counted_once_per_architecture() -> None:
    calls: list[Architecture] = []

    def counts(architecture: Architecture) -> dict[str, int]:
        calls.append(architecture)
        return {"params": params(architecture)}

    candidates = feasible(RECIPES, counts, parse_budget(["params<=20"]))
    assert len(calls) == len(set(calls)) == len(RECIPES.architectures) == 9
    assert len(candidates) == 2 * 3 * 3 * 2
    assert {candidate.architecture.depth for candidate in candidates} == {1, 2}


@pytest.mark.parametrize("inner", ONCE)
def test_search_tries_every_recipe_of_every_architecture(inner: str) -> None:
    members = Feasible(RECIPES, tuple(RECIPES))
    storage, candidates = optuna.storages.InMemoryStorage(), []
    for trials in (20, 34):  # each with a new sampler, as in a new process
        sampler = BudgetSampler(members, inner)
        study = study_with(sampler, storage)
        for _ in range(trials):
            trial = study.ask()
            candidates.append(sampler.propose(trial))
            study.tell(trial, (dict(candidates[-1].settings)["lr"], candidates[-1].architecture.depth))
    assert set(candidates) == set(RECIPES)
    assert candidates[0] == RECIPES.first == Candidate(BASE, (("lr", 1e-3), ("schedule", "flat")))
    assert [trial.params for trial in study.trials] == [RECIPES.members[candidate] for candidate in candidates]


def test_surrogate_finds_the_best_learning_rate_early() -> None:
    """The loss depends on the learning rate alone: the model sees it across architectures."""
    rates = tuple(10 ** (-4 + 3 * step / 11) for step in range(12))
    space = SearchSpace("rates", BASE, {"depth": (1, 2, 4, 8), "heads": (1, 2, 4), "recipe.lr": rates})
    sampler = BudgetSampler(Feasible(space, tuple(space)), "surrogate")
    study = optuna.create_study(direction="minimize", sampler=sampler)
    for _ in range(24):
        trial = study.ask()
        study.tell(trial, abs(math.log10(dict(sampler.propose(trial).settings)["lr"] / rates[8])))
    assert study.best_trial.params["recipe.lr"] == rates[8]
