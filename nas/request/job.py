"""An evaluation's job, as plain data that travels to other processes, and its identity."""

import hashlib
import os
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
from search_spaces.support.errors import UserError, unknown
from search_spaces.support.progress import status_if_slow
from search_spaces.support.spec import Scalar
from tasks.base import Task
from tasks.load import load_task
from tasks.recipes.settings import override, plain_values
from tasks.registry import TASKS


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationJob:
    """What to evaluate and what to measure.

    Attributes:
        task: Name, or FILE.py:CLASS.
        architecture: What to evaluate.
        preset: The task's preset.
        settings: What is changed of the preset's recipe, by name.
        seed: Seed of initialisation, data order and augmentation.
        data: What `--data` said, or None.
        start: Folder of the checkpoint whose weights training begins with, or None where they are drawn.
        space: Name of the search space, or None.
        number: Of the trial in its search, or None.
        folder: Where the evaluation keeps what it needs to be continued, and its Row once it has one, or None.
        network: Folder that the trained network is kept in, or is in already, or None.
        max_steps: The training stops at the first report at this step or behind it; None trains to the end.
        limits: A network that does not keep them is not trained.
        profiled: Whether the network is profiled before it is trained; for limits or a trace it is in any case.
        trace: File, without its ending, for a trace of its training steps, or None.
        measures: What is measured of the trained network, by names in nas.budget.objectives.MEASURES.
        render: File that shows what the trained network does, or None.
        save: Another folder that the trained network is to be in, or None.
        threads: Of the CPU.
        earlier_row: The Row of an earlier evaluation with the same identity: then nothing is trained.
        identity: What tells the evaluation from all others, see `with_identity`: 16 hex digits, or "" before that.
        store: Where its Row will be: to look there after waiting for another process.
    """

    task: str
    architecture: Architecture
    preset: str
    settings: tuple[tuple[str, Scalar], ...] = ()
    seed: int = 0
    data: str | None = None
    start: str | None = None
    space: str | None = None
    number: int | None = None
    folder: str | None = None
    network: str | None = None
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
    """The task of this process: data is read once however many architectures are evaluated."""
    task = load_task(reference, None if data is None else Path(data))
    if code_of(reference) is not None and task.name in TASKS.names():
        message = f"task {task.name!r} is installed; the one in {reference} must have another name."
        raise UserError("exists", message, task=task.name, reference=reference)
    return task


def fresh_task(reference: str, data: str | Path | None) -> Task:
    """The task as its file and its data are now: what this process has read of any task before is forgotten.

    Doors begin so, since a notebook's process outlives many changes of files. Raises UserError as `load_task` does.
    """
    task_of.cache_clear()
    code_of.cache_clear()
    data_fingerprint.cache_clear()
    with status_if_slow(f"loading task {reference} ..."):
        return task_of(reference, text_of(data))


def text_of(path: str | Path | None) -> str | None:
    """A path as a job carries it."""
    return None if path is None else str(path)


@lru_cache(maxsize=4)
def code_of(reference: str) -> str | None:
    """Twelve hex digits of the file that a task is in; None of an installed one, whose version stands for its code."""
    path = Path(reference.rpartition(":")[0])
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.suffix == ".py" and path.is_file() else None


def recipe_of(task: Task, preset: str, settings: tuple[tuple[str, Scalar], ...] = ()) -> Any:
    """A task's preset, changed by settings.

    Raises:
        UserError: An unknown preset or setting, or a value that a setting cannot have.
    """
    if preset not in task.presets:
        raise unknown("preset", preset, task.presets, of=f"task {task.name!r}")
    return override(task.presets[preset], dict(settings), f"preset {preset!r} of task {task.name!r}")


@lru_cache(maxsize=64)
def data_fingerprint(reference: str, data: str | None, preset: str, settings: tuple[tuple[str, Scalar], ...]) -> str:
    """The fingerprint of the data that a training sees."""
    task = task_of(reference, data)
    return task.fingerprint(recipe_of(task, preset, settings))


@dataclass(frozen=True, slots=True)
class ResolvedJob:
    """A job with what its texts mean in this process: read once, and handed on.

    Attributes:
        job: What to evaluate.
        task: What its network learns.
        recipe: The preset, changed by the job's settings.
        row: The Row before anything is known: failed, without a reason.
    """

    job: EvaluationJob
    task: Task
    recipe: Any
    row: Row


def resolve(job: EvaluationJob) -> ResolvedJob:
    """Load what a job names. Raises UserError for an unknown task, preset or setting, or missing data."""
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
        start=None if job.start is None else fingerprint(read_weights(Path(job.start))),
        space=job.space,
        directions={metric.name: metric.direction for metric in task.metrics_for(recipe)},
        status="failed",
        error="",
        provenance={**provenance(device_name(available_device()), job.threads), "code": code_of(job.task)},
    )
    return ResolvedJob(job, task, recipe, row)


def failed_row(job: EvaluationJob, reason: str) -> Row:
    """The Row of a job that failed before its evaluation wrote one."""
    return replace(resolve(job).row, error=reason)


def identity(job: EvaluationJob) -> str:
    """The identity of the evaluation's Row: a hash of all that its numbers follow from, 16 hex digits."""
    return resolve(job).row.identity()


def with_identity(job: EvaluationJob) -> EvaluationJob:
    """The job with its identity, as it leaves a plan."""
    return replace(job, identity=identity(job))


def lacks_network(job: EvaluationJob, row: Row) -> bool:
    """Whether the job needs the trained network for measures, a picture or a copy that the Row lacks."""
    missing = any(not set(MEASURES[measure]) <= set(row.extra_metrics) for measure in job.measures)
    return missing or job.render is not None or job.save is not None


def first_process() -> bool:
    """Whether this is the one that speaks and writes, of the processes that torchrun started."""
    return "TORCHELASTIC_RUN_ID" not in os.environ or os.environ["RANK"] == "0"
