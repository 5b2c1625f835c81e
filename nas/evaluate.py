"""One architecture on one task -> one Row, whatever happens.

The Row follows from the Job and the data: it is the same in this process, in a local worker or elsewhere, but for
times.
"""

import json
import math
import os
import platform
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from nas import conditioning, cost
from nas.budget import parse_budget
from nas.profiling.profile import profile
from nas.profiling.steps import one_thread
from results.row import Row
from search_spaces.architecture import Architecture
from search_spaces.checkpoint import (
    Record,
    atomic_replace,
    fingerprint,
    read_record,
    read_weights,
    save_checkpoint,
    weights_of,
)
from search_spaces.errors import Notice, UserError
from search_spaces.spec import Scalar
from tasks.base import Diverged, Fitted, Task
from tasks.load import load_task

KEPT = "row.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to evaluate. Plain data: it travels to other processes.

    Attributes:
        task: Name, or FILE.py:CLASS.
        architecture: What to evaluate.
        preset: The task's preset.
        seed: Seed of initialisation, data order and augmentation.
        data: What `--data` said, or None.
        space: Name of the search space, or None.
        start: Folder of the checkpoint whose weights training begins with, or None where they are drawn.
        folder: Where the evaluation keeps what it needs to be continued, and its Row once it has one, or None.
        save: Whether the trained network is kept there as well.
        render: File that shows what the trained network does, or None.
        limits: Bounds on what is measured, as text; a network that does not keep them is not trained.
        profiled: Whether the network is profiled before it is trained; with limits or a trace it is in any case.
        trace: File, without its ending, for a trace of its training steps, or None.
        measures: What is measured of the trained network, by names in nas.objectives.MEASURES.
    """

    task: str
    architecture: Architecture
    preset: str
    seed: int
    data: str | None = None
    space: str | None = None
    start: str | None = None
    folder: str | None = None
    save: bool = False
    render: str | None = None
    limits: str = ""
    profiled: bool = False
    trace: str | None = None
    measures: tuple[str, ...] = ()


@lru_cache(maxsize=4)
def task_of(reference: str, data: str | Path | None) -> Task:
    """The task of this process: data is read once however many architectures are evaluated."""
    return load_task(reference, None if data is None else Path(data))


def evaluate(job: Job) -> Row:
    """Build, count, train and measure. A failure is a Row with its reason.

    Where the job's folder holds the Row of the same job, an earlier evaluation finished: that Row is returned.
    Failures are not kept there, so that what failed is tried again.

    Raises:
        UserError: What was asked for cannot be done for any architecture (missing data, unknown task).
    """
    earlier = kept_row(job)
    if earlier is not None:
        return earlier
    start = time.perf_counter()
    task = task_of(job.task, job.data)
    task.prepare()
    with one_thread():
        row = _train(task, job, failed(job, ""))
    row = replace(row, wall_s=time.perf_counter() - start)
    if job.folder is not None and row.status != "failed" and first_process():
        _write(Path(job.folder, KEPT), json.dumps({"job": _identity(job), "row": row.to_json()}))
    return row


def first_process() -> bool:
    """Whether this is the one that speaks and writes, of the processes that torchrun started."""
    return "TORCHELASTIC_RUN_ID" not in os.environ or os.environ["RANK"] == "0"


def kept_row(job: Job) -> Row | None:
    """The Row that an evaluation of the same job left in its folder, or None; what cannot be read is none."""
    path = Path(job.folder, KEPT) if job.folder else None
    if path is None or not path.exists():
        return None
    try:
        kept = json.loads(path.read_text())
        return Row.from_json(kept["row"]) if kept["job"] == _identity(job) else None
    except (ValueError, KeyError, TypeError, OSError):
        return None


def _identity(job: Job) -> str:
    """All that a Row depends on, in words."""
    start = None if job.start is None else fingerprint(read_weights(Path(job.start)))
    return f"{replace(job, start=start, folder=None, trace=None)} version {task_of(job.task, job.data).version}"


def _train(task: Task, job: Job, row: Row) -> Row:
    curve: list[Mapping[str, float]] = []

    def report(step: int, metrics: Mapping[str, float]) -> None:
        curve.append({"step": step, **_floats(metrics)})

    weights = None if job.start is None else read_weights(Path(job.start))
    row = replace(row, start=None if weights is None else fingerprint(weights))
    try:
        row = replace(row, costs=cost.count(task, job.architecture))
        if job.profiled or job.limits or job.trace:
            row = _profiled(task, job, row)
            if row.status == "over-budget":
                return row
        if "conditioning" in job.measures:  # refused before hours of training, not after
            with cost.meta_device():
                conditioning.refuse(task.build(job.architecture))
        folder = Path(job.folder) if job.folder else None
        fit = task.fit if weights is None else partial(task.fit_from, weights)
        fitted = fit(job.architecture, job.preset, job.seed, folder, report)
        validation, test = _floats({**fitted.validation, **fitted.speeds}), _floats(fitted.test)
        _check(task, validation, test)
        row = replace(row, steps=fitted.steps, data=fitted.data, validation=validation, test=test)
        if job.save and folder is not None:
            _save(task, job, fitted, folder)
        if "conditioning" in job.measures:
            row = replace(row, validation=validation | _conditioning(task, job, fitted))
    except Exception as error:  # a trial may fail in any way; the search goes on
        return replace(row, curve=_finite(curve), error=_reason(error))
    if job.render is not None and first_process():
        _render(task, job.render, fitted)
    return replace(
        row,
        status="complete",
        error=None,
        curve=_finite(curve),
    )


def _profiled(task: Task, job: Job, row: Row) -> Row:
    """The Row with what was measured; over budget where a limit is not kept, or there is no memory for a step."""
    limits = parse_budget([job.limits])
    try:
        found = profile(task, job.architecture, job.preset, None, Path(job.trace) if job.trace else None)
    except torch.OutOfMemoryError as error:
        return replace(row, status="over-budget", error=f"there is no memory for a step: {_reason(error)}")
    for quantity in limits.bounds:
        if quantity not in found:
            raise RuntimeError(f"{quantity} is bounded and was not measured: {found.get('profile_note')}")
    row = replace(row, profile=found)
    if limits.allows({name: value for name, value in found.items() if not isinstance(value, str)}):
        return row
    has = ", ".join(f"{quantity}={found[quantity]:.4g}" for quantity in limits.bounds)
    return replace(row, status="over-budget", error=f"{has} is not within {limits}")


def _conditioning(task: Task, job: Job, fitted: Fitted) -> dict[str, float]:
    """Columns of the trained network's attention at validation examples."""
    if fitted.network is None:
        raise UserError(f"task {task.name!r} does not give its networks: their conditioning cannot be measured.")
    return conditioning.measure(fitted.network, task.inputs(job.preset))


def _save(task: Task, job: Job, fitted: Fitted, folder: Path) -> None:
    """Keep the trained network."""
    if fitted.network is None:
        warnings.warn(f"task {task.name!r} does not give its trained networks: none is saved.", Notice, 2)
        return
    before = 0 if job.start is None else read_record(Path(job.start)).step
    settings: dict[str, Scalar] = {"reference": job.task, "preset": job.preset, "seed": job.seed}
    if job.data is not None:
        settings["data"] = job.data
    record = Record(
        task=task.name,
        task_version=task.version,
        architecture=job.architecture,
        step=before + fitted.steps,
        settings=settings,
    )
    weights = weights_of(fitted.network)  # all of the processes that train together gather them
    if first_process():
        save_checkpoint(folder, weights, record)


def _render(task: Task, file: str, fitted: Fitted) -> None:
    """Show what the network does; a picture that fails must not take a finished training with it."""
    try:
        task.render(fitted.network, Path(file))
    except Exception as error:
        warnings.warn(f"{file} could not be rendered: {_reason(error)}", Notice, 2)


def failed(job: Job, reason: str) -> Row:
    """The Row of an evaluation that could not even report its failure."""
    task = task_of(job.task, job.data)
    return Row(
        task=task.name,
        task_version=task.version,
        space=job.space,
        architecture=job.architecture,
        seed=job.seed,
        preset=job.preset,
        status="failed",
        error=reason,
        versions=_versions(),
    )


def _floats(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Plain numbers: a task may give tensors or numpy's."""
    return {name: float(value) for name, value in metrics.items()}


def _finite(curve: list[Mapping[str, float]]) -> tuple[Mapping[str, float], ...]:
    return tuple(point for point in curve if all(map(math.isfinite, point.values())))


def _check(task: Task, validation: Mapping[str, float], test: Mapping[str, float]) -> None:
    """Raise where a metric is missing or not finite."""
    for metric in task.metrics:
        if metric.name not in validation:
            raise RuntimeError(f"fit of task {task.name!r} gave no {metric.name!r}")
    for name, value in {**validation, **{f"test_{name}": value for name, value in test.items()}}.items():
        if not math.isfinite(value):
            raise Diverged(f"{name} is {value}")


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


@lru_cache(maxsize=1)
def _versions() -> Mapping[str, str]:
    found: dict[str, Any] = {"python": platform.python_version()}
    for package in ("nas-bench-wiring", "torch", "lightning", "timm", "optuna", "fvcore", "gymnasium", "mujoco"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    atomic_replace(partial, path)
