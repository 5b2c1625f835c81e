"""A search as a plan: ask for a candidate, have it evaluated, tell what came out; one coordinator's side of it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, final

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from nas.asking import Asked
from nas.budget import parse_budget
from nas.evaluation import kept_row
from nas.jobs import EvaluationJob, blank_row, identity, task_of
from nas.locks import only_writer
from nas.objectives import PROFILED, measures_for
from nas.optuna_study import clear_storage_errors, conclude, note, open_storage, open_study, taken_up
from nas.places import slug
from nas.progress import Progress, say
from nas.sampling import BudgetSampler
from nas.scheduler import Plan, Scheduler
from nas.search_config import SearchConfig
from nas.store import Store
from nas.workers import pool_of, usual
from results.pareto import non_dominated
from results.row import Row
from search_spaces.space import Candidate

INTERRUPTED, LOST = "interrupted", "lost"  # attributes of a study and of a trial
MOST_LOSSES = 2

Keep = Literal["front", "all", "none"]
"""Which trained networks a search keeps."""


@final
class SearchPlan(Plan):
    """The trials of a study, one after another, until it holds as many as were asked for.

    A study that was interrupted, or whose coordinator died, goes on with the trials that were under way: they keep
    their numbers and candidates, so that the study is the one it would have been.

    Attributes:
        study: Optuna's, with its trials.
        store: Where the Rows are.
        config: What the study is about.
        sampler: What proposes candidates.
        trials: How many the study is to hold.
        keep: Which trained networks stay.
        threads: Of the CPU, for each evaluation.
        traces: Where each network's trace is kept, or None where none is made.
    """

    def __init__(
        self,
        study: optuna.Study,
        store: Store,
        config: SearchConfig,
        sampler: BudgetSampler,
        trials: int,
        keep: Keep = "front",
        threads: int = 1,
        traces: Path | None = None,
    ) -> None:
        self.study, self.store, self.config, self.sampler = study, store, config, sampler
        self.trials, self.keep, self.threads, self.traces = trials, keep, threads, traces
        self._left = list(reversed(_under_way(study, store, config)))
        self._networks: set[str] = set()  # identities of the study's Rows whose networks may still be there
        self._values: dict[str, list[float]] = {}  # of complete rows, turned so that less is better
        for row in store.numbered(study.study_name).values():
            self._take_note(row)

    def next(self) -> EvaluationJob | None:
        """A trial that an earlier coordinator left, or a new one while there is room for more."""
        while self._left:
            left = self._left.pop()
            # Of a trial that died while it was proposed, what it had recorded is kept and the rest proposed again.
            job = self._job(left.number, self.sampler.propose(taken_up(self.study, left)))
            if left.user_attrs.get(LOST, 0) <= MOST_LOSSES or self._is_finished(job):
                return job
            row = blank_row(job, f"its process died {MOST_LOSSES + 1} times")
            self.store.add(row, self.study.study_name, left.number)
            conclude(self.study, left.number, row, self.config.objectives)
        if len(self.study.get_trials(deepcopy=False)) >= self.trials or not self.sampler.remaining(self.study):
            return None
        trial = self.study.ask()
        return self._job(trial.number, self.sampler.propose(trial))

    def ended(self, job: EvaluationJob, row: Row) -> None:
        """Tell Optuna, and let go of the networks that are no longer wanted."""
        assert job.number is not None
        conclude(self.study, job.number, row, self.config.objectives)
        self._take_note(row)
        if self.keep == "front":
            values = np.array(list(self._values.values())).reshape(-1, len(self.config.objectives))
            best = {name for name, stays in zip(self._values, non_dominated(values), strict=True) if stays}
            for name in self._networks - best:
                if self.store.holders(name) <= {self.study.study_name}:  # others may still want it
                    shutil.rmtree(self.store.network(name), ignore_errors=True)
            self._networks &= best

    def _take_note(self, row: Row) -> None:
        columns = row.columns()
        ways = self.config.objectives.items()
        values = [columns.get(name) for name, _ in ways]
        if row.status == "complete" and None not in values:
            signs = [-1.0 if way == "max" else 1.0 for _, way in ways]
            self._values[row.identity()] = (np.array(values, dtype=float) * signs).tolist()
        self._networks.add(row.identity())

    def _is_finished(self, job: EvaluationJob) -> bool:
        folder = self.store.unfinished(identity(job))
        return kept_row(job, folder) is not None

    def _job(self, number: int, candidate: Candidate) -> EvaluationJob:
        config, budget = self.config, parse_budget([self.config.budget])
        return EvaluationJob(
            task=config.task,
            architecture=candidate.architecture,
            preset=config.preset,
            settings=tuple(sorted({**config.settings, **dict(candidate.settings)}.items())),
            seed=config.seed,
            data=config.data,
            space=config.space,
            number=number,
            limits=str(budget.profiled),
            profiled=any(name in PROFILED for name in config.objectives),
            trace=str(self.traces / candidate.key) if self.traces else None,
            measures=measures_for(config.objectives),
            threads=self.threads,
        )


def _under_way(study: optuna.Study, store: Store, config: SearchConfig) -> list[FrozenTrial]:
    """Trials that an earlier coordinator left: those with a Row are concluded, the others are returned."""
    clean = study.user_attrs.get(INTERRUPTED, False)
    running = study.get_trials(states=(TrialState.RUNNING,))
    rows = store.numbered(study.study_name) if running else {}
    left = []
    for trial in running:
        if trial.number in rows:
            conclude(study, trial.number, rows[trial.number], config.objectives)
            continue
        if not clean:
            trial.user_attrs[LOST] = trial.user_attrs.get(LOST, 0) + 1
            note(study, trial, LOST, trial.user_attrs[LOST])
        left.append(trial)
    study.set_user_attr(INTERRUPTED, False)
    return left


@contextmanager
def mark_interruption(study: optuna.Study) -> Iterator[None]:
    """Tell an end that Python saw (Ctrl-C, a UserError) from a death: only that counts against an evaluation."""
    try:
        yield
    except BaseException:
        with suppress(Exception):  # where the store itself is what failed, its own error is the one to show
            study.set_user_attr(INTERRUPTED, True)
        raise


def carry_out(
    asked: Asked,
    name: str,
    storage: str,
    *,
    trials: int,
    workers: int | None,
    threads: int,
    keep: Keep,
    traced: bool,
) -> None:
    """Search until the study holds so many trials, or all candidates have been tried. Raises UserError."""
    config = asked.config
    say(f"study {name}: {asked.line}")
    task_of(config.task, config.data).prepare()
    sampler = BudgetSampler(asked.members, inner=config.sampler, seed=config.seed)
    store = Store(storage, make=True)
    with only_writer(storage, name), clear_storage_errors(storage):
        study = open_study(open_storage(storage), name, config, sampler)
        done = len(store.numbered(name))
        with (
            Progress(config.task, list(config.objectives), done, trials) as progress,
            pool_of(workers or min(usual(), trials)) as pool,
            mark_interruption(study),
        ):
            traces = store.folder / f"{slug(name)}-traces" if traced else None
            plan = SearchPlan(study, store, config, sampler, trials, keep, threads, traces)
            Scheduler(store, name, pool, progress.add, keep != "none").run(plan)
        if not sampler.remaining(study):
            say("every architecture within the budget has been tried")
