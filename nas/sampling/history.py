"""What a study has tried so far, as arrays.

Shapes: T = trials that stand at a feasible candidate, K = objectives.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from nas.sampling.axes import Array, Coordinates, Indices
from nas.storage.optuna_study import same_study, trials_of


@dataclass(frozen=True)
class Tried:
    """The candidates of trials in any state, in the order of trials.

    Attributes:
        indices: Which candidate: [T].
        values: The values it got, turned so that less is better; NaN where it has none: [T, K].
        running: Whether values are still to come: [T].
    """

    indices: Indices
    values: Array
    running: NDArray[np.bool_]

    def __add__(self, later: "Tried") -> "Tried":
        return Tried(
            np.concatenate([self.indices, later.indices]),
            np.concatenate([self.values, later.values]),
            np.concatenate([self.running, later.running]),
        )

    def untried(self, members: int) -> Indices:
        """The indices of all other candidates."""
        mask = np.ones(members, dtype=bool)
        mask[self.indices] = False
        return np.flatnonzero(mask)


class History:
    """Reads the trials of one study; those before the first unfinished one are read once and kept."""

    def __init__(self, study: optuna.Study, coordinates: Coordinates) -> None:
        self._study = study
        self._coordinates = coordinates
        self._signs = np.array(
            [-1.0 if direction == StudyDirection.MAXIMIZE else 1.0 for direction in study.directions]
        )
        self._read_once, self._finished = self._read([]), 0

    def belongs_to(self, study: optuna.Study) -> bool:
        """Whether this is the history of that study."""
        return same_study(study, self._study)

    def tried(self, without: int | None = None) -> Tried:
        """Everything tried by now, but for one trial's number.

        A trial stands for the parameters it has recorded or, while it waits, was enqueued with.
        """
        trials = trials_of(self._study)
        end = self._finished
        while end < len(trials) and trials[end].state.is_finished():
            end += 1
        self._read_once += self._read(trials[self._finished : end])
        self._finished = end
        return self._read_once + self._read([trial for trial in trials[end:] if trial.number != without])

    def _read(self, trials: Sequence[FrozenTrial]) -> Tried:
        placed = [(self._coordinates.index(params_of(trial)), trial) for trial in trials]
        known = [(index, trial) for index, trial in placed if index is not None]
        missing = [np.nan] * len(self._signs)
        values = [trial.values if trial.state == TrialState.COMPLETE else missing for _, trial in known]
        return Tried(
            np.array([index for index, _ in known], dtype=np.intp),
            np.array(values, dtype=float).reshape(-1, len(self._signs)) * self._signs,
            np.array([not trial.state.is_finished() for _, trial in known], dtype=bool),
        )


def params_of(trial: FrozenTrial) -> dict[str, int | float | str | bool]:
    """What a trial has recorded or, where it has not, was enqueued with."""
    return {**trial.system_attrs.get("fixed_params", {}), **trial.params}
