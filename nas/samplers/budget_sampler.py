"""The sampler of every study: it proposes new candidates within the budget, or further seeds of known ones."""

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
from nas.samplers.encoding import CandidateEncoding
from nas.samplers.history import TrialTable, params_of
from nas.samplers.load_proposer import load_proposer
from nas.samplers.promotion import promote
from nas.samplers.proposer import CountedObjectives, SearchState
from nas.samplers.reevaluation import next_reevaluation
from nas.samplers.registry import DEFAULT
from nas.store.optuna_study import first_reevaluation, trials_of
from results.stats.gaussian_process import Indices
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Candidate
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Scalar


class NoCandidates(RuntimeError):
    """The error that every candidate within the budget has a trial."""


class BudgetSampler(BaseSampler):
    """An Optuna sampler that proposes only candidates within the budget.

    A proposal is a new candidate, or a tried one for another seed if that is more informative. Trials that re-evaluate
    (`nas.store.optuna_study.set_first_reevaluation`) train front candidates with held-out seeds.

    The first proposal is the space's first candidate, or the feasible one nearest to it. Trials in any state count as
    tried. The proposal of trial n depends only on the seed, on n and on the stored trials, so a resumed study continues
    as if it had not stopped. Only one process at a time may ask a study for trials; any number of trials may run.

    Args:
        feasible: The candidates that may be proposed.
        sampler_name: A name in SAMPLERS, or "package.module:Class" of an Optuna sampler or a Proposer.
        seed: Any integer that is not negative.
        costs: Maps an architecture to its counted objectives, less being better; NaN for trained ones.
        seeds: Minimal number of trials of each candidate, unless one fails.
        max_seeds: Maps an architecture of an enumerated space to the number of seeds it can have; None: any number.

    Raises:
        UserError: The name is unknown, or the import path is not a sampler.
    """

    def __init__(
        self,
        feasible: Feasible | BudgetDP,
        sampler_name: str = DEFAULT,
        seed: int = 0,
        costs: CountedObjectives | None = None,
        seeds: int = 1,
        max_seeds: Callable[[Architecture], int] | None = None,
    ) -> None:
        self.feasible = feasible
        self._axes = CandidateEncoding(feasible.space, {})
        self._members: Candidates = (
            ImplicitCandidates(feasible) if isinstance(feasible, BudgetDP) else EnumeratedCandidates(feasible)
        )
        self._proposer = load_proposer(sampler_name)
        self._seed, self._costs, self._seeds, self._max_seeds = seed, costs, seeds, max_seeds

    def propose(self, trial: optuna.Trial) -> Candidate:
        """Return the candidate of a new trial and record it there; of an older trial, return the recorded one.

        Raises:
            NoCandidates: No candidate is left; see `has_more`.
        """
        return self.candidate(self._axes.walk(lambda axis: axis.suggest(trial)))

    def candidate(self, params: Mapping[str, Scalar]) -> Candidate:
        """Return the candidate of a trial's parameters. Raises UserError if they are incomplete or infeasible."""
        candidate = self._members.candidate(params)
        if candidate is None:
            message = f"parameters {_params_text(params) or '(none)'} match no candidate within the budget."
            raise UserError("infeasible", message, params=tuple(params.items()))
        return candidate

    def remaining(self, study: optuna.Study) -> int:
        """Return the number of feasible candidates without a trial."""
        return self._members.remaining(study)

    def has_more(self, study: optuna.Study) -> bool:
        """Return whether a proposal is left: a candidate without a trial, or one with too few seeds."""
        return self.remaining(study) > 0 or bool(self._undersampled_candidates(self._members.trial_table(study)))

    def can_reevaluate(self, study: optuna.Study) -> bool:
        """Return whether a candidate with values can be trained with another seed."""
        trials = self._members.trial_table(study)
        return bool(np.setdiff1d(trials.indices[trials.has_values], self._exhausted_candidates(trials)).size)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return all axes, including those that apply only to some topologies."""
        return {name: axis.distribution for name, axis in self._axes.axes.items()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the parameters of one candidate, and keep those that the trial records or was enqueued with."""
        fixed_params, seed = params_of(trial), self._trial_seed(trial.number)
        if fixed_params and self._members.candidate(fixed_params) is not None:
            return dict(fixed_params)
        state = self._state(study, trial, seed)
        coordinates, new = state.coordinates, state.new
        if not fixed_params:
            since = first_reevaluation(study)
            if since is not None and trial.number >= since and self.can_reevaluate(study):
                index = next_reevaluation(state, since, self._exhausted_candidates(state.trials))
                return dict(coordinates.point(index))
            if not (len(new) or self._undersampled_candidates(state.trials)):
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
        """Raise ValueError: `propose` asks only for axes that apply."""
        raise ValueError(f"axis {param_name!r} does not apply to trial {trial.number}. Use BudgetSampler.propose.")

    def promote(self, study: optuna.Study, *, searching: bool) -> int | None:
        """Return the number of the trial whose training is promoted next; see `nas.samplers.promotion.promote`."""
        if not self._members.trial_table(study).is_paused.any():
            return None
        number = len(trials_of(study))
        seed = self._trial_seed(number)
        coordinates, trials = self._members.proposal_pool(study, number, seed)
        return promote(coordinates, trials, self._costs or _no_costs(study), seed, searching)

    def _state(self, study: optuna.Study, trial: FrozenTrial, seed: int) -> SearchState:
        coordinates, trials = self._members.proposal_pool(study, trial.number, seed)
        costs, new = self._costs or _no_costs(study), trials.new_candidates(len(coordinates))
        repeatable = np.setdiff1d(trials.repeatable, self._exhausted_candidates(trials))
        return SearchState(coordinates, trials, new, repeatable, costs, seed, study, trial)

    def _trial_seed(self, number: int) -> int:
        """Return the seed of the proposal for the trial with this number."""
        return int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])

    def _choose(self, state: SearchState) -> int:
        start = self._members.first_index(state.coordinates, self._seed)
        if start in state.new:
            return start
        candidates = [index for index in self._undersampled_candidates(state.trials) if index in state.repeatable]
        return candidates[0] if candidates else self._proposer.propose(state)

    def _undersampled_candidates(self, trials: TrialTable) -> list[int]:
        """Return candidates with values and without running trials that have fewer trials than `seeds`."""
        if self._seeds == 1:
            return []
        repeatable = np.setdiff1d(trials.repeatable, self._exhausted_candidates(trials))
        return [int(index) for index in repeatable if (trials.indices == index).sum() < self._seeds]

    def _exhausted_candidates(self, trials: TrialTable) -> Indices:
        """Return the candidates whose trials have all the seeds that their architecture can have."""
        if self._max_seeds is None or isinstance(self.feasible, BudgetDP):
            return trials.indices[:0]
        members, counts = np.unique(trials.indices, return_counts=True)
        most = [self._max_seeds(self.feasible.candidates[index].architecture) for index in members]
        return np.asarray(members[counts >= most], dtype=np.intp)


def _no_costs(study: optuna.Study) -> CountedObjectives:
    nothing = [np.nan] * len(study.directions)
    return lambda architecture: nothing


def _matching_candidates(
    coordinates: CandidateEncoding, fixed_params: Mapping[str, Scalar], candidates: Indices
) -> Indices:
    """Return the new candidates with these parameters, or all of them if none is new: one was enqueued again."""
    indices = coordinates.matching(fixed_params)
    if not len(indices):
        message = f"no candidate within the budget has {_params_text(fixed_params)}. Enqueue another one."
        raise UserError("infeasible", message, params=tuple(fixed_params.items()))
    unseen = np.isin(indices, candidates) | [coordinates.is_new(int(index)) for index in indices]
    return indices[unseen] if unseen.any() else indices


def _params_text(params: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())
