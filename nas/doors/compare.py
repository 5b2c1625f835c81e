"""`nas.compare`: what architectures cost side by side and, with seeds, what they reach."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas.places import DEFAULT_STORE

if TYPE_CHECKING:
    from nas.asking import Settings
    from nas.comparing import Comparison
    from results.row import Row
    from search_spaces.architecture import Architecture


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
    tune_trials: int = 8,
    workers: int | str | None = None,
    threads: int = 1,
    data: str | Path | None = None,
    study: str | None = None,
    storage: str = DEFAULT_STORE,
    profile: bool = False,
    trial_timeout: str | float | None = None,
    trial_memory: str | float | None = None,
    trial_gpus: float | None = None,
) -> "Comparison":
    """Set architectures side by side: what they cost and, with seeds, what they reach.

    With `tune` each is given a recipe of its own first, by as many trainings for each and with a seed of their own.

    Raises:
        UserError: What was asked for cannot be.
    """
    from nas.asking import check_asked, listed, settings_of
    from nas.comparing import Comparison, candidates, costs_of, jobs_of, side_by_side
    from nas.jobs import fresh_task, recipe_of
    from nas.objectives import names_in
    from nas.scheduler import evaluate_all
    from nas.tuning import recipes_to_try, tuned
    from nas.workers.resources import resources_of
    from search_spaces.errors import UserError

    check_asked(seeds=seeds, tune_trials=tune_trials, threads=threads, storage=storage)
    resources = resources_of(workers, threads, trial_timeout, trial_memory, trial_gpus)
    of = fresh_task(task, data)
    changes = settings_of(of, preset, settings)
    recipe = recipe_of(of, preset, changes)
    names = [name for text in listed(tune) for name in names_in(text)]
    if names and not seeds:
        raise UserError("--tune is for trainings that count, got --seeds 0. Give --seeds.")
    tried = recipes_to_try(of, preset, changes, names, tune_trials) if names else []
    architectures = candidates(of, listed(arch), topology, match, preset)
    costs = costs_of(of, architectures, recipe, threads, profile=profile)

    def trained(recipes: "Iterable[tuple[Architecture, Settings]]", numbers: Iterable[int]) -> "list[Row]":
        jobs = jobs_of(task, data, recipes, numbers, preset, threads)
        return evaluate_all(jobs, storage, study, resources) if jobs else []

    tuning = trained([(one, each) for one in architectures for each in tried], [seeds])
    best = tuned(architectures, tried, tuning, names, of.metrics[0]) if tried else [changes] * len(architectures)
    rows = trained(zip(architectures, best, strict=True), range(seeds))
    return Comparison(
        title=f"{of.name}, preset {preset}, {seeds or 'no'} seeds",
        records=side_by_side(of, architectures, costs, rows, match, [f"recipe_{name}" for name in names]),
        trained=tuple(rows),
        tuning=tuple(tuning),
        baselines=of.baselines(recipe) if rows else None,
    )
