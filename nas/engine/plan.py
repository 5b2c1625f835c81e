"""The plan of a search in one coordinator: propose a trial, have it evaluated, record the outcome."""

import shutil
from pathlib import Path
from typing import Literal, final

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from nas.budget.bounds import NO_BUDGET
from nas.budget.objectives import PROFILE_COSTS, measures_for
from nas.engine.scheduler import WAIT, Plan, Wait
from nas.environment.seeds import next_seed
from nas.request.job import EvaluationJob, task_of, with_identity
from nas.request.search_request import SearchRequest
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.early_stopping import EarlyStopping
from nas.samplers.history import params_of
from nas.samplers.rungs import NO_RUNGS, Rungs
from nas.store.leases import Leases
from nas.store.optuna_study import (
    finish_trial,
    first_reevaluation,
    is_under_way,
    new_trial,
    proposal_lock,
    record_params,
    root_trial_number,
    seed_of,
    set_first_reevaluation,
    set_trial_seed,
    started_trials,
    trials_of,
)
from nas.store.store import Store
from results.records.row import Row
from results.stats.pareto import not_surely_dominated
from search_spaces.spaces.space import Point

SaveModels = Literal["front", "all", "none"]
"""Which trained networks a search saves."""


@final
class SearchPlan(Plan):
    """The trials of a study, one after another, until it has `trials` of them.

    A study that was interrupted, or whose coordinator died, resumes the trials that were running. They keep their
    numbers and candidates, so the study ends as it would have without the interruption. With several coordinators, each
    adopts the trials of one that died.

    Attributes:
        study: The Optuna study.
        store: The store of its Rows.
        config: Its configuration.
        budget: Its budget.
        leases: The leases of this coordinator.
        sampler: The sampler of candidates.
        trials: Total number of trials.
        reevals: Number of these that re-evaluate front candidates with held-out seeds, at the end.
        rungs: The rungs of early stopping.
        save_models: Which trained networks are saved.
        threads: CPU threads of each evaluation.
        traces: Folder of the networks' traces, or None for no traces.
        resumes: Whether an earlier process left trials running.
    """

    def __init__(
        self,
        study: optuna.Study,
        store: Store,
        request: SearchRequest,
        leases: Leases,
        sampler: BudgetSampler,
        trials: int,
        reevals: int = 0,
        rungs: Rungs = NO_RUNGS,
        save_models: SaveModels = "front",
        threads: int = 1,
        traces: Path | None = None,
    ) -> None:
        self.study, self.store, self.sampler = study, store, sampler
        self.config, self.budget = request.config, request.budget
        self.leases, self.trials, self.reevals = leases, trials, reevals
        self.rungs, self.save_models, self.threads, self.traces = rungs, save_models, threads, traces
        self._stopping = EarlyStopping(study, rungs, self.config.objectives)
        self._local_trials: set[int] = set()  # numbers of the trials that this coordinator started or adopted
        self._networks: set[str] = set()  # identities of the study's Rows whose networks may still exist
        self._front: dict[str, list[list[float]]] = {}  # identity -> values and errors of complete Rows
        self._trials_with_rows: set[int] = set()
        self.resumes = bool(self._orphans())
        self._read_new_rows()

    def next(self) -> EvaluationJob | Wait | None:
        """Return the job of an orphaned trial, or of a new one; None if the study has all its trials."""
        with proposal_lock(self.study):
            orphans = self._orphans()
            orphan = next(filter(self._adopt, orphans), None)
            # A trial that died during its proposal keeps its recorded parameters; the others are proposed again.
            trial = self._new() if orphan is None else orphan
            job = None if trial is None else self._job(trial)
        if trial is None:
            if orphans:
                return WAIT
            self._prune_networks()
            return None
        self._local_trials.add(trial.number)  # now that the lock was not lost
        return job

    def on_end(self, job: EvaluationJob, row: Row) -> None:
        """Conclude the trial in Optuna, and remove the networks that left the front."""
        assert job.number is not None
        self._conclude(job.number, row)
        self.leases.release(self._lease_name(job.number))
        self._trials_with_rows.add(job.number)
        self._add_row(row)
        self._prune_networks()

    def _prune_networks(self) -> None:
        """Read the Rows of all coordinators, and remove the networks that left the front."""
        if self.save_models != "front":
            return
        self._read_new_rows()
        estimates = np.array(list(self._front.values())).reshape(-1, 2, len(self.config.objectives))
        mask = not_surely_dominated(estimates[:, 0], estimates[:, 1])
        best = {name for name, is_candidate in zip(self._front, mask, strict=True) if is_candidate}
        self._front = {name: self._front[name] for name in best}  # dominated ones never return
        for name in self._networks - best:
            network = self.store.network(name)
            if network.exists() and not self.store.studies_with(name) - {self.study.study_name}:
                shutil.rmtree(network, ignore_errors=True)
        self._networks &= best

    def has_open_trials(self) -> bool:
        """Return whether a trial is running, or a paused one is to be promoted."""
        with proposal_lock(self.study):
            running = any(trial.state == TrialState.RUNNING for trial in trials_of(self.study))
            return running or self._next_promotion() is not None

    def _conclude(self, number: int, row: Row) -> None:
        finish_trial(self.study, number, row, self.config.objectives, self._stopping.rung_values(row))

    def _new(self) -> FrozenTrial | None:
        """Create a trial and acquire its lease; return None if the study has all its trials.

        Promotions of paused trainings come first, and do not count towards `trials`.
        """
        promotion = self._next_promotion()
        if promotion is None and not self._has_room():
            return None
        trial = new_trial(self.study, promotion)
        self.leases.acquire(self._lease_name(trial.number))
        return trial

    def _next_promotion(self) -> FrozenTrial | None:
        """Return the trial whose paused training is promoted next, or None."""
        if not self.rungs.number:
            return None
        searching = len(started_trials(self.study)) < self.trials - self.reevals and self.sampler.has_more(self.study)
        first = self.sampler.promote(self.study, searching=searching)
        if first is None:
            return None
        return next(trial for trial in reversed(trials_of(self.study)) if root_trial_number(trial) == first)

    def _has_room(self) -> bool:
        """Return whether to start a trial: one of the search or, after it, a re-evaluation with a held-out seed.

        Optuna's study records the first trial that re-evaluates. If the study is extended, or no candidate has a seed
        left, it searches first and re-evaluates later. Once every candidate is tried, the remaining trials re-evaluate.
        """
        trials, has_more = trials_of(self.study), self.sampler.has_more(self.study)
        starts = started_trials(self.study)
        if len(starts) >= self.trials:
            return False
        first_reeval, confirmable = first_reevaluation(self.study), self.sampler.can_reevaluate(self.study)
        previous = first_reeval
        searching = len(starts) < self.trials - self.reevals
        if has_more and (searching or not confirmable):
            first_reeval = None
        if first_reeval is None and self.reevals and confirmable and not (searching and has_more):
            first_reeval = len(trials)
        if first_reeval != previous:
            set_first_reevaluation(self.study, first_reeval)
        return (first_reeval is not None and confirmable) or has_more

    def _adopt(self, trial: FrozenTrial) -> bool:
        """Acquire the lease of another coordinator's trial, and return whether that succeeded."""
        lease = self._lease_name(trial.number)
        if not self.leases.acquire(lease):
            return False
        if is_under_way(self.study, trial):
            return True
        self.leases.release(lease)  # it was concluded and its lease released in the meantime
        return False

    def _orphans(self) -> list[FrozenTrial]:
        """Return running trials of other coordinators without a Row; conclude those with one."""
        running = [trial for trial in trials_of(self.study) if trial.state == TrialState.RUNNING]
        running = [trial for trial in running if trial.number not in self._local_trials]
        rows = self.store.rows_by_number(self.study.study_name, [trial.number for trial in running]) if running else {}
        for number, row in rows.items():
            self.store.remove_work_folder(row)
            self._conclude(number, row)
        return [trial for trial in running if trial.number not in rows]

    def _lease_name(self, number: int) -> str:
        return f"trial {number} of {self.study.study_name}"

    def _read_new_rows(self) -> None:
        """Read the Rows of all coordinators' trials that ended since the last call."""
        numbers = {
            trial.number for trial in trials_of(self.study) if trial.state.is_finished()
        } - self._trials_with_rows
        for row in self.store.rows_by_number(self.study.study_name, numbers).values() if numbers else ():
            self._add_row(row)
        self._trials_with_rows |= numbers

    def _add_row(self, row: Row) -> None:
        columns = row.columns()
        objectives = self.config.objectives.items()
        values = [columns.get(name) for name, _ in objectives]
        if row.status == "complete":  # a paused training has no network yet, and may have one of this identity later
            self._networks.add(row.identity())
        if row.status == "complete" and None not in values:
            signs = [-1.0 if direction == "max" else 1.0 for _, direction in objectives]
            errors = [float(columns.get(f"{name}_se") or 0.0) for name, _ in objectives]
            self._front[row.identity()] = [(np.array(values, dtype=float) * signs).tolist(), errors]

    def _is_reeval(self, trial: FrozenTrial) -> bool:
        first_reeval = first_reevaluation(self.study)
        return first_reeval is not None and root_trial_number(trial) >= first_reeval

    def _seed(self, trial: FrozenTrial, point: Point) -> int:
        """Return the seed of a trial: the search's, or the next that no other trial of the candidate has."""
        if trial.params:  # recorded by an earlier process
            return self._recorded_seed(trial)
        siblings = [sibling for sibling in trials_of(self.study) if sibling.number != trial.number]
        seeds = {
            self._recorded_seed(sibling) for sibling in siblings if (sibling.params or params_of(sibling)) == point
        }
        seed = next_seed(self.config.seed, seeds, self._seeds(point))
        if seed != self._recorded_seed(trial):  # recorded first: a process may die before it records the candidate
            set_trial_seed(self.study, trial, seed)
        return seed

    def _seeds(self, point: Point) -> tuple[int, ...] | None:
        """Return the seeds that a candidate can have; None for any."""
        config = self.config
        return task_of(config.task, config.data).seeds(self.sampler.candidate(point).architecture)

    def _recorded_seed(self, trial: FrozenTrial) -> int:
        seed = seed_of(trial)
        return self.config.seed if seed is None else seed

    def _job(self, trial: FrozenTrial) -> EvaluationJob:
        axes = self.sampler.infer_relative_search_space(self.study, trial)
        point = self.sampler.sample_relative(self.study, trial, axes)  # keeps what an earlier process recorded
        seed = self._seed(trial, point)
        record_params(self.study, trial, point, axes)
        candidate = self.sampler.candidate(point)
        config, profile_budget = self.config, self.budget.profile_budget
        first_seed = next_seed(config.seed, (), self._seeds(point))
        resumes = root_trial_number(trial) != trial.number
        job = EvaluationJob(
            task=config.task,
            architecture=candidate.architecture,
            preset=config.preset,
            settings=tuple(sorted({**config.settings, **dict(candidate.settings)}.items())),
            seed=seed,
            data=config.data,
            space=config.space,
            number=trial.number,
            # Candidates with several seeds have proved promising: they are not paused.
            max_steps=None if seed != first_seed or self._is_reeval(trial) else self._stopping.max_steps(trial),
            limits=NO_BUDGET if resumes else self.budget,  # checked at the start of the training
            profiled=bool(profile_budget.bounds) or any(name in PROFILE_COSTS for name in config.objectives),
            trace=str(self.traces / candidate.key) if self.traces else None,
            measures=measures_for(config.objectives),
            threads=self.threads,
        )
        return with_identity(job)
