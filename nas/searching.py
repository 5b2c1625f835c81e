"""Carrying a search out: its sampler, its study and its plan, until there is nothing more to do."""

import time
from collections.abc import Collection
from functools import cache
from math import nan

from nas.asking import Asked, Evidence
from nas.auditing import Audit, audit_for
from nas.cautions import too_early, unreliable
from nas.counting import cheap_counts
from nas.early_stopping import NONE_HELD, Rungs
from nas.jobs import task_of
from nas.places import slug
from nas.progress import Progress, say
from nas.sampling import BudgetSampler
from nas.sampling.proposer import Costs
from nas.scheduler import OutOfTime, Scheduler
from nas.search_plan import Keep, SearchPlan
from nas.storage.leases import claims_in
from nas.storage.locks import only_writer
from nas.storage.names import check_name
from nas.storage.optuna_study import (
    begun_in,
    clear_storage_errors,
    open_storage,
    open_study,
)
from nas.storage.outages import patient
from nas.storage.search_config import SearchConfig
from nas.storage.store import Store
from nas.workers.resources import Resources
from nas.workers.workers import pool_of
from search_spaces.architecture import Architecture
from tasks.base import Task


def costs_known(task: Task, objectives: Collection[str], base: Architecture) -> Costs | None:
    """What counting tells of the objectives, where it takes no time: of tasks with a closed form."""
    if task.closed_form(base) is None:
        return None

    @cache
    def costs(architecture: Architecture) -> tuple[float, ...]:
        counts = cheap_counts(task, architecture)
        return tuple(float(counts.get(name, nan)) for name in objectives)

    return costs


def rungs_after_audit(config: SearchConfig, audit: Audit | None) -> Rungs:
    """The rungs of a search, or none where an audit doubts them; what it doubts is said."""
    rungs = Rungs(**config.rungs)
    if audit is None:
        return rungs
    early = too_early(audit, config.objectives, rungs) if rungs.number else None
    for line in (unreliable(audit, config.objectives), early):
        if line is not None:
            say(line)
    return NONE_HELD if early else rungs


def _evaluated(store: Store, study: str) -> set[str]:
    return {row.identity() for row in store.numbered(study).values()}


def carry_out(
    asked: Asked,
    study_name: str | None,
    storage: str,
    evidence: Evidence,
    *,
    resources: Resources,
    seconds: float | None,
    keep: Keep,
    traced: bool,
) -> None:
    """Search until the study holds so many trials, all candidates have been tried, or the time is up.

    Raises UserError.
    """
    config, trials, began = asked.config, evidence.trials, time.monotonic()
    name = check_name(study_name or asked.name)
    say(f"study {name}: {asked.line}")
    task = task_of(config.task, config.data)
    task.prepare()
    costs = costs_known(task, config.objectives, asked.members.space.base)
    sampler = BudgetSampler(asked.members, config.sampler, config.seed, costs, evidence.seeds)
    store = Store(storage, make=True)
    rungs = rungs_after_audit(config, patient(audit_for)(config, store))
    with only_writer(storage, name), clear_storage_errors(storage), claims_in(store) as claims:
        study = patient(open_study)(patient(open_storage)(storage), name, config, sampler)
        traces = store.folder.absolute() / f"{slug(name)}-traces" if traced else None
        plan = patient(SearchPlan)(
            study, store, config, claims, sampler, trials, evidence.confirming, rungs, keep, resources.threads, traces
        )
        done = patient(_evaluated)(store, name)
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
            ended = len(patient(_evaluated)(store, name))
            if ended < trials or patient(plan.is_left)():
                say(f"the time is up (--timeout) after {ended} of {trials} trials; the same command goes on from here")
                return
        if len(begun_in(study)) < trials and not patient(sampler.remaining)(study):
            say("every architecture within the budget has been tried")
