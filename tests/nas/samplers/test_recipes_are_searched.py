"""Axes of a recipe are searched with those of the architecture; costs are counted once per architecture."""

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
    asked: list[Architecture] = []

    def counts(architecture: Architecture) -> dict[str, int]:
        asked.append(architecture)
        return {"params": params(architecture)}

    found = feasible(RECIPES, counts, parse_budget(["params<=20"]))
    assert len(asked) == len(set(asked)) == len(RECIPES.architectures) == 9
    assert len(found) == 2 * 3 * 3 * 2
    assert {candidate.architecture.depth for candidate in found} == {1, 2}


@pytest.mark.parametrize("inner", ONCE)
def test_search_tries_every_recipe_of_every_architecture(inner: str) -> None:
    everything = Feasible(RECIPES, tuple(RECIPES))
    storage, found = optuna.storages.InMemoryStorage(), []
    for trials in (20, 34):  # with a sampler of its own each, as a new process has
        sampler = BudgetSampler(everything, inner)
        study = study_with(sampler, storage)
        for _ in range(trials):
            trial = study.ask()
            found.append(sampler.propose(trial))
            study.tell(trial, (dict(found[-1].settings)["lr"], found[-1].architecture.depth))
    assert set(found) == set(RECIPES)
    assert found[0] == RECIPES.first == Candidate(BASE, (("lr", 1e-3), ("schedule", "flat")))
    assert [trial.params for trial in study.trials] == [RECIPES.members[candidate] for candidate in found]


def test_surrogate_finds_the_best_learning_rate_early() -> None:
    """The loss rests on the learning rate alone: the model sees it across architectures."""
    rates = tuple(10 ** (-4 + 3 * step / 11) for step in range(12))
    space = SearchSpace("rates", BASE, {"depth": (1, 2, 4, 8), "heads": (1, 2, 4), "recipe.lr": rates})
    sampler = BudgetSampler(Feasible(space, tuple(space)), "surrogate")
    study = optuna.create_study(direction="minimize", sampler=sampler)
    for _ in range(24):
        trial = study.ask()
        study.tell(trial, abs(math.log10(dict(sampler.propose(trial).settings)["lr"] / rates[8])))
    assert study.best_trial.params["recipe.lr"] == rates[8]
