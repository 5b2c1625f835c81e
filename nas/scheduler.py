"""The loop of all evaluations: what a plan wants next, what is known already, who computes, where Rows go."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

from nas.jobs import EvaluationJob, first_process, identity, task_of
from nas.objectives import MEASURES
from nas.progress import Progress
from nas.store import Store, check_name
from nas.waiting import said_if_slow
from nas.workers import Workers, pool_of, usual
from results.row import Row
from search_spaces.errors import UserError


class Plan(ABC):
    """What is to be evaluated, in which order. It keeps no Rows: the store does."""

    @abstractmethod
    def next(self) -> EvaluationJob | None:
        """The next evaluation to begin; None where there is none before another one has ended, or none any more."""

    @abstractmethod
    def ended(self, job: EvaluationJob, row: Row) -> None:
        """Told of each evaluation that has ended, once its Row is stored."""


@final
class InOrder(Plan):
    """Some evaluations, one after the other.

    Attributes:
        rows: Identity -> the Row of each evaluation that has ended.
    """

    def __init__(self, jobs: Sequence[EvaluationJob]) -> None:
        self._waiting = list(reversed(jobs))
        self.rows: dict[str, Row] = {}

    def next(self) -> EvaluationJob | None:
        """The next one in the order that they were given in."""
        return self._waiting.pop() if self._waiting else None

    def ended(self, job: EvaluationJob, row: Row) -> None:
        """Keep the Row."""
        self.rows[job.identity] = row


@dataclass(frozen=True)
class Scheduler:
    """Evaluates what a plan wants and writes each Row to the store as it comes.

    Attributes:
        store: Where Rows go; an evaluation that it holds complete is not done again.
        study: The name that they are written under.
        workers: Where evaluations run.
        on_row: Told of each Row once it is stored.
        keep: Whether trained networks are kept, beside the store.
    """

    store: Store
    study: str
    workers: Workers
    on_row: Callable[[Row], None]
    keep: bool = True

    def run(self, plan: Plan) -> None:
        """Go on until the plan wants nothing more. A UserError or Ctrl-C ends it; what is stored stays."""
        running = 0
        while True:
            while running < self.workers.capacity and (wanted := plan.next()) is not None:
                job = self._placed(wanted)
                if job.known is not None and is_answered(job, job.known):
                    self._end(plan, job, job.known)
                else:
                    self.workers.submit(job)
                    running += 1
            if not running:
                return
            for job, row in self.workers.collect():
                running -= 1
                self._end(plan, job, row)

    def _placed(self, job: EvaluationJob) -> EvaluationJob:
        """The job with what is known of it, and with the folders that are its own."""
        name = identity(job)
        found = self.store.known(name)
        network = self.store.network(name)
        return replace(
            job,
            identity=name,
            store=self.store.url,
            known=None if found is None else replace(found[1], space=job.space, preset=job.preset),
            folder=str(self.store.unfinished(name)),
            network=str(network) if self.keep or network.exists() else None,
        )

    def _end(self, plan: Plan, job: EvaluationJob, row: Row) -> None:
        fresh = job.number is not None or self.store.known(job.identity) != (self.study, row)
        if fresh and first_process():
            self.store.add(row, self.study, job.number)
        plan.ended(job, row)
        if row.status in ("complete", "over-budget") and first_process():  # another may go on from its checkpoint
            shutil.rmtree(self.store.unfinished(job.identity), ignore_errors=True)
        self.on_row(row)


def is_answered(job: EvaluationJob, known: Row) -> bool:
    """Whether a Row holds all that a job is to find out."""
    profiled = job.profiled or job.limits or job.trace
    measured = all(set(MEASURES[measure]) <= set(known.measures) for measure in job.measures)
    return measured and not profiled and job.render is None and job.save is None


def evaluate_all(
    jobs: Sequence[EvaluationJob], storage: str, study: str, workers: int | None, *, quiet: bool = False
) -> list[Row]:
    """The Row of every job, in their order, each written to the store as it comes.

    `quiet` shows no progress. Raises UserError where the store cannot be used, or a task has no data.
    """
    store = Store(storage, make=True)
    if check_name(study) in store.searches():
        raise UserError(f"study {study!r} is a search, whose rows are its own. Give another --study.")
    task_of(jobs[0].task, jobs[0].data).prepare()
    plan = InOrder(jobs)
    shown = said_if_slow(f"evaluating {jobs[0].architecture}, preset {jobs[0].preset} ...")
    with pool_of(workers or min(usual(), len(jobs))) as pool:
        if quiet:
            with shown:
                Scheduler(store, study, pool, lambda row: None).run(plan)
        else:
            first = task_of(jobs[0].task, jobs[0].data).metrics[0].name
            with Progress(jobs[0].task, [first], 0, len(jobs)) as progress:
                Scheduler(store, study, pool, progress.add).run(plan)
    return [plan.rows[identity(job)] for job in jobs]
