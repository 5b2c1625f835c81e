"""Rungs: the steps at which early stopping pauses trainings.

A paused training has a Row and a checkpoint. If it may be on the front (`nas.samplers.promotion`), it is promoted:
another trial continues it.
"""

from dataclasses import asdict, dataclass
from math import ceil

from search_spaces.support.errors import UserError, number_error_kind

MAX_RUNGS = 5
"""Largest number of rungs of a search."""


@dataclass(frozen=True)
class Rungs:
    """The rungs of a search: the steps at which trainings are paused.

    Attributes:
        number: Number of rungs; with 0, nothing is paused.
        min_fraction: Fraction of a training at the first rung.
        reduction_factor: Ratio of the steps of consecutive rungs.

    Raises:
        UserError: The rungs are invalid.
    """

    number: int = 0
    min_fraction: float = 0.05
    reduction_factor: float = 3.0

    def __post_init__(self) -> None:
        kind = number_error_kind(self.number, whole=True)
        if kind == "wrong-type" or not 0 <= self.number <= MAX_RUNGS:
            message = f"--rungs must be a whole number from 0 to {MAX_RUNGS}, got {self.number!r:.40}."
            raise UserError(kind, message, option="--rungs", value=self.number, least=0, most=MAX_RUNGS)
        kind = number_error_kind(self.min_fraction)
        if kind == "wrong-type" or not 0 < self.min_fraction < 1:
            message = f"--min-fraction must be a number above 0 and below 1, got {self.min_fraction!r:.40}."
            raise UserError(kind, message, option="--min-fraction", value=self.min_fraction, above=0, below=1)
        kind = number_error_kind(self.reduction_factor)
        if kind == "wrong-type" or not 1 < self.reduction_factor <= 1000:
            message = f"--reduction-factor must be above 1 and at most 1000, got {self.reduction_factor!r:.40}."
            raise UserError(kind, message, option="--reduction-factor", value=self.reduction_factor, above=1, most=1000)
        if self.number and self._shares()[-1] >= 1:
            share = f"{self._shares()[-1]:.3g}"
            last = f"the last of --rungs {self.number} must be before the end of a training, got {share} of it"
            how = f"--min-fraction {self.min_fraction}, --reduction-factor {self.reduction_factor}"
            message = f"{last} ({how}). Lower one of the three."
            raise UserError("infeasible", message, option="--rungs", value=self.number, share=self._shares()[-1])

    def record(self) -> dict[str, float]:
        """Return the rungs as JSON data; empty without rungs."""
        if not self.number:
            return {}
        # Python's 2 and the command line's 2.0 give the same record, which identifies the study.
        fractions = {"min_fraction": float(self.min_fraction), "reduction_factor": float(self.reduction_factor)}
        return asdict(self) | fractions

    def steps(self, length: int) -> list[int]:
        """Return the steps at which a training of that length is paused."""
        return [ceil(length * share - 1e-9) for share in self._shares()]  # without the epsilon, 100 * 0.1 * 3 gives 31

    def _shares(self) -> list[float]:
        return [self.min_fraction * self.reduction_factor**rung for rung in range(self.number)]


NO_RUNGS = Rungs()
"""No early stopping."""
