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
from nas.samplers.load_proposer import load_proposer
from nas.samplers.promotion import promote
from nas.samplers.proposer import Costs, SearchState
from nas.samplers.reevaluation import next_reevaluation
from nas.samplers.registry import DEFAULT
from nas.store.optuna_study import reevaluates_from, trials_of
from results.stats.gaussian_process import Indices
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Candidate
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Scalar


class NoCandidates(RuntimeError):
    """Every candidate within the budget has a trial."""


class BudgetSampler(BaseSampler):
    """Proposes candidates that are inside the budget: new ones, and those tried for another seed where that tells more.

    Trials that confirm what others have found (`nas.store.optuna_study.reevaluate_from`) train what may be on the front
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
        max_seeds: Architecture of an enumerated space -> how many seeds it can have; None for any number.

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
        max_seeds: Callable[[Architecture], int] | None = None,
    ) -> None:
        self.feasible = feasible
        self._axes = Coordinates(feasible.space, {})
        self._members: Candidates = (
            ImplicitCandidates(feasible) if isinstance(feasible, BudgetDP) else EnumeratedCandidates(feasible)
        )
        self._proposer = load_proposer(inner)
        self._seed, self._costs, self._seeds, self._max_seeds = seed, costs, seeds, max_seeds

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
            message = f"parameters {_params_text(params) or '(none)'} are no candidate within the budget."
            raise UserError("infeasible", message, params=tuple(params.items()))
        return candidate

    def remaining(self, study: optuna.Study) -> int:
        """Number of feasible candidates without a trial."""
        return self._members.remaining(study)

    def has_more(self, study: optuna.Study) -> bool:
        """Whether anything is left to propose: a candidate without a trial, or one with too few seeds."""
        return self.remaining(study) > 0 or bool(self._short_of_seeds(self._members.trial_table(study)))

    def can_reevaluate(self, study: optuna.Study) -> bool:
        """Whether a candidate with values can be trained with another seed."""
        trials = self._members.trial_table(study)
        return bool(np.setdiff1d(trials.indices[trials.has_values], self._without_new_seeds(trials)).size)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Every axis, those that apply to some topologies only included."""
        return {name: axis.distribution for name, axis in self._axes.axes.items()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The point of one candidate. Keeps the parameters that the trial records already or was enqueued with."""
        fixed_params, seed = params_of(trial), self._trial_seed(trial.number)
        if fixed_params and self._members.candidate(fixed_params) is not None:
            return dict(fixed_params)
        state = self._state(study, trial, seed)
        coordinates, new = state.coordinates, state.new
        if not fixed_params:
            since = reevaluates_from(study)
            if since is not None and trial.number >= since and self.can_reevaluate(study):
                index = next_reevaluation(state, since, self._without_new_seeds(state.trials))
                return dict(coordinates.point(index))
            if not (len(new) or self._short_of_seeds(state.trials)):
                raise NoCandidates("every candidate within the budget has been tried.")
            return dict(coordinates.point(self._choose(state)))
        state = replace(state, repeatable=new[:0])
        index = self._choose(state) if len(new) else -1
        if index < 0 or not fixed_params.items() <= coordinates.point(index).items():
            index = self._choose(replace(state, new=_matching_candidates(coordinates, fixed_params, new)))
        return dict(coordinates.point(index))

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Never called by `propose`: an axis is only asked for where it applies."""
        raise ValueError(f"axis {param_name!r} does not apply to trial {trial.number}. Use BudgetSampler.propose.")

    def promote(self, study: optuna.Study, *, searching: bool) -> int | None:
        """The number of the trial that began the training to go on with next; see `nas.samplers.promotion.promote`."""
        if not self._members.trial_table(study).is_paused.any():
            return None
        number = len(trials_of(study))
        seed = self._trial_seed(number)
        coordinates, trials = self._members.around(study, number, seed)
        return promote(coordinates, trials, self._costs or _no_costs(study), seed, searching)

    def _state(self, study: optuna.Study, trial: FrozenTrial, seed: int) -> SearchState:
        coordinates, trials = self._members.around(study, trial.number, seed)
        costs, new = self._costs or _no_costs(study), trials.new_candidates(len(coordinates))
        repeatable = np.setdiff1d(trials.repeatable, self._without_new_seeds(trials))
        return SearchState(coordinates, trials, new, repeatable, costs, seed, study, trial)

    def _trial_seed(self, number: int) -> int:
        """The seed of the proposal for the trial with this number."""
        return int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])

    def _choose(self, state: SearchState) -> int:
        start = self._members.start(state.coordinates, self._seed)
        if start in state.new:
            return start
        short_of_seeds = [index for index in self._short_of_seeds(state.trials) if index in state.repeatable]
        return short_of_seeds[0] if short_of_seeds else self._proposer.propose(state)

    def _short_of_seeds(self, trials: TrialTable) -> list[int]:
        """Candidates with values and no running trial that have fewer trials than `seeds`."""
        if self._seeds == 1:
            return []
        repeatable = np.setdiff1d(trials.repeatable, self._without_new_seeds(trials))
        return [int(index) for index in repeatable if (trials.indices == index).sum() < self._seeds]

    def _without_new_seeds(self, trials: TrialTable) -> Indices:
        """The candidates whose trials have all the seeds that their architecture can have."""
        if self._max_seeds is None or isinstance(self.feasible, BudgetDP):
            return trials.indices[:0]
        members, counts = np.unique(trials.indices, return_counts=True)
        most = [self._max_seeds(self.feasible.candidates[index].architecture) for index in members]
        return np.asarray(members[counts >= most], dtype=np.intp)


def _no_costs(study: optuna.Study) -> Costs:
    nothing = [np.nan] * len(study.directions)
    return lambda architecture: nothing


def _matching_candidates(coordinates: Coordinates, fixed_params: Mapping[str, Scalar], candidates: Indices) -> Indices:
    """The new candidates with these parameters; all that match where none is new: somebody enqueued one again."""
    indices = coordinates.matching(fixed_params)
    if not len(indices):
        message = f"no candidate within the budget has {_params_text(fixed_params)}. Enqueue one that is."
        raise UserError("infeasible", message, params=tuple(fixed_params.items()))
    unseen = np.isin(indices, candidates) | [coordinates.is_new(int(index)) for index in indices]
    return indices[unseen] if unseen.any() else indices


def _params_text(params: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())
