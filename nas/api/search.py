"""`nas.search`: search for the Pareto front of a task's objectives inside a budget."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from nas.analysis.audit_warnings import rungs_for
from nas.api.load import load
from nas.engine.run import TrialCounts, run_search
from nas.engine.timings import Timings
from nas.environment.loading import pop_loading_seconds
from nas.environment.paths import DEFAULT_STORE
from nas.report.study import Study
from nas.request.search_request import build_request
from nas.request.text_checks import LogFormat, check_call, check_type
from nas.samplers.rungs import NO_RUNGS, Rungs
from nas.store.retry import retry_on_disconnect
from nas.workers.resources import DEFAULT_RESOURCES, Resources, seconds_of


def search(
    task: str,
    *,
    space: str = "",
    arch: str = "",
    axis: str | Sequence[str] = (),
    budget: str | Sequence[str] = (),
    objectives: str | Sequence[str] | None = None,
    trials: int = 24,
    seeds: int = 1,
    reeval_fraction: float = 0.25,
    rungs: Rungs = NO_RUNGS,
    preset: str = "proxy",
    settings: str | Mapping[str, Any] = "",
    seed: int = 0,
    sampler: str = "",
    resources: Resources = DEFAULT_RESOURCES,
    data: str | Path | None = None,
    study: str | None = None,
    storage: str = DEFAULT_STORE,
    save_models: Literal["front", "all", "none"] = "front",
    profile: bool = False,
    log: LogFormat | None = None,
    timeout: str | float | None = None,
    timings: bool = False,
) -> Study:
    """Search TASK for the Pareto front of its objectives inside a budget; the same call resumes a search.

    Raises:
        UserError: An invalid request, or a search that had to stop; finished evaluations are stored.
    """
    check_type("resources", resources, Resources)
    check_type("rungs", rungs, Rungs)
    check_call(task=task, trials=trials, seeds=seeds, seed=seed, save_models=save_models, storage=storage, log=log)
    timer = Timings(verbose=timings, loading=pop_loading_seconds("search"))
    counts, seconds = TrialCounts(trials, seeds, reeval_fraction), seconds_of("timeout", timeout)
    build = timer.track("counting candidates")(build_request)
    request = build(task, space, arch, axis, budget, objectives, preset=preset, settings=settings, seed=seed,
                sampler=sampler, data=data, rungs=rungs)  # fmt: skip
    run_search(request, study, storage, counts, resources, timer, rungs_for=rungs_for, seconds=seconds,
              save_models=save_models, trace=profile, log=log)  # fmt: skip
    return retry_on_disconnect(load)(study or request.name, storage=storage)
