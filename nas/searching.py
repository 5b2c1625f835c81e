"""A search as a plan: ask for a candidate, have it evaluated, tell what came out; one coordinator's side of it."""

import shutil
import time
from pathlib import Path
from typing import Literal, final

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from nas.asking import Asked
from nas.auditing import caution
from nas.budget import parse_budget
from nas.jobs import EvaluationJob, task_of
from nas.objectives import PROFILED, measures_for
from nas.places import slug
from nas.progress import Progress, say
from nas.sampling import BudgetSampler
from nas.scheduler import LATER, Later, OutOfTime, Plan, Scheduler
from nas.storage.leases import Claims, claims_in
from nas.storage.locks import only_writer
from nas.storage.optuna_study import (
    clear_storage_errors,
    conclude,
    is_under_way,
    new_trial,
    open_storage,
    open_study,
    record,
    trials_of,
    turn_at,
)
from nas.storage.outages import patient
from nas.storage.search_config import SearchConfig
from nas.storage.store import Store
from nas.workers.resources import Resources
from nas.workers.workers import pool_of
from results.pareto import non_dominated
from results.row import Row
from search_spaces.space import Point

Keep = Literal["front", "all", "none"]
"""Which trained networks a search keeps."""


@final
class SearchPlan(Plan):
    """The trials of a study, one after another, until it holds as many as were asked for.

    A study that was interrupted, or whose coordinator died, goes on with the trials that were under way: they keep
    their numbers and candidates, so that the study is the one it would have been. Where several coordinators are at it,
    each takes over what another one has lost.

    Attributes:
        study: Optuna's, with its trials.
        store: Where the Rows are.
        config: What the study is about.
        claims: What this coordinator has taken upon itself.
        sampler: What proposes candidates.
        trials: How many the study is to hold.
        keep: Which trained networks stay.
        threads: Of the CPU, for each evaluation.
        traces: Where each network's trace is kept, or None where none is made.
        goes_on: Whether another process has left trials under way.
    """

    def __init__(
        self,
        study: optuna.Study,
        store: Store,
        config: SearchConfig,
        claims: Claims,
        sampler: BudgetSampler,
        trials: int,
        keep: Keep = "front",
        threads: int = 1,
        traces: Path | None = None,
    ) -> None:
        self.study, self.store, self.config, self.sampler = study, store, config, sampler
        self.claims, self.trials, self.keep, self.threads, self.traces = claims, trials, keep, threads, traces
        self._begun: set[int] = set()  # numbers of the trials that this coordinator has begun or taken over
        self._networks: set[str] = set()  # identities of the study's Rows whose networks may still be there
        self._front: dict[str, list[float]] = {}  # of complete rows not known to be beaten; less is better
        self._noted: set[int] = set()
        self.goes_on = bool(self._left_by_others())
        self._take_notes()

    def next(self) -> EvaluationJob | Later | None:
        """A trial that another coordinator has left, or a new one while there is room for more."""
        with turn_at(self.study):
            left = self._left_by_others()
            mine = next(filter(self._takes_over, left), None)
            # Of a trial that died while it was proposed, what it had recorded is kept, and the rest proposed again.
            trial = self._new() if mine is None else mine
            job = None if trial is None else self._job(trial)
        if trial is None:
            if left:
                return LATER
            self._look_again()
            return None
        self._begun.add(trial.number)  # now that the turn was not lost
        return job

    def ended(self, job: EvaluationJob, row: Row) -> None:
        """Tell Optuna, and let go of the networks that are no longer wanted."""
        assert job.number is not None
        conclude(self.study, job.number, row, self.config.objectives)
        self.claims.release(self._lease(job.number))
        self._noted.add(job.number)
        self._take_note(row)
        self._look_again()

    def _look_again(self) -> None:
        """See what others have found, and remove the networks that are not of the front any more."""
        if self.keep != "front":
            return
        self._take_notes()
        values = np.array(list(self._front.values())).reshape(-1, len(self.config.objectives))
        best = {name for name, stays in zip(self._front, non_dominated(values), strict=True) if stays}
        self._front = {name: self._front[name] for name in best}  # what is beaten once stays beaten
        for name in self._networks - best:
            network = self.store.network(name)
            if network.exists() and self.store.holders(name) <= {self.study.study_name}:  # others may still want it
                shutil.rmtree(network, ignore_errors=True)
        self._networks &= best

    def _new(self) -> FrozenTrial | None:
        """A new trial, which is nobody else's; None where the study is to hold no more."""
        if len(trials_of(self.study)) >= self.trials or not self.sampler.remaining(self.study):
            return None
        trial = new_trial(self.study)
        self.claims.claim(self._lease(trial.number))
        return trial

    def _takes_over(self, trial: FrozenTrial) -> bool:
        """Whether a trial that somebody else began is now this coordinator's."""
        lease = self._lease(trial.number)
        if not self.claims.claim(lease):
            return False
        if is_under_way(self.study, trial):
            return True
        self.claims.release(lease)  # it was concluded, and its lease given back, since this turn began
        return False

    def _left_by_others(self) -> list[FrozenTrial]:
        """Trials under way that others have begun; those that have a Row are concluded, and are not among them."""
        running = [trial for trial in trials_of(self.study) if trial.state == TrialState.RUNNING]
        running = [trial for trial in running if trial.number not in self._begun]
        rows = self.store.numbered(self.study.study_name, [trial.number for trial in running]) if running else {}
        for number, row in rows.items():
            self.store.clear(row)
            conclude(self.study, number, row, self.config.objectives)
        return [trial for trial in running if trial.number not in rows]

    def _lease(self, number: int) -> str:
        return f"trial {number} of {self.study.study_name}"

    def _take_notes(self) -> None:
        """Look at the Rows of all trials that have ended since, whoever has evaluated them."""
        ended = {trial.number for trial in trials_of(self.study) if trial.state.is_finished()} - self._noted
        for row in self.store.numbered(self.study.study_name, ended).values() if ended else ():
            self._take_note(row)
        self._noted |= ended

    def _take_note(self, row: Row) -> None:
        columns = row.columns()
        ways = self.config.objectives.items()
        values = [columns.get(name) for name, _ in ways]
        if row.status == "complete" and None not in values:
            signs = [-1.0 if way == "max" else 1.0 for _, way in ways]
            self._front[row.identity()] = (np.array(values, dtype=float) * signs).tolist()
        self._networks.add(row.identity())

    def _proposed(self, trial: FrozenTrial) -> Point:
        """What a trial is to try; it is recorded, and what an earlier process recorded is kept."""
        axes = self.sampler.infer_relative_search_space(self.study, trial)
        point = self.sampler.sample_relative(self.study, trial, axes)
        record(self.study, trial, point, axes)
        return point

    def _job(self, trial: FrozenTrial) -> EvaluationJob:
        candidate = self.sampler.candidate(self._proposed(trial))
        config, budget = self.config, parse_budget([self.config.budget])
        return EvaluationJob(
            task=config.task,
            architecture=candidate.architecture,
            preset=config.preset,
            settings=tuple(sorted({**config.settings, **dict(candidate.settings)}.items())),
            seed=config.seed,
            data=config.data,
            space=config.space,
            number=trial.number,
            limits=str(budget.profiled),
            profiled=any(name in PROFILED for name in config.objectives),
            trace=str(self.traces / candidate.key) if self.traces else None,
            measures=measures_for(config.objectives),
            threads=self.threads,
        )


def carry_out(
    asked: Asked,
    name: str,
    storage: str,
    *,
    trials: int,
    resources: Resources,
    seconds: float | None,
    keep: Keep,
    traced: bool,
) -> None:
    """Search until the study holds so many trials, all candidates have been tried, or the time is up.

    Raises UserError.
    """
    config, began = asked.config, time.monotonic()
    say(f"study {name}: {asked.line}")
    task_of(config.task, config.data).prepare()
    sampler = BudgetSampler(asked.members, inner=config.sampler, seed=config.seed)
    store = Store(storage, make=True)
    if doubt := patient(caution)(config, store):
        say(doubt)
    with only_writer(storage, name), clear_storage_errors(storage), claims_in(store) as claims:
        study = patient(open_study)(patient(open_storage)(storage), name, config, sampler)
        traces = store.folder.absolute() / f"{slug(name)}-traces" if traced else None
        plan = patient(SearchPlan)(study, store, config, claims, sampler, trials, keep, resources.threads, traces)
        done = len(patient(store.numbered)(name))
        # Whether a process that died did so for its evaluation is seen from outside. What kills one coordinator would
        # kill those that take over from it.
        apart = store.shared or plan.goes_on or seconds is not None
        try:
            with (
                Progress(config.task, list(config.objectives), done, trials) as progress,
                pool_of(resources, trials, apart=apart) as pool,
            ):
                until = None if seconds is None else began + seconds
                Scheduler(store, name, claims, pool, progress.add, keep != "none", until).run(plan)
        except OutOfTime:
            ended = len(patient(store.numbered)(name))
            if ended < trials:
                say(f"the time is up (--timeout) after {ended} of {trials} trials; the same command goes on from here")
                return
        if not patient(sampler.remaining)(study):
            say("every architecture within the budget has been tried")
