"""What chooses the next candidate: the contract between the sampler and its ways of searching."""

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
    """All that a proposal may depend on.

    Attributes:
        coordinates: The feasible candidates; of a space that cannot be listed, those tried and some that may be next.
        tried: What was tried.
        untried: The candidates that are new.
        again: Those that may be chosen for another seed.
        costs: What counting tells of architectures' objectives: see `BudgetSampler`.
        seed: Drawn from the search's seed and the trial's number.
        study: The study that asks.
        trial: The trial that is to be.
    """

    coordinates: Coordinates
    tried: TrialTable
    untried: Indices
    again: Indices
    costs: Costs
    seed: int
    study: optuna.Study
    trial: FrozenTrial

    @property
    def drawn(self) -> Indices:
        """The untried candidates that are here with the same chance as any other: all of them in a listed space."""
        drawn = self.coordinates.drawn(self.untried)
        return drawn if len(drawn) else self.untried

    def known(self, indices: Indices) -> Array:
        """What is known of candidates' objectives without training: NaN where it is not, [C, K]."""
        return known(self.coordinates, self.costs, indices).reshape(len(indices), self.tried.values.shape[1])


def known(coordinates: Coordinates, costs: Costs, indices: Indices) -> Array:
    """What counting tells of candidates' objectives: [C, K]."""
    return np.array([costs(coordinates.candidates[index].architecture) for index in indices], dtype=float)


class Proposer(ABC):
    """A way of searching. It keeps nothing between proposals."""

    @abstractmethod
    def propose(self, situation: SearchState) -> int:
        """Choose one of the untried candidates, or one for another seed, by its index."""
