"""The job of an evaluation, as plain data that is sent to other processes, and its identity."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from nas.budget.bounds import NO_BUDGET, Budget
from nas.budget.objectives import MEASURES
from nas.environment.device import available_device, device_name
from nas.environment.provenance import provenance
from results.records.row import Row
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import fingerprint, read_weights
from search_spaces.support.errors import UserError, unknown_name_error
from search_spaces.support.progress import status_if_slow
from search_spaces.support.spec import Scalar
from tasks.base import Task
from tasks.load import load_task
from tasks.local_sources import source_digest
from tasks.recipes.settings import override, plain_values
from tasks.registry import TASKS


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationJob:
    """One evaluation: what to train, and what to measure.

    Attributes:
        task: Name, or FILE.py:CLASS.
        architecture: The architecture.
        preset: The task's preset.
        settings: Overrides of the preset's recipe: (name, value).
        seed: Seed of initialization, data order and augmentation.
        data: Value of `--data`, or None.
        start_folder: Folder of the checkpoint whose weights training starts from; None draws them.
        space: Name of the search space, or None.
        number: Number of the trial in its search, or None.
        folder: Folder of the files for resuming, and of the Row until the store has it; or None.
        network_folder: Folder of the trained network, or None.
        max_steps: Stop the training at its first report from this step on; None trains to the end.
        limits: A network outside these bounds is not trained.
        profiled: Whether to profile the network before training; limits on profile columns and a trace imply it.
        trace: File, without its suffix, for a trace of training steps, or None.
        measures: Measures of the trained network, by name in nas.budget.objectives.MEASURES.
        render: File for a picture of what the trained network does, or None.
        save: A second folder for the trained network, or None.
        threads: Number of CPU threads.
        earlier_row: The Row of an earlier evaluation with the same identity: then nothing is trained.
        identity: Identifies the evaluation, see `with_identity`: 16 hex digits, or "" before that.
        store: URL of the store of its Row, which is read again after waiting for another process.
    """

    task: str
    architecture: Architecture
    preset: str
    settings: tuple[tuple[str, Scalar], ...] = ()
    seed: int = 0
    data: str | None = None
    start_folder: str | None = None
    space: str | None = None
    number: int | None = None
    folder: str | None = None
    network_folder: str | None = None
    max_steps: int | None = None
    limits: Budget = NO_BUDGET
    profiled: bool = False
    trace: str | None = None
    measures: tuple[str, ...] = ()
    render: str | None = None
    save: str | None = None
    threads: int = 1
    earlier_row: Row | None = None
    identity: str = ""
    store: str | None = None


@lru_cache(maxsize=4)
def task_of(reference: str, data: str | None) -> Task:
    """Return the task, cached in this process so that its data is read once for many architectures."""
    task = load_task(reference, None if data is None else Path(data))
    if code_of(reference) is not None and task.name in TASKS.names():
        message = f"task {task.name!r} is installed. Give the one in {reference} another name."
        raise UserError("exists", message, task=task.name, reference=reference)
    return task


def reload_task(reference: str, data: str | Path | None) -> Task:
    """Return the task from its current file and data, and clear this process's caches of all tasks.

    Functions of `nas.api` start with it, since a notebook outlives changes of files. Raises UserError as `load_task`.
    """
    task_of.cache_clear()
    code_of.cache_clear()
    data_fingerprint.cache_clear()
    with status_if_slow(f"loading task {reference} ..."):
        return task_of(reference, text_of(data))


def text_of(path: str | Path | None) -> str | None:
    """Return a path as a string, as jobs have it."""
    return None if path is None else str(path)


@lru_cache(maxsize=4)
def code_of(reference: str) -> str | None:
    """Return the digest of a task's file and local modules; None for an installed task, identified by its version."""
    path = Path(reference.rpartition(":")[0])
    return source_digest(path) if path.suffix == ".py" and path.is_file() else None


def recipe_of(task: Task, preset: str, settings: tuple[tuple[str, Scalar], ...] = ()) -> Any:
    """Return a task's preset with overrides.

    Raises:
        UserError: An unknown preset or setting, or an invalid value.
    """
    if preset not in task.presets:
        raise unknown_name_error("preset", preset, task.presets, of=f"task {task.name!r}")
    return override(task.presets[preset], dict(settings), f"preset {preset!r} of task {task.name!r}")


def check_recipes(task: Task, recipes: Sequence[Any]) -> None:
    """Check the data against the networks and all recipes, before the first training; of one recipe against networks.

    Raises:
        UserError: Inputs or labels that do not fit, or a recipe that the data does not allow.
    """
    with status_if_slow(f"reading the data of {task.name} ..."):
        for recipe in recipes:
            task.check_recipe(recipe)
        task.check_data(recipes[0])


@lru_cache(maxsize=64)
def data_fingerprint(reference: str, data: str | None, preset: str, settings: tuple[tuple[str, Scalar], ...]) -> str:
    """Return the fingerprint of the data of a training."""
    task = task_of(reference, data)
    return task.fingerprint(recipe_of(task, preset, settings))


@dataclass(frozen=True, slots=True)
class ResolvedJob:
    """A job with the objects that its texts stand for in this process.

    Attributes:
        job: The job.
        task: Its task.
        recipe: The preset with the job's overrides.
        row: The initial Row: failed, without a reason.
    """

    job: EvaluationJob
    task: Task
    recipe: Any
    row: Row


def resolve_job(job: EvaluationJob) -> ResolvedJob:
    """Load the objects of a job. Raises UserError for an unknown task, preset or setting, or missing data."""
    task = task_of(job.task, job.data)
    recipe = recipe_of(task, job.preset, job.settings)
    row = Row(
        task=task.name,
        task_version=task.version,
        data=data_fingerprint(job.task, job.data, job.preset, job.settings),
        architecture=job.architecture,
        preset=job.preset,
        recipe=plain_values(recipe),
        seed=job.seed,
        start=None if job.start_folder is None else fingerprint(read_weights(Path(job.start_folder))),
        space=job.space,
        directions={metric.name: metric.direction for metric in task.metrics_for(recipe)},
        status="failed",
        error="",
        provenance={**provenance(device_name(available_device()), job.threads), "code": code_of(job.task)},
    )
    return ResolvedJob(job, task, recipe, row)


def failed_row(job: EvaluationJob, reason: str) -> Row:
    """Return the Row of a job that failed before its evaluation wrote one."""
    return replace(resolve_job(job).row, error=reason)


def identity(job: EvaluationJob) -> str:
    """Return the identity of the evaluation's Row: a hash of all that determines its numbers, 16 hex digits."""
    return resolve_job(job).row.identity()


def with_identity(job: EvaluationJob) -> EvaluationJob:
    """Return the job with its identity set."""
    return replace(job, identity=identity(job))


def needs_network(job: EvaluationJob, row: Row) -> bool:
    """Return whether the job needs the trained network for measures, a picture or a copy that the Row lacks."""
    missing = any(not set(MEASURES[measure]) <= set(row.extra_metrics) for measure in job.measures)
    return missing or job.render is not None or job.save is not None


def is_first_process() -> bool:
    """Return whether this process prints and writes: rank 0 of torchrun, or the only process."""
    return "TORCHELASTIC_RUN_ID" not in os.environ or os.environ["RANK"] == "0"
