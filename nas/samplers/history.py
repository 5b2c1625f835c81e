"""A study's trials so far, as arrays.

Shapes: T = trials of feasible candidates, N = candidates with values, K = objectives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from nas.samplers.encoding import CandidateEncoding
from nas.samplers.rungs import MAX_RUNGS
from nas.store.optuna_study import ERRORS, root_trial_number, rung_values_of, same_study, trials_of
from results.stats.gaussian_process import Array, Indices
from results.stats.pareto import non_dominated

WIDE = 3.0
"""An objective that spans more than this factor is modeled by its logarithm."""


@dataclass(frozen=True)
class TrialTable:
    """The trials of feasible candidates in any state, in order; a continued training appears once, as its last trial.

    Attributes:
        indices: Index of the candidate: [T].
        values: Its objectives, with signs such that less is better; NaN without values: [T, K].
        errors: Their standard errors; NaN without any: [T, K].
        running: Whether a trial is unfinished: [T].
        root_numbers: Number of the trial that started the training: [T].
        rung_values: Objectives at the rungs; NaN for rungs not reached: [T, MAX_RUNGS, K].
    """

    indices: Indices
    values: Array
    errors: Array
    running: NDArray[np.bool_]
    root_numbers: Indices
    rung_values: Array

    def __add__(self, later: "TrialTable") -> "TrialTable":
        pairs = ((getattr(self, field.name), getattr(later, field.name)) for field in fields(TrialTable))
        return TrialTable(*map(np.concatenate, pairs))

    @cached_property
    def has_values(self) -> NDArray[np.bool_]:
        """Whether a trial has its values: [T]."""
        return np.asarray(np.isfinite(self.values).all(axis=1))

    @cached_property
    def is_paused(self) -> NDArray[np.bool_]:
        """Whether a trial's training is paused at a rung: [T]."""
        return np.asarray(np.isfinite(self.rung_values[:, 0, 0]) & ~self.has_values & ~self.running)

    @cached_property
    def has_failed(self) -> NDArray[np.bool_]:
        """Whether a trial has ended and will never have values: [T]."""
        return np.asarray(~self.has_values & ~self.running & ~self.is_paused)

    def latest(self) -> "TrialTable":
        """Return the last trial of each training."""
        _, from_the_end = np.unique(self.root_numbers[::-1], return_index=True)
        if len(from_the_end) == len(self.root_numbers):
            return self
        last = np.sort(len(self.root_numbers) - 1 - from_the_end)
        return TrialTable(*(getattr(self, field.name)[last] for field in fields(TrialTable)))

    @property
    def repeatable(self) -> Indices:
        """The candidates with values and without a running trial."""
        return np.setdiff1d(self.indices[self.has_values], self.indices[self.running])

    def new_candidates(self, members: int) -> Indices:
        """Return the indices of the candidates without a trial, out of `members`."""
        mask = np.ones(members, dtype=bool)
        mask[self.indices] = False
        return np.flatnonzero(mask)


@dataclass(frozen=True)
class CandidateMeans:
    """The candidates with values, each once, averaged over its seeds.

    Attributes:
        indices: Index of the candidate: [N].
        values: Means over seeds; less is better: [N, K].
        seeds: Number of seeds of a mean: [N].
        errors: The standard error of one seed's value; NaN unless known for all seeds: [N, K].
        squared_deviations: Sum of squared deviations of the seeds' values from their mean: [N, K].
    """

    indices: Indices
    values: Array
    seeds: Array
    errors: Array
    squared_deviations: Array

    def at(self, rows: Indices) -> "CandidateMeans":
        """Return the rows of some candidates."""
        return CandidateMeans(*(getattr(self, field.name)[rows] for field in fields(CandidateMeans)))

    def at_most(self, number: int, random: np.random.Generator) -> "CandidateMeans":
        """Return at most `number` candidates: see `subsample`."""
        return self.at(subsample(self.values, number, random))


def subsample(values: Array, number: int, random: np.random.Generator) -> Indices:
    """Return indices of at most `number` rows, up to half from the front, others at random: [N, K] -> [number]."""
    if len(values) <= number:
        return np.arange(len(values))
    front = random.permutation(np.flatnonzero(non_dominated(values)))[: number // 2]
    rest = random.permutation(np.setdiff1d(np.arange(len(values)), front))
    return np.asarray(np.concatenate([front, rest])[:number], dtype=np.intp)


def candidate_means(trials: TrialTable) -> CandidateMeans:
    """Return each candidate's means over its trials.

    A positive objective that spans more than a factor of WIDE is replaced by its logarithm: its errors multiply.
    """
    values, errors = trials.values[trials.has_values], trials.errors[trials.has_values]
    if len(values):
        wide = (values.min(axis=0) > 0) & (values.max(axis=0) > WIDE * values.min(axis=0))
        errors = np.where(wide, errors / np.where(wide, values, 1.0), errors)
        values = np.where(wide, np.log(np.where(wide, values, 1.0)), values)
    indices, candidate_of, seeds = np.unique(trials.indices[trials.has_values], return_inverse=True, return_counts=True)

    def mean(columns: Array) -> Array:
        sums = np.zeros((len(indices), columns.shape[1]))
        np.add.at(sums, candidate_of, columns)
        return np.asarray(sums / seeds[:, None])

    means = mean(values)
    squared_deviations = mean((values - means[candidate_of]) ** 2) * seeds[:, None]
    return CandidateMeans(
        indices.astype(np.intp), means, seeds.astype(float), np.sqrt(mean(errors**2)), squared_deviations
    )


class History:
    """A reader of the trials of one study. Trials before the first unfinished one are read only once."""

    def __init__(self, study: optuna.Study, coordinates: CandidateEncoding) -> None:
        self._study = study
        self._coordinates = coordinates
        self._signs = np.array(
            [-1.0 if direction == StudyDirection.MAXIMIZE else 1.0 for direction in study.directions]
        )
        self._finished_trials, self._finished_count = self._read([]), 0

    def belongs_to(self, study: optuna.Study) -> bool:
        """Return whether this is the history of that study."""
        return same_study(study, self._study)

    def trial_table(self, without: int | None = None) -> TrialTable:
        """Return all trials so far, except the one with the number `without`.

        A trial's candidate has its recorded parameters or, while it waits, those it was enqueued with.
        """
        trials = trials_of(self._study)
        end = self._finished_count
        while end < len(trials) and trials[end].state.is_finished():
            end += 1
        self._finished_trials += self._read(trials[self._finished_count : end])
        self._finished_count = end
        others = [trial for trial in trials[end:] if trial.number != without]
        return (self._finished_trials + self._read(others)).latest()

    def _read(self, trials: Sequence[FrozenTrial]) -> TrialTable:
        pairs = [(self._coordinates.index(params_of(trial)), trial) for trial in trials]
        members = [(index, trial) for index, trial in pairs if index is not None]
        width = len(self._signs)
        missing = [np.nan] * width
        values = [trial.values if trial.state == TrialState.COMPLETE else missing for _, trial in members]
        return TrialTable(
            np.array([index for index, _ in members], dtype=np.intp),
            np.array(values, dtype=float).reshape(-1, width) * self._signs,
            np.array([trial.user_attrs.get(ERRORS, missing) for _, trial in members], dtype=float).reshape(-1, width),
            np.array([not trial.state.is_finished() for _, trial in members], dtype=bool),
            np.array([root_trial_number(trial) for _, trial in members], dtype=np.intp),
            self._rung_values([trial for _, trial in members]),
        )

    def _rung_values(self, trials: Sequence[FrozenTrial]) -> Array:
        rung_values = np.full((len(trials), MAX_RUNGS, len(self._signs)), np.nan)
        for values_of_trial, trial in zip(rung_values, trials, strict=True):
            for rung, values in enumerate(rung_values_of(trial)):
                values_of_trial[rung] = values
        return np.asarray(rung_values * self._signs)


def params_of(trial: FrozenTrial) -> dict[str, int | float | str | bool]:
    """Return the parameters that a trial records, or else was enqueued with."""
    return {**trial.system_attrs.get("fixed_params", {}), **trial.params}
