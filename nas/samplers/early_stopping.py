"""Early stopping of one study: which trainings pause at which step, and their objectives there."""

from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from nas.budget.objectives import COSTS
from nas.samplers.rungs import Rungs
from nas.store.optuna_study import root_trial_number, rung_values_of, set_training_length, training_length, trials_of
from results.records.row import CurvePoint, Direction, Row
from search_spaces.support.errors import UserError
from tasks.base import Task
from tasks.recipes.recipe import Recipe

RungValues = list[list[float]]
"""A training's objectives at each rung so far."""


def check_reports(task: Task, recipe: Any, rungs: Rungs) -> None:
    """Raise UserError if rungs are impossible: a task without reports, or trainings measured in hours."""
    if rungs.number and not task.reports_intermediate:
        message = f"--rungs needs intermediate reports, and {task.name} makes none. Leave it out."
        raise UserError("unsupported", message, option="--rungs", task=task.name)
    if rungs.number and isinstance(recipe, Recipe) and recipe.hours:
        raise UserError(
            "conflict",
            f"--rungs needs a fixed number of steps, got hours={recipe.hours}. Set steps, and hours to 0.",
            option="--rungs",
            hours=recipe.hours,
        )


def check_rung_objectives(objectives: Mapping[str, Direction], metrics: Mapping[str, Direction], rungs: Rungs) -> None:
    """Raise UserError if an objective is not known at a rung."""
    late = [name for name in objectives if name not in metrics and name not in COSTS]
    if late and rungs.number:
        message = f"--rungs needs objectives that are known during training; {late[0]} is measured at the end."
        raise UserError("conflict", message, option="--rungs", objective=late[0])


class EarlyStopping:
    """The rungs of one study. Their steps are known after the first complete training.

    Args:
        study: The Optuna study; objectives at rungs are stored with its trials.
        rungs: The rungs.
        objectives: Objective -> "max" or "min".
    """

    def __init__(self, study: optuna.Study, rungs: Rungs, objectives: Mapping[str, Direction]) -> None:
        self._study, self._rungs, self._objectives = study, rungs, objectives

    def max_steps(self, trial: FrozenTrial) -> int | None:
        """Return the step at which a trial's training is paused next; None if it runs to its end."""
        if not (steps := self._steps()):
            return None
        rung = len(self._rung_values_by_training().get(root_trial_number(trial), ()))
        return steps[rung] if rung < len(steps) else None

    def rung_values(self, row: Row) -> RungValues:
        """Return an evaluation's objectives at the rungs. The first complete one defines the rungs' steps."""
        if not self._rungs.number or row.status not in ("complete", "pruned"):
            return []
        if row.status == "complete" and training_length(self._study) is None:
            set_training_length(self._study, row.steps)
        costs = {name: value for name, value in row.columns().items() if name in COSTS and value is not None}
        points: list[CurvePoint] = [*row.curve, {"step": row.steps, "metrics": row.metrics}]
        rung_values: RungValues = []
        for step in self._steps():
            values = {**costs, **next((point["metrics"] for point in points if point["step"] >= step), {})}
            if not all(name in values for name in self._objectives):
                break
            rung_values.append([float(values[name]) for name in self._objectives])
        return rung_values

    def _rung_values_by_training(self) -> dict[int, Sequence[Sequence[float]]]:
        """Return the number of the trial that started a training -> the training's objectives at rungs."""
        return {
            root_trial_number(trial): rung_values
            for trial in trials_of(self._study)
            if (rung_values := rung_values_of(trial))
        }

    def _steps(self) -> list[int]:
        length = training_length(self._study)
        return [] if length is None else self._rungs.steps(length)
