"""The loop of all evaluations: take a plan's next job, reuse or compute its Row, store it."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, final

from nas.engine.curve_log import curve_logs
from nas.engine.progress import EvaluationProgress
from nas.engine.timings import Timings
from nas.environment.paths import EVALUATIONS
from nas.environment.signals import raise_pending_termination
from nas.evaluation.saved_networks import check_save_folder
from nas.request.job import (
    EvaluationJob,
    check_recipes,
    is_first_process,
    needs_network,
    recipe_of,
    task_of,
    with_identity,
)
from nas.request.text_checks import LogFormat
from nas.store.database import translate_errors
from nas.store.leases import Leases, leases_in
from nas.store.retry import retry_on_disconnect
from nas.store.store import Store
from nas.store.study_names import check_name
from nas.workers.pool import WorkerPool, make_pool
from nas.workers.resources import Resources
from results.records.row import Row
from search_spaces.support.logger import LOGGER
from search_spaces.support.progress import status_if_slow
from tasks.base import Task


class OutOfTime(Exception):
    """The error that the time is up before the plan is done. Rows stay stored, and the same call resumes."""


class Wait(Enum):
    """The answer of a plan without a job now, which may have one while other coordinators run."""

    WAIT = "wait"


WAIT: Final = Wait.WAIT

POLL_S = 2.0
"""Seconds between checks of what other coordinators have done."""


class Plan(ABC):
    """The jobs to evaluate, in order. The store keeps the Rows.

    Both methods must be idempotent: after a lost connection they are called again.
    """

    @abstractmethod
    def next(self) -> EvaluationJob | Wait | None:
        """Return the next job; None if there is none before a running one ends, or none at all."""

    @abstractmethod
    def on_end(self, job: EvaluationJob, row: Row) -> None:
        """Handle the end of an evaluation whose Row is stored."""


@final
class SequentialPlan(Plan):
    """A list of jobs, in order.

    Attributes:
        rows: Identity -> the Row of each finished evaluation.
    """

    def __init__(self, jobs: Sequence[EvaluationJob]) -> None:
        self._waiting = list(reversed(jobs))
        self.rows: dict[str, Row] = {}

    def next(self) -> EvaluationJob | None:
        return self._waiting.pop() if self._waiting else None

    def on_end(self, job: EvaluationJob, row: Row) -> None:
        self.rows[job.identity] = row


@dataclass(frozen=True)
class Scheduler:
    """The loop that evaluates a plan's jobs and writes each Row to the store.

    Attributes:
        store: The store of Rows; an evaluation with a complete Row is not repeated.
        study: The study that Rows are written to.
        leases: This coordinator's leases; an evaluation starts only with its lease.
        workers: The workers that run evaluations.
        listeners: Called with each Row once it is stored.
        keep_networks: Whether to save trained networks beside the store.
        deadline: End of the time limit on the clock of time.monotonic, or None.
        on_begin: Called with each job when its evaluation starts.
        timings: Records the time of each activity.
    """

    store: Store
    study: str
    leases: Leases
    workers: WorkerPool
    listeners: Sequence[Callable[[Row], None]]
    keep_networks: bool = True
    deadline: float | None = None
    on_begin: Callable[[EvaluationJob], None] = lambda job: None
    timings: Timings = field(default_factory=Timings)

    def run(self, plan: Plan) -> None:
        """Run until the plan has no more jobs. A UserError or Ctrl-C ends it; stored Rows stay.

        Raises:
            OutOfTime: The time is up; running evaluations are dropped with the workers.
        """
        running, is_waiting = 0, False
        remote_jobs: list[EvaluationJob] = []  # jobs that another coordinator evaluates: their Rows will come
        while True:
            raise_pending_termination()
            running, plan_waits = self._fill_workers(plan, running, remote_jobs)
            waits = plan_waits or bool(remote_jobs)
            if running:
                free = waits and running < self.workers.capacity
                with self.timings.track("evaluating", self.workers.capacity):
                    completions = self.workers.collect(self._poll_seconds() if free else self._remaining_seconds())
                for job, row in completions:
                    running -= 1
                    self.timings.add(row)
                    self._end(plan, job, row)
            elif waits:
                if not is_waiting:
                    LOGGER.info("waiting for other coordinators to evaluate the remaining trials")
                    is_waiting = True
                with self.timings.track("waiting for others"):
                    time.sleep(self._poll_seconds())
            elif self._remaining_seconds() != 0:
                return
            if self._remaining_seconds() == 0:
                raise OutOfTime

    def _fill_workers(self, plan: Plan, running: int, remote_jobs: list[EvaluationJob]) -> tuple[int, bool]:
        """Submit jobs while workers are free; return how many evaluations run, and whether the plan answered WAIT."""
        for job in tuple(remote_jobs):
            if running < self.workers.capacity and (ready := self._acquire(job)) is not None:
                remote_jobs.remove(job)
                running += self._begin(plan, ready)
        while (
            running < self.workers.capacity
            and len(remote_jobs) < self.workers.capacity
            and self._remaining_seconds() != 0
        ):
            with self.timings.track("proposing"):
                proposal = retry_on_disconnect(plan.next)()
            if proposal is None or proposal is WAIT:
                return running, proposal is WAIT
            if (ready := self._acquire(proposal)) is None:
                remote_jobs.append(proposal)
            else:
                running += self._begin(plan, ready)
        return running, False

    def _begin(self, plan: Plan, job: EvaluationJob) -> int:
        """Submit a job unless its Row is stored; return the number of evaluations submitted, 0 or 1."""
        measures = job.profiled or job.trace
        if job.earlier_row is None or measures or needs_network(job, job.earlier_row):
            self.on_begin(job)
            self.workers.submit(job)
            return 1
        self._end(plan, job, job.earlier_row)
        return 0

    def _remaining_seconds(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def _poll_seconds(self) -> float:
        return POLL_S if self.deadline is None else min(POLL_S, max(0.0, self.deadline - time.monotonic()))

    @retry_on_disconnect
    def _acquire(self, job: EvaluationJob) -> EvaluationJob | None:
        """Return the job with its stored Row and its folders; None while another coordinator has its lease.

        The store is read after the lease is acquired: from then on no other coordinator can add a Row of this job.
        """
        if not self.leases.acquire(_lease_name(job.identity)):
            return None
        entry = self.store.find_complete(job.identity)
        network_folder = self.store.network(job.identity).absolute()  # absolute, for other processes
        return replace(
            job,
            store=self.store.url,
            earlier_row=None if entry is None else replace(entry[1], space=job.space, preset=job.preset),
            folder=str(self.store.work_folder(job.identity).absolute()),
            network_folder=str(network_folder) if self.keep_networks or network_folder.exists() else None,
        )

    def _end(self, plan: Plan, job: EvaluationJob, row: Row) -> None:
        with self.timings.track("storing"):
            row = self._store_row(plan, job, row)
            for listener in self.listeners:
                listener(row)

    @retry_on_disconnect
    def _store_row(self, plan: Plan, job: EvaluationJob, row: Row) -> Row:
        """Store the Row that counts, pass it to the plan and return it."""
        entry = self.store.find_complete(job.identity) if row.status == "failed" else None
        if entry is not None:  # another coordinator's
            row = replace(entry[1], space=job.space, preset=job.preset)
        is_new = job.number is not None or self.store.find_complete(job.identity) != (self.study, row)
        if is_new and is_first_process():
            row = self.store.add(row, self.study, job.number)
        if is_first_process():
            self.store.remove_work_folder(row)
        plan.on_end(job, row)
        self.leases.release(_lease_name(job.identity))
        return row


def _lease_name(identity: str) -> str:
    """Return the name of an evaluation's lease."""
    return f"evaluation {identity}"


def evaluate_all(
    jobs: Sequence[EvaluationJob],
    storage: str,
    study: str | None,
    resources: Resources,
    log: LogFormat | None = None,
) -> list[Row]:
    """Evaluate jobs and return their Rows in order; each is written to the study when it is done.

    With `log` their curves are written too. Without jobs the store is not opened. Raises UserError for an unusable
    store, a task without data, or a folder with another network.
    """
    if not jobs:
        return []
    with evaluation_store(storage, study) as (store, name):
        task = task_of(jobs[0].task, jobs[0].data)
        prepare(task)
        overrides = dict.fromkeys((job.preset, job.settings) for job in jobs)
        check_recipes(task, [recipe_of(task, preset, settings) for preset, settings in overrides])
        jobs = [with_identity(job) for job in jobs]
        for job in jobs:
            check_save_folder(job)
        plan, logs = SequentialPlan(jobs), curve_logs(log, store.folder, name)
        with (
            translate_errors(store.url),
            leases_in(store) as leases,
            make_pool(resources, len(jobs)) as pool,
            EvaluationProgress(f"{task.name}, preset {jobs[0].preset}", _scores(jobs, task), (), len(jobs)) as progress,
        ):
            listeners = [progress.add, *logs]
            Scheduler(store, name, leases, pool, listeners, on_begin=progress.begin).run(plan)
        return [plan.rows[job.identity] for job in jobs]


@contextmanager
def evaluation_store(storage: str, study: str | None) -> Iterator[tuple[Store, str]]:
    """Open the store and name the study of evaluations. Raises UserError if the name belongs to a search."""
    name = check_name(study or EVALUATIONS)
    with closing(Store(storage, make=True)) as store:
        store.check_no_search(name)
        yield store, name


def prepare(task: Task) -> None:
    """Prepare a task's data, with a status line if that is slow. Raises UserError."""
    with status_if_slow(f"preparing the data of {task.name} ..."):
        task.prepare()


def _scores(jobs: Sequence[EvaluationJob], task: Task) -> list[str] | None:
    """Return the columns that are printed of each Row; None for a single job, whose Row its caller prints."""
    if len(jobs) == 1:
        return None
    overrides = {name for job in jobs for name, _ in {*job.settings} ^ {*jobs[0].settings}}
    metrics = task.metrics_for(recipe_of(task, jobs[0].preset, jobs[0].settings))
    return [*(f"recipe_{name}" for name in sorted(overrides)), metrics[0].name]
