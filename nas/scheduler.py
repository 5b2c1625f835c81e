"""The loop of all evaluations: what a plan wants next, what is known already, who computes, where Rows go."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

from nas.jobs import EvaluationJob, first_process, identity, lacks_network, task_of
from nas.places import EVALUATIONS
from nas.progress import Progress, said_if_slow
from nas.store import Store, check_name
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
                profiled = job.profiled or job.limits or job.trace
                if job.known is not None and not profiled and not lacks_network(job, job.known):
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


def evaluate_all(
    jobs: Sequence[EvaluationJob], storage: str, study: str | None = None, workers: int | None = None
) -> list[Row]:
    """The Row of every job, in their order, each written to the store as it comes, in the study of that name.

    Raises UserError where the store cannot be used, or the task has no data.
    """
    study = check_name(study or EVALUATIONS)
    store = Store(storage, make=True)
    if study in store.searches():
        raise UserError(f"study {study!r} is a search, whose rows are its own. Give another --study.")
    task = task_of(jobs[0].task, jobs[0].data)
    task.prepare()
    plan = InOrder(jobs)
    with pool_of(workers or min(usual(), len(jobs))) as pool:
        if len(jobs) > 1:
            with Progress(task.name, [task.metrics[0].name], 0, len(jobs)) as progress:
                Scheduler(store, study, pool, progress.add).run(plan)
        else:
            with said_if_slow(f"evaluating {jobs[0].architecture}, preset {jobs[0].preset} ..."):
                Scheduler(store, study, pool, lambda row: None).run(plan)
    return [plan.rows[identity(job)] for job in jobs]
