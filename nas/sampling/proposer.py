"""What chooses the next candidate: the contract between the sampler and its ways of searching."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import optuna
from optuna.trial import FrozenTrial

from nas.sampling.axes import Coordinates, Indices
from nas.sampling.history import Tried


@dataclass(frozen=True)
class Situation:
    """All that a proposal may depend on.

    Attributes:
        coordinates: The feasible candidates; of a space that cannot be listed, those tried and some that may be next.
        tried: What was tried.
        untried: The indices to choose from, at least one.
        seed: Drawn from the search's seed and the trial's number.
        study: The study that asks.
        trial: The trial that is to be.
    """

    coordinates: Coordinates
    tried: Tried
    untried: Indices
    seed: int
    study: optuna.Study
    trial: FrozenTrial

    @property
    def drawn(self) -> Indices:
        """The untried candidates that are here with the same chance as any other: all of them in a listed space."""
        drawn = self.coordinates.drawn(self.untried)
        return drawn if len(drawn) else self.untried


class Proposer(ABC):
    """A way of searching. It keeps nothing between proposals."""

    @abstractmethod
    def propose(self, situation: Situation) -> int:
        """Choose one of the untried candidates, by its index."""
