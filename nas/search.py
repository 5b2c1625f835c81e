"""The search: ask for an architecture, have it evaluated, keep its Row; one coordinator's loop."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
from optuna.trial import FrozenTrial, TrialState

from nas import store
from nas.evaluate import Job, failed
from nas.sampling import BudgetSampler
from nas.store import Settings
from nas.workers import Workers
from results.row import Row
from search_spaces.architecture import Architecture

INTERRUPTED, LOST = "interrupted", "lost"  # attributes of a study and of a trial
MOST_LOSSES = 2

OnRow = Callable[[Row], None]


def search(
    study: optuna.Study,
    settings: Settings,
    sampler: BudgetSampler,
    trials: int,
    workers: Workers,
    folder: Path,
    on_row: OnRow,
) -> None:
    """Evaluate until the study holds `trials` architectures, or its feasible set is exhausted.

    A study that was interrupted, or whose coordinator died, goes on with the trials that were under way:
    they keep their numbers and architectures, so that the study is the one it would have been. `folder` is where
    evaluations keep what they need to be taken up again; it is emptied as they end.
    """

    def job_of(architecture: Architecture) -> Job:
        return Job(
            task=settings.task,
            architecture=architecture,
            preset=settings.preset,
            seed=settings.seed,
            data=settings.data,
            space=settings.space,
            folder=str(folder / architecture.key),
        )

    def record(job: Job, row: Row) -> None:
        trial_number, trial_id = running.pop(job.architecture)
        store.tell(study, trial_number, trial_id, row)
        shutil.rmtree(str(job.folder), ignore_errors=True)
        on_row(row)

    running: dict[Architecture, tuple[int, int]] = {}
    with _mark_interruption(study):
        for trial in _under_way(study):
            job = job_of(sampler.architecture(trial.params))
            running[job.architecture] = (trial.number, trial._trial_id)
            if trial.user_attrs.get(LOST, 0) >= MOST_LOSSES:
                record(job, failed(job, f"its process died {MOST_LOSSES} times, most likely for lack of memory"))
            else:
                while len(running) > workers.capacity:
                    for ended in workers.collect():
                        record(*ended)
                workers.submit(job)
        while running or sampler.remaining(study):
            while (
                len(running) < workers.capacity
                and len(study.get_trials(deepcopy=False)) < trials
                and sampler.remaining(study)
            ):
                fresh = study.ask()
                job = job_of(sampler.propose(fresh))
                running[job.architecture] = (fresh.number, fresh._trial_id)
                workers.submit(job)
            if not running:
                return
            for ended in workers.collect():
                record(*ended)


def _under_way(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that an earlier coordinator left: those with a Row are concluded, the others are returned."""
    clean = study.user_attrs.get(INTERRUPTED, False)
    left = []
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        row = store.row_of(trial)
        if row is not None:
            store.conclude(study, trial.number, row)
            continue
        if not clean:
            study._storage.set_trial_user_attr(trial._trial_id, LOST, trial.user_attrs.get(LOST, 0) + 1)
        left.append(trial)
    study.set_user_attr(INTERRUPTED, False)
    return left


@contextmanager
def _mark_interruption(study: optuna.Study) -> Iterator[None]:
    """Tell a user's Ctrl-C from a death: only a death counts against the evaluation it happened in."""
    try:
        yield
    except KeyboardInterrupt:
        study.set_user_attr(INTERRUPTED, True)
        raise
