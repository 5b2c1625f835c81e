"""`nas.audit`: estimate the noise of a task's metrics before long searches."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas.analysis.audit import Audit, audit_of, check_audit, rows_of_other_presets, spread_by_cost, study_of
from nas.analysis.compare import jobs_of
from nas.budget.bounds import parse_budget
from nas.budget.feasibility import feasible_candidates
from nas.engine.scheduler import evaluate_all
from nas.environment.paths import DEFAULT_STORE
from nas.request.job import reload_task
from nas.request.resolve import parse_overrides, space_of
from nas.request.text_checks import as_list, check_call, check_type
from nas.store.store import Store
from nas.workers.resources import DEFAULT_RESOURCES, Resources


def audit(
    task: str,
    *,
    architectures: int = 10,
    seeds: int = 3,
    preset: str = "proxy",
    space: str = "",
    arch: str = "",
    axis: str | Sequence[str] = (),
    budget: str | Sequence[str] = (),
    settings: str | Mapping[str, Any] = "",
    resources: Resources = DEFAULT_RESOURCES,
    data: str | Path | None = None,
    storage: str = DEFAULT_STORE,
) -> Audit:
    """Estimate the noise of a task's metrics: train a few architectures, spread by cost, with several seeds each.

    The rows stay in the store. Another call with more seeds or architectures trains only what is missing. A search of
    the same task prints warnings if the audit found noise. Audits of other presets in the store are compared with this
    one.

    Raises:
        UserError: An invalid request, or too few completed trainings.
    """
    check_type("resources", resources, Resources)
    check_call(task=task, seeds=seeds, storage=storage)
    check_audit(architectures, seeds)
    task_object = reload_task(task, data)
    search_space = space_of(task_object, space, arch, preset, as_list(axis))
    changes = parse_overrides(task_object, preset, settings)
    members = spread_by_cost(
        task_object, feasible_candidates(search_space, task_object, parse_budget(as_list(budget))), architectures
    )
    pairs = [(architecture, changes) for architecture in members]
    jobs = jobs_of(task, data, pairs, range(seeds), preset, resources.threads)
    study = study_of(task_object.name, preset, changes)
    rows = evaluate_all(jobs, storage, study, resources)
    spread = f"{architectures} architectures of space {search_space.name!r}, {seeds} seeds each"
    title = f"{task_object.name}, preset {preset}: {spread}"
    return audit_of(title, rows, rows_of_other_presets(Store(storage), task_object, preset))
