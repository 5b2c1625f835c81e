"""The run of a search: build sampler, study and plan, and evaluate until it is done."""

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from math import nan

from optuna.trial import TrialState

from nas.budget.bounds import Feasible
from nas.budget.implicit.budget_dp import BudgetDP
from nas.budget.objectives import PROFILE_COSTS
from nas.costs.count import budget_counts
from nas.engine.curve_log import curve_logs
from nas.engine.plan import SaveModels, SearchPlan
from nas.engine.progress import EvaluationProgress
from nas.engine.repeated_failures import RepeatedFailures
from nas.engine.scheduler import OutOfTime, Scheduler, prepare
from nas.engine.timings import Timings
from nas.environment.paths import slug
from nas.request.job import task_of
from nas.request.search_request import SearchRequest
from nas.request.text_checks import LogFormat
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.proposer import CountedObjectives
from nas.samplers.rungs import Rungs
from nas.store.leases import leases_in
from nas.store.locks import only_writer
from nas.store.optuna_study import (
    clear_storage_errors,
    open_study,
    started_trials,
    storage_connection,
)
from nas.store.retry import retry_on_disconnect
from nas.store.search_config import SearchConfig
from nas.store.store import Store
from nas.store.study_names import check_name
from nas.workers.pool import check_gpus, make_pool
from nas.workers.resources import AUTO, Resources
from results.records.row import Row
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError, number_error_kind
from search_spaces.support.logger import LOGGER
from search_spaces.support.progress import status_if_slow
from tasks.base import Task


@dataclass(frozen=True)
class TrialCounts:
    """The number of trials of a search, and its split.

    Attributes:
        trials: Total number of trials.
        seeds: Minimal number of seeds of each candidate.
        reeval_fraction: Fraction of the trials that re-evaluate front candidates with held-out seeds, at the end.

    Raises:
        UserError: `seeds` is not from 1 to `trials`, or `reeval_fraction` is not from 0 to below 1.
    """

    trials: int
    seeds: int
    reeval_fraction: float

    def __post_init__(self) -> None:
        if not 1 <= self.seeds <= self.trials:
            message = f"--seeds must be from 1 to --trials ({self.trials}) in a search, got {self.seeds}."
            raise UserError("out-of-range", message, option="--seeds", value=self.seeds, least=1, most=self.trials)
        kind = number_error_kind(self.reeval_fraction)
        if kind == "wrong-type" or not 0 <= self.reeval_fraction < 1:
            message = f"--reeval-fraction must be a number from 0 to below 1, got {self.reeval_fraction!r:.40}."
            raise UserError(kind, message, option="--reeval-fraction", value=self.reeval_fraction, least=0, below=1)

    def check_recorded_seeds(self, task: Task, candidates: Feasible | BudgetDP) -> None:
        """Raise UserError if a task with recorded seeds has too few of them for a candidate."""
        if task.seeds(candidates.space.base) is None or isinstance(candidates, BudgetDP):
            return
        fewest = min(len(task.seeds(candidate.architecture) or ()) for candidate in candidates)
        if self.seeds > fewest:
            limit = f"{fewest}, the fewest of an architecture in {task.name}"
            message = f"--seeds must be at most {limit}, got {self.seeds}."
            raise UserError("out-of-range", message, option="--seeds", value=self.seeds, most=fewest, task=task.name)

    @property
    def reevals(self) -> int:
        """Number of trials that re-evaluate front candidates."""
        return int(self.reeval_fraction * self.trials + 1e-9)  # without the epsilon, 0.29 of 100 gives 28


def closed_form_costs(task: Task, objectives: Collection[str], base: Architecture) -> CountedObjectives | None:
    """Return a function from an architecture to its counted objectives; None for a task without a closed form."""
    if task.closed_form(base) is None:
        return None

    @cache
    def counted_objectives(architecture: Architecture) -> tuple[float, ...]:
        counts = budget_counts(task, architecture)
        return tuple(float(counts.get(name, nan)) for name in objectives)

    return counted_objectives


def seed_limits(task: Task, base: Architecture) -> Callable[[Architecture], int] | None:
    """Return a function from an architecture to its number of seeds; None if it is unlimited."""
    return None if task.seeds(base) is None else lambda architecture: len(task.seeds(architecture) or ())


def check_resources(request: SearchRequest, resources: Resources, *, trace: bool) -> None:
    """Raise UserError if GPUs are missing, or networks are measured while they share one."""
    check_gpus(resources)
    quantities = [*request.config.objectives, *request.budget.profile_budget.bounds]
    measurements = [name for name in dict.fromkeys(quantities) if name in PROFILE_COSTS] or ["--profile"] * trace
    if resources.trial_gpus == AUTO and measurements:
        message = (
            f"--trial-gpus auto shares GPUs, so these measurements would be invalid: {', '.join(measurements)}. "
            f"Leave one of the two out."
        )
        raise UserError("conflict", message, option="--trial-gpus", value=AUTO, excludes=tuple(measurements))


def _row_identities(store: Store, study: str) -> set[str]:
    return {row.identity() for row in store.rows_by_number(study).values()}


def _build_sampler(request: SearchRequest, counts: TrialCounts) -> BudgetSampler:
    """Prepare the task, and build the sampler that proposes trials. Raises UserError."""
    config, base = request.config, request.candidates.space.base
    task = task_of(config.task, config.data)
    prepare(task)
    counts.check_recorded_seeds(task, request.candidates)
    counted_objectives, at_most = closed_form_costs(task, config.objectives, base), seed_limits(task, base)
    return BudgetSampler(request.candidates, config.sampler, config.seed, counted_objectives, counts.seeds, at_most)


def run_search(
    request: SearchRequest,
    study_name: str | None,
    storage: str,
    counts: TrialCounts,
    resources: Resources,
    timings: Timings,
    *,
    rungs_for: Callable[[SearchConfig, Store], Rungs],
    seconds: float | None,
    save_models: SaveModels,
    trace: bool,
    log: LogFormat | None,
) -> None:
    """Search until the study has its trials, all candidates were tried, or the time is up. Raises UserError."""
    config, trials, deadline = request.config, counts.trials, None if seconds is None else time.monotonic() + seconds
    check_resources(request, resources, trace=trace)
    name = check_name(study_name or request.name)
    LOGGER.info(f"study {name}: {request.summary}")
    with timings.track("preparing the data"):
        sampler = _build_sampler(request, counts)
    with (
        timings,
        closing(Store(storage, make=True)) as store,
        only_writer(storage, name),
        clear_storage_errors(storage),
        leases_in(store) as leases,
        storage_connection(storage) as searches,
    ):
        retry_on_disconnect(_check_holds_no_evaluations)(store, name)
        rungs = retry_on_disconnect(rungs_for)(config, store)  # may depend on stored rows of the task
        study = retry_on_disconnect(open_study)(searches, name, config, sampler)
        traces = store.folder.absolute() / f"{slug(name)}-traces" if trace else None
        plan = retry_on_disconnect(SearchPlan)(
            study,
            store,
            request,
            leases,
            sampler,
            trials,
            counts.reevals,
            rungs,
            save_models,
            resources.threads,
            traces,
        )
        done, logs = retry_on_disconnect(_row_identities)(store, name), _open_logs(store, name, log)
        # Deaths of an evaluation are counted only from outside its process; else coordinators would die one after
        # another.
        separate_process = store.is_shared or plan.resumes or seconds is not None
        try:
            with (
                EvaluationProgress(config.task, list(config.objectives), done, trials) as progress,
                make_pool(resources, trials, isolate=separate_process) as pool,
            ):
                listeners = [progress.add, *logs]
                if not retry_on_disconnect(study.get_trials)(deepcopy=False, states=(TrialState.COMPLETE,)):
                    listeners.append(RepeatedFailures(name))
                Scheduler(
                    store, name, leases, pool, listeners, save_models != "none", deadline, progress.begin, timings
                ).run(plan)
        except OutOfTime:
            if _is_unfinished(plan, trials):
                return
        if len(started_trials(study)) < trials and not retry_on_disconnect(sampler.remaining)(study):
            LOGGER.info("every architecture within the budget has been tried")


def _check_holds_no_evaluations(store: Store, study: str) -> None:
    """Raise UserError if the name belongs to a study of evaluations, which could get no more of them as a search."""
    if study in store.studies() and study not in store.searches():
        message = f"study {study!r} has evaluations and is not a search. Give another --study."
        raise UserError("mismatch", message, option="--study", value=study)


def _open_logs(store: Store, study: str, log: LogFormat | None) -> Sequence[Callable[[Row], None]]:
    """Return the listeners that write curves, after they have written those of the stored Rows."""
    logs = curve_logs(log, store.folder, study)
    with status_if_slow("writing the curves of stored rows ..."):
        for row in retry_on_disconnect(store.read)([study]).rows if logs else ():
            for listener in logs:
                listener(row)
    return logs


def _is_unfinished(plan: SearchPlan, trials: int) -> bool:
    """Return whether a search whose time is up has trials left, and print so."""
    number = len(retry_on_disconnect(_row_identities)(plan.store, plan.study.study_name))
    is_unfinished = number < trials or retry_on_disconnect(plan.has_open_trials)()
    if is_unfinished:
        LOGGER.info(f"--timeout reached after {number} of {trials} trials; run the same command to resume")
    return is_unfinished
