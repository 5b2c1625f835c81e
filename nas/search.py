"""The search: ask for an architecture, have it evaluated, keep its Row; one coordinator's loop."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import optuna
from optuna.trial import FrozenTrial, TrialState

from nas import store
from nas.budget import parse_budget
from nas.evaluate import Job, failed, kept_row
from nas.objectives import MEASURED, measures_for
from nas.sampling import BudgetSampler
from nas.store import Settings
from nas.workers import Workers
from results.row import Row
from search_spaces.architecture import Architecture

INTERRUPTED, LOST = "interrupted", "lost"  # attributes of a study and of a trial
MOST_LOSSES = 2


@dataclass
class Coordinator:
    """The one process that talks to a study's store, and the trials it has under way.

    Attributes:
        study: Where trials and Rows are kept.
        settings: What the study is about.
        sampler: What proposes architectures.
        workers: Where evaluations run.
        folder: Where evaluations keep what they need to be taken up again; emptied as they end.
        on_row: Told of each Row once it is stored.
        traces: Where each network's trace is kept, or None where none is made.
    """

    study: optuna.Study
    settings: Settings
    sampler: BudgetSampler
    workers: Workers
    folder: Path
    on_row: Callable[[Row], None]
    traces: Path | None = None
    _running: dict[Architecture, tuple[int, int]] = field(default_factory=dict, init=False)

    def search(self, trials: int) -> None:
        """Evaluate until the study holds `trials` architectures, or its feasible set is exhausted.

        A study that was interrupted, or whose coordinator died, goes on with the trials that were under way: they
        keep their numbers and architectures, so that the study is the one it would have been.
        """
        with _mark_interruption(self.study):
            for left in _under_way(self.study):
                self._take_up(left)
            while True:
                while self._has_room() and self._held() < trials and self.sampler.remaining(self.study):
                    fresh = self.study.ask()
                    self._begin(fresh.number, fresh._trial_id, self.sampler.propose(fresh))
                if not self._running:
                    shutil.rmtree(self.folder, ignore_errors=True)
                    return
                self._end_some()

    def _has_room(self) -> bool:
        return len(self._running) < self.workers.capacity

    def _held(self) -> int:
        return len(self.study.get_trials(deepcopy=False))

    def _take_up(self, left: FrozenTrial) -> None:
        # Of a trial that died while it was proposed, what it had recorded is kept and the rest proposed again.
        architecture = self.sampler.propose(optuna.Trial(self.study, left._trial_id))
        job = self._job(architecture)
        if left.user_attrs.get(LOST, 0) > MOST_LOSSES and kept_row(job) is None:
            reason = f"its process died {MOST_LOSSES + 1} times, most likely for lack of memory"
            self._record(left.number, left._trial_id, failed(job, reason))
            return
        while not self._has_room():
            self._end_some()
        self._begin(left.number, left._trial_id, architecture)

    def _begin(self, number: int, trial_id: int, architecture: Architecture) -> None:
        self._running[architecture] = (number, trial_id)
        self.workers.submit(self._job(architecture))

    def _end_some(self) -> None:
        for job, row in self.workers.collect():
            self._record(*self._running.pop(job.architecture), row)

    def _record(self, number: int, trial_id: int, row: Row) -> None:
        store.tell(self.study, number, trial_id, row)
        shutil.rmtree(self._folder_of(row.architecture), ignore_errors=True)
        self.on_row(row)

    def _job(self, architecture: Architecture) -> Job:
        return Job(
            task=self.settings.task,
            architecture=architecture,
            preset=self.settings.preset,
            seed=self.settings.seed,
            data=self.settings.data,
            space=self.settings.space,
            folder=str(self._folder_of(architecture)),
            limits=str(parse_budget([self.settings.budget]).measured),
            profiled=any(name in MEASURED for name in self.settings.objectives),
            trace=str(self.traces / architecture.key) if self.traces else None,
            measures=measures_for(self.settings.objectives),
        )

    def _folder_of(self, architecture: Architecture) -> Path:
        return self.folder / architecture.key


def _under_way(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that an earlier coordinator left: those with a Row are concluded, the others are returned."""
    clean = study.user_attrs.get(INTERRUPTED, False)
    left = []
    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        row = store.row_of(trial)
        if row is not None:
            store.conclude(study, trial.number, row)
            continue
        if not clean:
            trial.user_attrs[LOST] = trial.user_attrs.get(LOST, 0) + 1
            study._storage.set_trial_user_attr(trial._trial_id, LOST, trial.user_attrs[LOST])
        left.append(trial)
    study.set_user_attr(INTERRUPTED, False)
    return left


@contextmanager
def _mark_interruption(study: optuna.Study) -> Iterator[None]:
    """Tell an end that Python saw (Ctrl-C, a UserError) from a death: only that counts against an evaluation."""
    try:
        yield
    except BaseException:
        with suppress(Exception):  # where the store itself is what failed, its own error is the one to show
            study.set_user_attr(INTERRUPTED, True)
        raise
