"""The sampler a study is made with: whatever it proposes is new and inside the budget."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from nas.budget.bounds import Feasible
from nas.budget.implicit.budget_dp import BudgetDP
from nas.samplers.candidate_pool import ImplicitCandidates
from nas.samplers.candidates import Candidates, EnumeratedCandidates
from nas.samplers.encoding import Coordinates
from nas.samplers.history import TrialTable, params_of
from nas.samplers.load import proposer
from nas.samplers.promotion import promote
from nas.samplers.proposer import Costs, SearchState
from nas.samplers.reevaluation import contender
from nas.samplers.registry import DEFAULT
from nas.store.optuna_study import confirms_from, trials_of
from results.stats.gaussian_process import Indices
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Candidate
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Scalar


class Exhausted(RuntimeError):
    """Every candidate within the budget has been tried."""


class BudgetSampler(BaseSampler):
    """Proposes candidates that are inside the budget: new ones, and those tried for another seed where that tells more.

    Trials that confirm what others have found (`nas.store.optuna_study.confirm_from`) train what may be on the front
    with fresh seeds.

    What the space says is first comes first, or the feasible candidate nearest to it. Trials in any state count as
    tried. What trial n proposes rests on the seed, on n and on
    the trials in the storage, and on nothing else: a study that was interrupted goes on as if it had not been. One
    process at a time may ask a study for trials; any number of trials may be running.

    Args:
        feasible: What may be proposed.
        inner: How to choose: a name among SAMPLERS, or "package.module:Class" of an Optuna sampler or a Proposer.
        seed: Any integer that is not negative.
        costs: What counting tells of architectures' objectives, less being better: NaN where only a training does.
        seeds: How many trials each candidate gets at least, where none of them fails.
        at_most: How many seeds an architecture can have, of a space that is listed; None where any number.

    Raises:
        UserError: An unknown name, or an import path that leads to no sampler.
    """

    def __init__(
        self,
        feasible: Feasible | BudgetDP,
        inner: str = DEFAULT,
        seed: int = 0,
        costs: Costs | None = None,
        seeds: int = 1,
        at_most: Callable[[Architecture], int] | None = None,
    ) -> None:
        self.feasible = feasible
        self._axes = Coordinates(feasible.space, {})
        self._members: Candidates = (
            ImplicitCandidates(feasible) if isinstance(feasible, BudgetDP) else EnumeratedCandidates(feasible)
        )
        self._proposer = proposer(inner)
        self._seed, self._costs, self._seeds, self._at_most = seed, costs, seeds, at_most

    def propose(self, trial: optuna.Trial) -> Candidate:
        """The candidate of a trial just asked for, which is recorded in it; of an older one, what it has.

        Raises:
            Exhausted: There is none left. `remaining` tells beforehand.
        """
        return self.candidate(self._axes.walk(lambda axis: axis.suggest(trial)))

    def candidate(self, params: Mapping[str, Scalar]) -> Candidate:
        """The candidate of a trial's recorded parameters. Raises UserError where they are incomplete or outside."""
        candidate = self._members.candidate(params)
        if candidate is None:
            message = f"parameters {_listed(params) or '(none)'} are no candidate within the budget."
            raise UserError("infeasible", message, params=tuple(params.items()))
        return candidate

    def remaining(self, study: optuna.Study) -> int:
        """How many feasible candidates no trial has."""
        return self._members.remaining(study)

    def has_more(self, study: optuna.Study) -> bool:
        """Whether there is anything to propose: what no trial has, or what is to have more seeds."""
        return self.remaining(study) > 0 or bool(self._wanting(self._members.tried(study)))

    def can_confirm(self, study: optuna.Study) -> bool:
        """Whether anything has values and can be trained with another seed."""
        tried = self._members.tried(study)
        return bool(np.setdiff1d(tried.indices[tried.valued], self._spent(tried)).size)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Every axis, those that apply to some topologies only included."""
        return {name: axis.distribution for name, axis in self._axes.axes.items()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The point of one candidate. What the trial has recorded already, or was enqueued with, is kept."""
        given, seed = params_of(trial), self._drawn(trial.number)
        if given and self._members.candidate(given) is not None:
            return dict(given)
        situation = self._situation(study, trial, seed)
        coordinates, untried = situation.coordinates, situation.untried
        if not given:
            since = confirms_from(study)
            if since is not None and trial.number >= since and self.can_confirm(study):
                return dict(coordinates.point(contender(situation, since, self._spent(situation.tried))))
            if not (len(untried) or self._wanting(situation.tried)):
                raise Exhausted("every candidate within the budget has been tried.")
            return dict(coordinates.point(self._choose(situation)))
        situation = replace(situation, again=untried[:0])
        index = self._choose(situation) if len(untried) else -1
        if index < 0 or not given.items() <= coordinates.point(index).items():
            index = self._choose(replace(situation, untried=_allowed(coordinates, given, untried)))
        return dict(coordinates.point(index))

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Never called by `propose`: an axis is only asked for where it applies."""
        raise ValueError(f"axis {param_name!r} does not apply to trial {trial.number}. Use BudgetSampler.propose.")

    def promote(self, study: optuna.Study, *, searching: bool) -> int | None:
        """The number of the trial that began the training to go on with next; see `nas.samplers.promotion.promote`."""
        if not self._members.tried(study).held.any():
            return None
        number = len(trials_of(study))
        seed = self._drawn(number)
        coordinates, tried = self._members.around(study, number, seed)
        return promote(coordinates, tried, self._costs or _unknown(study), seed, searching)

    def _situation(self, study: optuna.Study, trial: FrozenTrial, seed: int) -> SearchState:
        coordinates, tried = self._members.around(study, trial.number, seed)
        costs, again = self._costs or _unknown(study), np.setdiff1d(tried.repeatable, self._spent(tried))
        return SearchState(coordinates, tried, tried.untried(len(coordinates)), again, costs, seed, study, trial)

    def _drawn(self, number: int) -> int:
        """The seed of what a trial with that number is given."""
        return int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])

    def _choose(self, situation: SearchState) -> int:
        start = self._members.start(situation.coordinates, self._seed)
        if start in situation.untried:
            return start
        wanting = [index for index in self._wanting(situation.tried) if index in situation.again]
        return wanting[0] if wanting else self._proposer.propose(situation)

    def _wanting(self, tried: TrialTable) -> list[int]:
        """The candidates with values, none of whose trials is under way, that have had fewer trials than seeds."""
        if self._seeds == 1:
            return []
        again = np.setdiff1d(tried.repeatable, self._spent(tried))
        return [int(index) for index in again if (tried.indices == index).sum() < self._seeds]

    def _spent(self, tried: TrialTable) -> Indices:
        """The candidates whose trials have all the seeds that their architecture can have."""
        if self._at_most is None or isinstance(self.feasible, BudgetDP):
            return tried.indices[:0]
        at, trials = np.unique(tried.indices, return_counts=True)
        most = [self._at_most(self.feasible.candidates[index].architecture) for index in at]
        return np.asarray(at[trials >= most], dtype=np.intp)


def _unknown(study: optuna.Study) -> Costs:
    nothing = [np.nan] * len(study.directions)
    return lambda architecture: nothing


def _allowed(coordinates: Coordinates, given: Mapping[str, Scalar], untried: Indices) -> Indices:
    """The untried candidates with the values given; where all of those were tried, somebody wants one again."""
    fitting = coordinates.fitting(given)
    if not len(fitting):
        message = f"no candidate within the budget has {_listed(given)}. Enqueue one that is."
        raise UserError("infeasible", message, params=tuple(given.items()))
    new = np.isin(fitting, untried) | [coordinates.is_new(int(index)) for index in fitting]
    return fitting[new] if new.any() else fitting


def _listed(params: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())
