"""`nas.evaluate`: train one architecture."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas.costs.profile.profile import trace_of
from nas.engine.scheduler import evaluate_all
from nas.environment.paths import DEFAULT_STORE
from nas.evaluation.retrofit import data_of, start_architecture
from nas.request.job import EvaluationJob, reload_task, text_of
from nas.request.resolve import (
    RecipeOverrides,
    architecture_of,
    check_max_steps,
    check_measures,
    make_folder,
    parse_overrides,
)
from nas.request.text_checks import LogFormat, check_call
from nas.workers.resources import Resources
from results.records.row import Row
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.files import check_writable
from search_spaces.support.progress import LOADING, status_if_slow
from tasks.base import Task


def evaluate(
    task: str,
    *,
    arch: str = "",
    topology: str | None = None,
    preset: str = "proxy",
    settings: str | Mapping[str, Any] = "",
    seed: int = 0,
    threads: int = 1,
    data: str | Path | None = None,
    start: str | Path | None = None,
    study: str | None = None,
    storage: str = DEFAULT_STORE,
    max_steps: int | None = None,
    save: str | Path | None = None,
    render: str | Path | None = None,
    profile: bool = False,
    measure: str | Sequence[str] = (),
    log: LogFormat | None = None,
) -> Row:
    """Train one architecture and return its Row; a stored evaluation is not repeated.

    `start` is the folder of a trained network of this task, or of a task that this one continues. Training then starts
    from its weights and architecture, and `data` defaults to its data. A failed training is a Row with the reason.

    Raises:
        UserError: An invalid request.
    """
    check_call(task=task, topology=topology, settings=settings, seed=seed, threads=threads, max_steps=max_steps,
                storage=storage, log=log)  # fmt: skip
    data = _data(task, data, start)
    task_object = reload_task(task, data)
    changes = parse_overrides(task_object, preset, settings)
    architecture = _architecture(task_object, preset, arch, topology, start, save, changes)
    job = EvaluationJob(
        task=task,
        architecture=architecture,
        preset=preset,
        settings=changes,
        seed=seed,
        data=text_of(data),
        start_folder=text_of(start),
        threads=threads,
        **_job_options(task_object, architecture, max_steps, profile, measure, render, save),
    )
    return evaluate_all([job], storage, study, Resources(workers=1, threads=threads), log)[0]


def _data(task: str, data: str | Path | None, start: str | Path | None) -> str | Path | None:
    """Return `data`, or the data of the network that training starts from."""
    if data is not None or start is None:
        return data
    return data_of(Path(start), task)


def _architecture(
    task: Task,
    preset: str,
    arch: str,
    topology: str | None,
    start: str | Path | None,
    save: str | Path | None,
    changes: RecipeOverrides,
) -> Architecture:
    """Return the requested architecture, or that of the network that training starts from."""
    if start is None:
        return architecture_of(task, preset, arch, topology)
    extras = {f"--set {name}": str(value) for name, value in changes if name in task.unused_with_start}
    return start_architecture(Path(start), task, save, {"--arch": arch, "--topology": topology, **extras})


def _job_options(
    task: Task,
    architecture: Architecture,
    max_steps: int | None,
    profile: bool,
    measure: str | Sequence[str],
    render: str | Path | None,
    save: str | Path | None,
) -> dict[str, Any]:
    """Return the job's options on steps and extra outputs. Raises UserError if the task lacks one."""
    check_max_steps(task, max_steps)
    with status_if_slow(LOADING):
        if render is not None:
            task.render(None, Path(render))
            check_writable(Path(render))
        measures = check_measures(measure, task, architecture)
    return {
        "max_steps": max_steps,
        "profiled": profile,
        "trace": str(trace_of(task.name, architecture)) if profile else None,
        "measures": measures,
        "render": text_of(render),
        "save": make_folder(save),
    }
