"""The request of a search, checked before anything is trained."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import torch

from nas.budget.bounds import Budget, Feasible, parse_budget
from nas.budget.feasibility import feasible_candidates
from nas.budget.implicit.budget_dp import BudgetDP
from nas.budget.objectives import COSTS, PROFILE_COSTS, measures_for, names_in, objective_directions
from nas.costs.count import meta_device
from nas.environment.paths import safe_name
from nas.request.job import check_recipes, code_of, recipe_of, reload_task, text_of
from nas.request.resolve import RecipeOverrides, parse_overrides, space_of
from nas.request.text_checks import as_list
from nas.samplers.early_stopping import check_reports, check_rung_objectives
from nas.samplers.load_proposer import load_proposer
from nas.samplers.registry import DEFAULT
from nas.samplers.rungs import NO_RUNGS, Rungs
from nas.store.search_config import SearchConfig
from results.records.row import Direction
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.axis_names import is_recipe
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.errors import UserError
from search_spaces.support.progress import status_if_slow
from tasks.base import Task
from tasks.training.ignored_axes import check_axes_are_used


def check_measurable(task: Task, base: Architecture, quantities: Collection[str]) -> None:
    """Raise UserError if a measured quantity needs a network or a device that is missing: once, not in every trial."""
    if "energy_j" in quantities and not torch.cuda.is_available():
        message = "energy_j needs an NVIDIA GPU, and this machine has none. Use step_ms or flops."
        raise UserError("needs-system", message, option="energy_j", needs="cuda")
    if measures_for(quantities) or any(name in PROFILE_COSTS for name in quantities):
        with meta_device():
            task.build(base)


@dataclass(frozen=True)
class SearchRequest:
    """A search that passed all checks.

    Attributes:
        config: The configuration of the search, as plain data.
        budget: The config's budget, parsed.
        candidates: The candidates within the budget.
        summary: The number of candidates, in words.
    """

    config: SearchConfig
    budget: Budget
    candidates: Feasible | BudgetDP
    summary: str

    @property
    def name(self) -> str:
        """The default study name, from the task and a digest of the config: the same command resumes its study."""
        record = json.dumps({**self.config.record(), "baselines": {}}, sort_keys=True)
        return f"{safe_name(Path(self.config.task).name)}-{hashlib.sha256(record.encode()).hexdigest()[:6]}"


def build_request(
    task: str,
    space: str,
    arch: str,
    axis: str | Sequence[str],
    budget: str | Sequence[str],
    objectives: str | Sequence[str] | None,
    *,
    preset: str,
    settings: str | Mapping[str, Any],
    seed: int,
    sampler: str,
    data: str | Path | None,
    rungs: Rungs = NO_RUNGS,
) -> SearchRequest:
    """Parse and check the arguments of a search. Raises UserError before anything is trained."""
    task_object = reload_task(task, data)
    search_space = space_of(task_object, space, arch, preset, as_list(axis))
    bounds, changes = parse_budget(as_list(budget)), parse_overrides(task_object, preset, settings)
    _check_no_axis_is_set(dict(changes), search_space)
    recipe = recipe_of(task_object, preset, changes)
    metrics = task_object.metrics_for(recipe)
    metric_directions: dict[str, Direction] = {metric.name: metric.direction for metric in metrics}
    goals = objective_directions(
        [metrics[0].name, "flops"] if objectives is None else names_in(objectives), metric_directions
    )
    if {*goals} <= {*COSTS}:
        message = (
            f"--objectives must include a metric of the task, got {', '.join(goals)}. Costs need no training: nas cost."
        )
        raise UserError(
            "unsupported", message, option="--objectives", value=tuple(goals), choices=tuple(metric_directions)
        )
    check_rung_objectives(goals, metric_directions, rungs)
    check_reports(task_object, recipe, rungs)
    check_measurable(task_object, search_space.base, {*bounds.bounds, *goals})
    check_axes_are_used(task_object, search_space)
    load_proposer(sampler or DEFAULT)  # raises for an unknown sampler
    candidates = feasible_candidates(search_space, task_object, bounds)
    check_recipes(task_object, [recipe, *_axis_recipes(task_object, preset, changes, search_space)])
    return SearchRequest(
        config=SearchConfig(
            task=task,
            task_version=task_object.version,
            space=search_space.name,
            base=str(search_space.base),
            axes=dict(search_space.axes),
            budget=str(bounds),
            objectives=goals,
            preset=preset,
            settings=dict(changes),
            seed=seed,
            sampler=sampler or DEFAULT,
            data=text_of(data),
            metrics=metric_directions,
            rungs=rungs.record(),
            code=code_of(task),
            **_data_fields(task_object, recipe),
        ),
        budget=bounds,
        candidates=candidates,
        summary=_summary(candidates, bounds),
    )


def _check_no_axis_is_set(settings: Mapping[str, Any], space: SearchSpace) -> None:
    """Raise UserError if a setting is also an axis of the space."""
    for name in settings:
        if f"recipe.{name}" in space.axes:
            message = f"{name} is an axis of the space and is set by --set too. Leave one of them out."
            raise UserError("conflict", message, option="--set", value=name, excludes=f"recipe.{name}")


def _axis_recipes(task: Task, preset: str, settings: RecipeOverrides, space: SearchSpace) -> Iterator[Any]:
    """Yield the recipe with each value of each of its axes."""
    for axis, values in space.axes.items():
        for value in values if is_recipe(axis) else ():
            yield recipe_of(task, preset, (*settings, (axis.removeprefix("recipe."), value)))


def _data_fields(task: Task, recipe: Any) -> dict[str, Any]:
    """Return the config's fields about data: its fingerprint and the baselines on it."""
    with status_if_slow(f"reading the data of {task.name} ..."):
        return {"data_fingerprint": task.fingerprint(recipe), "baselines": task.baselines(recipe)}


def _summary(candidates: Feasible | BudgetDP, budget: Budget) -> str:
    """Return the number of candidates, in words."""
    space, profile_bounds = candidates.space, str(budget.profile_budget)
    suffix = f"; {profile_bounds} is measured before each training" if profile_bounds else ""
    if not str(budget.count_budget):
        return f"{format_count(candidates.number)} architectures in space {space.name!r}{suffix}"
    total = candidates.space_size if isinstance(candidates, BudgetDP) else len(space)
    share = f"{format_count(candidates.number)} of {format_count(total)}"
    return f"{share} architectures of space {space.name!r} are within {budget.count_budget}{suffix}"


def format_count(number: int) -> str:
    """Format a number with all digits; put a large one's magnitude first: "1.5e+33 (1484...)"."""
    return str(number) if number < 10**9 else f"{Decimal(number):.2e} ({number:,})"
