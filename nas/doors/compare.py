"""`nas.compare`: what architectures cost side by side and, with seeds, what they reach."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas.places import DEFAULT_STORE

if TYPE_CHECKING:
    from nas.comparing import Comparison


def compare(
    task: str,
    *,
    arch: str | Sequence[str] = (),
    topology: str | Sequence[str] | None = None,
    match: str | None = None,
    preset: str = "proxy",
    settings: str | Mapping[str, Any] = "",
    seeds: int = 0,
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

    Raises:
        UserError: What was asked for cannot be.
    """
    from nas.asking import check_asked, listed, settings_of
    from nas.comparing import Comparison, candidates, costs_of, jobs_of, side_by_side
    from nas.jobs import fresh_task, recipe_of
    from nas.scheduler import evaluate_all
    from nas.workers.resources import resources_of

    check_asked(seeds=seeds, threads=threads, storage=storage)
    resources = resources_of(workers, threads, trial_timeout, trial_memory, trial_gpus)
    of = fresh_task(task, data)
    changes = settings_of(of, preset, settings)
    recipe = recipe_of(of, preset, changes)
    architectures = candidates(of, listed(arch), topology, match, preset)
    costs = costs_of(of, architectures, recipe, threads, profile=profile)
    jobs = jobs_of(task, data, architectures, range(seeds), preset, changes, threads)
    rows = evaluate_all(jobs, storage, study, resources) if jobs else []
    return Comparison(
        title=f"{of.name}, preset {preset}, {seeds or 'no'} seeds",
        records=side_by_side(of, architectures, costs, rows, match),
        trained=tuple(rows),
        baselines=of.baselines(recipe) if rows else None,
    )
