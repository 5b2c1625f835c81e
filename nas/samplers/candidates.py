"""The feasible candidates of a sampler, and a study's trials of them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import final

import numpy as np
import optuna

from nas.budget.bounds import Feasible
from nas.samplers.encoding import CandidateEncoding
from nas.samplers.history import History, TrialTable
from search_spaces.spaces.space import Candidate
from search_spaces.support.spec import Scalar


class Candidates(ABC):
    """The feasible candidates of a space."""

    @abstractmethod
    def candidate(self, params: Mapping[str, Scalar]) -> Candidate | None:
        """Return the candidate of a trial's parameters; None if they are incomplete or outside the budget."""

    @abstractmethod
    def remaining(self, study: optuna.Study) -> int:
        """Return the number of candidates without a trial."""

    @abstractmethod
    def trial_table(self, study: optuna.Study) -> TrialTable:
        """Return the study's trials. Indices identify candidates, but may differ from those of `proposal_pool`."""

    @abstractmethod
    def proposal_pool(self, study: optuna.Study, number: int, seed: int) -> tuple[CandidateEncoding, TrialTable]:
        """Return the candidates that a trial with that number may get, and the table of the other trials."""

    @abstractmethod
    def first_index(self, coordinates: CandidateEncoding, seed: int) -> int:
        """Return the index of the first candidate to try."""


@final
class EnumeratedCandidates(Candidates):
    """All candidates of an enumerated space. Finished trials of a study are read once."""

    def __init__(self, feasible: Feasible) -> None:
        self._feasible = feasible
        self._coordinates = CandidateEncoding.of(feasible)
        self._history: History | None = None
        self._first_index: int | None = None

    def candidate(self, params: Mapping[str, Scalar]) -> Candidate | None:
        index = self._coordinates.index(params)
        return None if index is None else self._feasible.candidates[index]

    def remaining(self, study: optuna.Study) -> int:
        return len(self.trial_table(study).new_candidates(len(self._coordinates)))

    def proposal_pool(self, study: optuna.Study, number: int, seed: int) -> tuple[CandidateEncoding, TrialTable]:
        """Return all candidates."""
        return self._coordinates, self.trial_table(study, without=number)

    def first_index(self, coordinates: CandidateEncoding, seed: int) -> int:
        """Return the index of the space's first candidate, or of the feasible one nearest to it."""
        if self._first_index is None:
            space = self._feasible.space
            first = coordinates.encode(space.members[space.first])
            self._first_index = coordinates.nearest(first, np.arange(len(coordinates)), np.random.default_rng(seed))
        return self._first_index

    def trial_table(self, study: optuna.Study, without: int | None = None) -> TrialTable:
        """Return the study's trials, except the one with the number `without`."""
        if self._history is None or not self._history.belongs_to(study):
            self._history = History(study, self._coordinates)
        return self._history.trial_table(without)
