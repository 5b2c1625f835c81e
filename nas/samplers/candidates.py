"""The feasible candidates that a sampler proposes from, and a study's trials of them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import final

import numpy as np
import optuna

from nas.budget.bounds import Feasible
from nas.samplers.encoding import Coordinates
from nas.samplers.history import History, TrialTable
from search_spaces.spaces.space import Candidate
from search_spaces.support.spec import Scalar


class Candidates(ABC):
    """The feasible candidates of a space."""

    @abstractmethod
    def candidate(self, params: Mapping[str, Scalar]) -> Candidate | None:
        """The candidate of a trial's parameters; None where they are incomplete or outside."""

    @abstractmethod
    def remaining(self, study: optuna.Study) -> int:
        """Number of candidates without a trial."""

    @abstractmethod
    def trial_table(self, study: optuna.Study) -> TrialTable:
        """The study's trials; indices tell candidates apart, and need not be those of `around`."""

    @abstractmethod
    def around(self, study: optuna.Study, number: int, seed: int) -> tuple[Coordinates, TrialTable]:
        """The candidates that a trial with that number may be given one of, and which of them other trials have."""

    @abstractmethod
    def start(self, coordinates: Coordinates, seed: int) -> int:
        """The index of what is tried first."""


@final
class EnumeratedCandidates(Candidates):
    """All candidates of an enumerated space. Reads a study's trials once."""

    def __init__(self, feasible: Feasible) -> None:
        self._feasible = feasible
        self._coordinates = Coordinates.of(feasible)
        self._history: History | None = None
        self._start: int | None = None

    def candidate(self, params: Mapping[str, Scalar]) -> Candidate | None:
        """The candidate at this point; None where it is not in the list."""
        index = self._coordinates.index(params)
        return None if index is None else self._feasible.candidates[index]

    def remaining(self, study: optuna.Study) -> int:
        """The number of candidates without a trial."""
        return len(self.trial_table(study).new_candidates(len(self._coordinates)))

    def around(self, study: optuna.Study, number: int, seed: int) -> tuple[Coordinates, TrialTable]:
        """All of them."""
        return self._coordinates, self.trial_table(study, without=number)

    def start(self, coordinates: Coordinates, seed: int) -> int:
        """The first of the space, or the feasible candidate nearest to it."""
        if self._start is None:
            space = self._feasible.space
            first = coordinates.place(space.members[space.first])
            self._start = coordinates.nearest(first, np.arange(len(coordinates)), np.random.default_rng(seed))
        return self._start

    def trial_table(self, study: optuna.Study, without: int | None = None) -> TrialTable:
        """The study's trials, but for the one with the number `without`."""
        if self._history is None or not self._history.belongs_to(study):
            self._history = History(study, self._coordinates)
        return self._history.trial_table(without)
