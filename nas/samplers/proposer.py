"""The contract of proposers, which choose the next candidate."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from nas.samplers.encoding import Coordinates
from nas.samplers.history import TrialTable
from results.stats.gaussian_process import Array, Indices
from search_spaces.architecture.architecture import Architecture

Costs = Callable[[Architecture], Sequence[float]]
"""An architecture -> its objectives as counting tells them, less being better; NaN for all where it does not."""


@dataclass(frozen=True)
class SearchState:
    """The state of a search: all that a proposal may depend on.

    Attributes:
        coordinates: The feasible candidates; of a space that cannot be listed, those tried and some that may be next.
        trials: The trials so far, as arrays.
        new: The candidates that no trial has.
        repeatable: The candidates that may get another seed.
        costs: What counting tells of architectures' objectives: see `BudgetSampler`.
        seed: Drawn from the search's seed and the trial's number.
        study: The study that asks.
        trial: The trial that is to be.
    """

    coordinates: Coordinates
    trials: TrialTable
    new: Indices
    repeatable: Indices
    costs: Costs
    seed: int
    study: optuna.Study
    trial: FrozenTrial

    @property
    def random_members(self) -> Indices:
        """The new candidates that are a uniform sample of all: all of them in an enumerated space."""
        members = self.coordinates.random_members(self.new)
        return members if len(members) else self.new

    def cost_matrix(self, indices: Indices) -> Array:
        """Candidates' objectives as counting tells them, NaN where only training does: [C, K]."""
        return cost_matrix(self.coordinates, self.costs, indices).reshape(len(indices), self.trials.values.shape[1])


def cost_matrix(coordinates: Coordinates, costs: Costs, indices: Indices) -> Array:
    """Candidates' objectives as counting tells them: [C, K]."""
    return np.array([costs(coordinates.candidates[index].architecture) for index in indices], dtype=float)


class Proposer(ABC):
    """A way of searching. It keeps nothing between proposals."""

    @abstractmethod
    def propose(self, state: SearchState) -> int:
        """Choose one of the untried candidates, or one for another seed, by its index."""
