"""The sampler a study is made with: whatever it proposes is new and inside the budget."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from nas.budget import Feasible
from nas.sampling.axes import Coordinates, Indices
from nas.sampling.history import History, Tried, params_of
from nas.sampling.proposer import Situation
from nas.sampling.registry import DEFAULT, proposer
from search_spaces.errors import UserError
from search_spaces.space import Candidate
from search_spaces.spec import Scalar


class Exhausted(RuntimeError):
    """Every candidate within the budget has been tried."""


class BudgetSampler(BaseSampler):
    """Proposes candidates that are inside the budget and that no other trial of the study has.

    What the space says is first comes first, or the feasible candidate nearest to it. Trials in any state count as
    tried; only what is enqueued by hand can be a repetition. What trial n proposes rests on the seed, on n and on
    the trials in the storage, and on nothing else: a study that was interrupted goes on as if it had not been. One
    process at a time may ask a study for trials; any number of trials may be running.

    Args:
        feasible: What may be proposed.
        inner: How to choose: a name among SAMPLERS, or "package.module:Class" of an Optuna sampler or a Proposer.
        seed: Any integer that is not negative.

    Raises:
        UserError: An unknown name, or an import path that leads to no sampler.
    """

    def __init__(self, feasible: Feasible, inner: str = DEFAULT, seed: int = 0) -> None:
        self.feasible = feasible
        self._coordinates = Coordinates(feasible)
        self._proposer = proposer(inner)
        self._seed = seed
        self._history: History | None = None

    def propose(self, trial: optuna.Trial) -> Candidate:
        """The candidate of a trial just asked for, which is recorded in it; of an older one, what it has.

        Raises:
            Exhausted: There is none left. `remaining` tells beforehand.
        """
        return self.candidate(self._coordinates.walk(lambda axis: axis.suggest(trial)))

    def candidate(self, params: Mapping[str, Scalar]) -> Candidate:
        """The candidate of a trial's recorded parameters. Raises UserError where they are incomplete or outside."""
        index = self._coordinates.index(params)
        if index is None:
            raise UserError(f"parameters {_listed(params) or '(none)'} are no candidate within the budget.")
        return self.feasible.candidates[index]

    def remaining(self, study: optuna.Study) -> int:
        """How many feasible candidates no trial has."""
        return len(self._tried(study).untried(len(self.feasible)))

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Every axis, those that apply to some topologies only included."""
        return {name: axis.distribution for name, axis in self._coordinates.axes.items()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The point of one candidate. What the trial has recorded already, or was enqueued with, is kept."""
        tried = self._tried(study, without=trial.number)
        untried = tried.untried(len(self.feasible))
        allowed = self._allowed(params_of(trial), untried)
        if not len(allowed):
            raise Exhausted("every candidate within the budget has been tried.")
        situation = Situation(self._coordinates, tried, untried, self._seed_of(trial), study, trial)
        index = self._choose(situation) if len(untried) else -1
        if index not in allowed:
            index = self._choose(replace(situation, untried=allowed))
        return dict(self._coordinates.point(index))

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Never called by `propose`: an axis is only asked for where it applies."""
        raise ValueError(f"axis {param_name!r} does not apply to trial {trial.number}. Use BudgetSampler.propose.")

    def _allowed(self, given: Mapping[str, Scalar], untried: Indices) -> Indices:
        """The untried candidates with the values given; where all of those were tried, somebody wants one again."""
        if not given:
            return untried
        fitting = self._coordinates.fitting(given)
        if not len(fitting):
            raise UserError(f"no candidate within the budget has {_listed(given)}. Enqueue one that is.")
        return fitting[np.isin(fitting, untried)] if np.isin(fitting, untried).any() else fitting

    def _tried(self, study: optuna.Study, without: int | None = None) -> Tried:
        if self._history is None or not self._history.belongs_to(study):
            self._history = History(study, self._coordinates)
        return self._history.tried(without)

    def _seed_of(self, trial: FrozenTrial) -> int:
        return int(np.random.SeedSequence([self._seed, trial.number]).generate_state(1)[0])

    def _choose(self, situation: Situation) -> int:
        return self._start if self._start in situation.untried else self._proposer.propose(situation)

    @cached_property
    def _start(self) -> int:
        """The first of the space, or the feasible candidate nearest to it."""
        first = self._coordinates.place(self.feasible.space.members[self.feasible.space.first])
        return self._coordinates.nearest(first, np.arange(len(self.feasible)), np.random.default_rng(self._seed))


def _listed(params: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())
