"""`nas.compare`: compare the costs of architectures and, with seeds, their metrics."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nas.analysis.compare import Comparison, candidates, compared_metric, comparison_records, costs_of, jobs_of
from nas.analysis.tune import best_recipes, names_to_tune, recipes_to_try
from nas.engine.scheduler import evaluate_all
from nas.environment.paths import DEFAULT_STORE
from nas.request.job import recipe_of, reload_task
from nas.request.resolve import RecipeOverrides, parse_overrides
from nas.request.text_checks import LogFormat, as_list, check_call, check_type
from nas.workers.resources import DEFAULT_RESOURCES, Resources
from results.records.row import Row
from search_spaces.architecture.architecture import Architecture


def compare(
    task: str,
    *,
    arch: str | Sequence[str] = (),
    topology: str | Sequence[str] | None = None,
    match: str | None = None,
    preset: str = "proxy",
    settings: str | Mapping[str, Any] = "",
    seeds: int = 0,
    tune: str | Sequence[str] = (),
    tune_trials: int | None = None,
    resources: Resources = DEFAULT_RESOURCES,
    data: str | Path | None = None,
    study: str | None = None,
    storage: str = DEFAULT_STORE,
    profile: bool = False,
    log: LogFormat | None = None,
) -> Comparison:
    """Compare the costs of architectures and, with seeds, their trained metrics.

    Raises:
        UserError: An invalid request.
    """
    check_type("resources", resources, Resources)
    check_call(task=task, topologies=topology, match=match, seeds=seeds, tune_trials=tune_trials,
                storage=storage, log=log)  # fmt: skip

    def train(pairs: Iterable[tuple[Architecture, RecipeOverrides]], each_seed: Iterable[int]) -> list[Row]:
        jobs = jobs_of(task, data, pairs, each_seed, preset, resources.threads)
        return evaluate_all(jobs, storage, study, resources, log)

    task_object = reload_task(task, data)
    changes = parse_overrides(task_object, preset, settings)
    recipe = recipe_of(task_object, preset, changes)
    metric, names = task_object.metrics_for(recipe)[0], names_to_tune(as_list(tune), tune_trials, seeds)
    recipes = recipes_to_try(task_object, preset, changes, names, tune_trials)
    architectures = candidates(task_object, as_list(arch), topology, match, preset)
    costs = costs_of(task_object, architectures, recipe, resources.threads, profile=profile)
    with_all = [(architecture, settings) for architecture in architectures for settings in recipes] if names else []
    tuning = train(with_all, [seeds])
    with_best = zip(architectures, best_recipes(architectures, recipes, tuning, names, metric), strict=True)
    rows = train(with_best, range(seeds))
    title = f"{task_object.name}, preset {preset}, {seeds or 'no'} seeds"
    records = comparison_records(metric, architectures, costs, rows, match, [f"recipe_{name}" for name in names])
    baselines = task_object.baselines(recipe) if rows else None
    return Comparison(title, records, compared_metric(metric, rows), tuple(rows), tuple(tuning), baselines)
