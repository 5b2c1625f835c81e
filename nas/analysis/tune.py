"""Tuning of a recipe for each architecture of a comparison, with the same number of trainings for each.

With one learning rate for all, a comparison favors the architecture that the rate was tuned for.
"""

import warnings
from collections.abc import Sequence

from scipy.stats import qmc

from nas.budget.objectives import names_in
from nas.request.job import recipe_of
from nas.request.resolve import RecipeOverrides
from results.records.row import Row
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import Notice, UserError, unknown_name_error
from tasks.base import Metric, Task
from tasks.recipes.settings import plain_values

TRIALS = 8
"""Default number of trainings for each architecture's recipe."""

TUNING_RANGE = 10.0
"""Largest factor between a tried value and the preset's."""


def names_to_tune(texts: Sequence[str], trials: int | None, seeds: int) -> list[str]:
    """Return the settings that `--tune` names. Raises UserError for trials without settings, or without seeds."""
    names = [name for text in texts for name in names_in(text)]
    if trials is not None and not names:
        message = f"--tune-trials {trials} needs --tune. Give a setting, such as --tune lr."
        raise UserError("missing-value", message, option="--tune", needed_by="--tune-trials", trials=trials)
    if names and not seeds:
        message = "--tune needs at least one seed, got --seeds 0. Give --seeds 1 or more."
        raise UserError("missing-value", message, option="--seeds", value=seeds, needed_by="--tune")
    return names


def recipes_to_try(
    task: Task, preset: str, changes: RecipeOverrides, names: Sequence[str], number: int | None
) -> list[RecipeOverrides]:
    """Return `number` recipe overrides: `changes` itself, then the named settings varied about their values.

    They are the same for every architecture: Halton points, by factors from 1 / TUNING_RANGE to TUNING_RANGE.

    Raises:
        UserError: An unknown setting, one that is no positive float, or one that cannot have such a value.
    """
    if not names:
        return [changes]
    number = number or TRIALS
    values = plain_values(recipe_of(task, preset, changes))
    for name in names:
        if name not in values:
            raise unknown_name_error("setting", name, values, of=f"preset {preset!r}")
        if not isinstance(values[name], float) or values[name] <= 0:
            message = (
                f"--tune varies positive floating-point settings, got {name}={values[name]!r}. Set another value with "
                f"--set, or tune another setting."
            )
            raise UserError("wrong-type", message, option="--tune", setting=name, value=values[name])
    shares = qmc.Halton(len(names), scramble=False).random(number + 1)[2:]  # skip 0 and 1/2, which is `changes`
    recipes = [changes]
    for point in shares:
        factors = TUNING_RANGE ** (2 * point - 1)
        point_settings = {
            name: float(f"{values[name] * factor:.3g}") for name, factor in zip(names, factors, strict=True)
        }
        recipes.append(tuple(sorted({**dict(changes), **point_settings}.items())))
    for settings in recipes:
        recipe_of(task, preset, settings)
    return recipes


def best_recipes(
    architectures: Sequence[Architecture],
    recipes: Sequence[RecipeOverrides],
    rows: Sequence[Row],
    names: Sequence[str],
    metric: Metric,
) -> list[RecipeOverrides]:
    """Return each architecture's best recipe by validation; the first, with a Notice, if no training completed.

    Args:
        architectures: The architectures, each trained with every recipe.
        recipes: The candidates.
        rows: The Rows, grouped by architecture, in the order of recipes.
        names: The tuned settings.
        metric: The metric, on validation.
    """
    if not names:
        return [recipes[0]] * len(architectures)
    best = []
    for i, architecture in enumerate(architectures):
        complete = {
            settings: row
            for settings, row in zip(recipes, rows[i * len(recipes) : (i + 1) * len(recipes)], strict=True)
            if row.status == "complete"
        }
        if not complete:
            message = f"{architecture} was not tuned: no training completed."
            warnings.warn(Notice("failed", message, option="--tune", architecture=str(architecture)), stacklevel=2)
        scores = {settings: row.metrics[metric.name] for settings, row in complete.items()}
        choose = max if metric.direction == "max" else min
        best.append(choose(scores, key=scores.__getitem__, default=recipes[0]))
    return best
