"""The contract of proposers, which choose the next candidate."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from nas.samplers.encoding import CandidateEncoding
from nas.samplers.history import TrialTable
from results.stats.gaussian_process import Array, Indices
from search_spaces.architecture.architecture import Architecture

CountedObjectives = Callable[[Architecture], Sequence[float]]
"""Maps an architecture to its counted objectives, less being better; NaN for trained ones."""


@dataclass(frozen=True)
class SearchState:
    """The state of a search: all that a proposal may depend on.

    Attributes:
        coordinates: The feasible candidates; in a space that cannot be enumerated, the tried ones and a pool.
        trials: The trials so far, as arrays.
        new: The candidates without a trial.
        repeatable: The candidates that may get another seed.
        costs: Counted objectives of architectures: see `BudgetSampler`.
        seed: Derived from the search's seed and the trial's number.
        study: The study.
        trial: The new trial.
    """

    coordinates: CandidateEncoding
    trials: TrialTable
    new: Indices
    repeatable: Indices
    costs: CountedObjectives
    seed: int
    study: optuna.Study
    trial: FrozenTrial

    @property
    def random_members(self) -> Indices:
        """The new candidates that are a uniform sample of all; all of them in an enumerated space."""
        members = self.coordinates.random_members(self.new)
        return members if len(members) else self.new

    def cost_matrix(self, indices: Indices) -> Array:
        """Return candidates' counted objectives, NaN for trained ones: [C, K]."""
        return cost_matrix(self.coordinates, self.costs, indices).reshape(len(indices), self.trials.values.shape[1])


def cost_matrix(coordinates: CandidateEncoding, costs: CountedObjectives, indices: Indices) -> Array:
    """Return candidates' counted objectives: [C, K]."""
    return np.array([costs(coordinates.candidates[index].architecture) for index in indices], dtype=float)


class Proposer(ABC):
    """A search strategy without state between proposals."""

    @abstractmethod
    def propose(self, state: SearchState) -> int:
        """Return the index of an untried candidate, or of one that gets another seed."""
