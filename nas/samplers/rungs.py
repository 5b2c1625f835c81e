"""Early stopping with several objectives: the steps at which trainings are paused, and their reports there.

A paused training has a Row and a checkpoint. If it may be on the front (`nas.samplers.promotion`), it is promoted: it
goes on as another trial, which continues the first.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from nas.budget.objectives import COSTS
from results.records.row import Direction
from search_spaces.support.errors import UserError, kind_of_number
from tasks.recipes.recipe import Recipe

if TYPE_CHECKING:
    from tasks.base import Task

MAX_RUNGS = 5
"""Most rungs of a search."""


@dataclass(frozen=True)
class Rungs:
    """The steps at which trainings are paused.

    Attributes:
        number: How many rungs there are; with none, nothing is paused.
        min_fraction: The share of a training before the first.
        reduction_factor: How much further each lies than the one before it.

    Raises:
        UserError: There cannot be such rungs.
    """

    number: int = 0
    min_fraction: float = 0.05
    reduction_factor: float = 3.0

    def __post_init__(self) -> None:
        kind = kind_of_number(self.number, whole=True)
        if kind == "wrong-type" or not 0 <= self.number <= MAX_RUNGS:
            message = f"--rungs must be a whole number from 0 to {MAX_RUNGS}, got {self.number!r:.40}."
            raise UserError(kind, message, option="--rungs", value=self.number, least=0, most=MAX_RUNGS)
        kind = kind_of_number(self.min_fraction)
        if kind == "wrong-type" or not 0 < self.min_fraction < 1:
            message = (
                f"--min-fraction must be a share of a training, above 0 and below 1, got {self.min_fraction!r:.40}."
            )
            raise UserError(kind, message, option="--min-fraction", value=self.min_fraction, above=0, below=1)
        kind = kind_of_number(self.reduction_factor)
        if kind == "wrong-type" or not 1 < self.reduction_factor <= 1000:
            message = f"--reduction-factor must be above 1 and at most 1000, got {self.reduction_factor!r:.40}."
            raise UserError(kind, message, option="--reduction-factor", value=self.reduction_factor, above=1, most=1000)
        if self.number and self._shares()[-1] >= 1:
            last = f"the last of --rungs {self.number} would lie at {self._shares()[-1]:.3g} of a training"
            how = f"by --min-fraction {self.min_fraction} and --reduction-factor {self.reduction_factor}"
            message = f"{last}, {how}: it must lie before the end."
            raise UserError("infeasible", message, option="--rungs", value=self.number, share=self._shares()[-1])

    def record(self) -> dict[str, float]:
        """As JSON has it: empty without rungs."""
        if not self.number:
            return {}
        # Of Python's 2 and the command line's 2.0, the same record: it names the study.
        fractions = {"min_fraction": float(self.min_fraction), "reduction_factor": float(self.reduction_factor)}
        return asdict(self) | fractions

    def steps(self, length: int) -> list[int]:
        """The steps at which a training of that length is paused."""
        return [ceil(length * share - 1e-9) for share in self._shares()]  # 100 * 0.1 * 3 is 30

    def _shares(self) -> list[float]:
        return [self.min_fraction * self.reduction_factor**rung for rung in range(self.number)]


NO_RUNGS = Rungs()
"""No early stopping: every training goes to its end."""


def check_reports(task: "Task", recipe: Any, rungs: Rungs) -> None:
    """Raise UserError where trainings cannot be paused at the same steps: without reports, or with lengths in hours."""
    if rungs.number and not task.reports_intermediate:
        message = f"--rungs hold trainings at their reports, and {task.name} has none on the way. Leave it out."
        raise UserError("unsupported", message, option="--rungs", task=task.name)
    if rungs.number and isinstance(recipe, Recipe) and recipe.hours:
        raise UserError(
            "conflict",
            f"--rungs lie at steps, and with hours={recipe.hours} each training takes as many as it can. "
            f"Set steps, and hours to 0.",
            option="--rungs",
            hours=recipe.hours,
        )


def check_rung_objectives(objectives: Mapping[str, Direction], metrics: Mapping[str, Direction], rungs: Rungs) -> None:
    """Raise UserError where an objective is not known at a rung."""
    late = [name for name in objectives if name not in metrics and name not in COSTS]
    if late and rungs.number:
        message = f"--rungs needs objectives that are known on the way; {late[0]} is measured at the end."
        raise UserError("conflict", message, option="--rungs", objective=late[0])
