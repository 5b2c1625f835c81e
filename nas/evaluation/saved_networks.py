"""Saved networks, each a folder of weights and a record, beside the store."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from nas.request.job import EvaluationJob, is_first_process, recipe_of
from nas.store.store import Store
from results.records.row import Row
from search_spaces.architecture.checkpoint import (
    RECORD,
    Record,
    load_weights,
    read_record,
    read_weights,
    save_checkpoint,
    weights_of,
)
from search_spaces.support.errors import Notice, UserError, unknown_name_error
from search_spaces.support.spec import Scalar
from tasks.base import FitResult, Task
from tasks.training.supervised import SupervisedTask


def has_network(folder: str | Path | None) -> bool:
    """Return whether a folder contains a trained network."""
    return folder is not None and Path(folder, RECORD).exists()


def save_network(task: Task, job: EvaluationJob, fit: FitResult) -> None:
    """Save a trained network in the job's folders; warn if that fails, without losing the training."""
    places = [Path(place) for place in (job.network_folder, job.save) if place is not None]
    if fit.network is None:
        if job.save is not None:
            message = f"task {task.name!r} returns no trained network: none is saved."
            warnings.warn(Notice("unsupported", message, option="--save", task=task.name), stacklevel=2)
        return
    if not places:
        return
    steps = fit.steps if fit.network_steps is None else fit.network_steps
    weights = weights_of(fit.network)  # distributed: all ranks gather them
    for place in places if is_first_process() else ():
        try:
            save_checkpoint(place, weights, _record(task, job, steps))
        except OSError as error:
            message = f"the trained network could not be saved in {place}: {error.strerror}."
            warnings.warn(Notice("unwritable", message, path=str(place)), stacklevel=2)


def copy_network(folder: Path, to: Path) -> None:
    """Write a saved network to another folder. Raises UserError if it cannot be read."""
    save_checkpoint(to, read_weights(folder), read_record(folder))


def check_save_folder(job: EvaluationJob) -> None:
    """Raise UserError if a job's `save` folder holds a network of another identity."""
    if job.save is None or not has_network(job.save):
        return
    remedy = "Give another folder, or remove that one."
    try:
        record = read_record(Path(job.save))
    except UserError:
        message = f"--save {job.save} holds a network that cannot be read. {remedy}"
        raise UserError("bad-file", message, option="--save", path=job.save) from None
    if record.settings.get("identity") != job.identity:
        description = f"{record.task}, {record.architecture}, seed {record.settings.get('seed')}"
        message = f"--save {job.save} holds another network ({description}). {remedy}"
        raise UserError("mismatch", message, option="--save", path=job.save, task=record.task)


def _record(task: Task, job: EvaluationJob, steps: int) -> Record:
    before = 0 if job.start_folder is None else read_record(Path(job.start_folder)).step
    settings: dict[str, Scalar] = {"reference": job.task, "preset": job.preset, "seed": job.seed}
    settings["identity"] = job.identity
    settings |= {f"recipe.{name}": value for name, value in job.settings}
    if job.data is not None:
        settings["data"] = job.data
    if encoding := task.encoding():
        settings["encoding"] = encoding
    return Record(
        task=task.name,
        task_version=task.version,
        architecture=job.architecture,
        step=before + steps,
        settings=settings,
    )


def read_if_saved(folder: str | Path | None, task: Task) -> nn.Module | None:
    """Read a saved network, on the CPU; return None if there is none or, with a warning, if it is damaged."""
    if folder is None or not has_network(folder):
        return None
    try:
        return read_network(Path(folder), task).eval()
    except UserError as error:
        warnings.warn(Notice(error.kind, f"{error}", **error.fields), stacklevel=2)
        return None


def read_network(folder: Path, task: Task) -> nn.Module:
    """Read a saved network, on the CPU. Raises UserError if it is missing or damaged."""
    with torch.random.fork_rng(devices=[]):  # initial weights are overwritten
        network = network_of(task, read_record(folder))
    load_weights(network, read_weights(folder), str(folder))
    return network


def network_of(task: Task, record: Record) -> nn.Module:
    """Build a record's network. The recipe may change what the task builds, such as the landmarks of its attention."""
    preset = str(record.settings.get("preset"))
    if not isinstance(task, SupervisedTask) or preset not in task.presets:
        return task.build(record.architecture)
    prefix = "recipe."
    changes = {name.removeprefix(prefix): value for name, value in record.settings.items() if name.startswith(prefix)}
    return task.build_for_training(record.architecture, recipe_of(task, preset, tuple(changes.items())))


def rows_with_network(store: Store, study: str, rows: Sequence[Row], key: str) -> list[Row]:
    """Return the rows with this architecture key or identity, or a prefix of either, whose network was saved.

    These are the seeds of one architecture, the best on validation by the task's first metric first.

    Raises:
        UserError: There is no such row, they are of several architectures or tasks, or no network was saved.
    """
    if not key:
        message = "KEY must be the beginning of an architecture's key or of a row's identity, got nothing."
        raise UserError("missing-value", message, option="KEY", value=key)
    matching = [row for row in rows if row.architecture.key.startswith(key) or row.identity().startswith(key)]
    complete = [row for row in matching if row.status == "complete"]
    if not complete:
        keys = sorted({row.architecture.key for row in rows if row.status == "complete"})
        raise unknown_name_error("key", key, keys, of=f"a complete row of study {study!r}")
    with_network = [row for row in complete if has_network(store.network(row.identity()))]
    if not with_network:
        row = complete[0]
        command = f'`nas evaluate {row.task} --preset {row.preset} --seed {row.seed} --arch "{row.architecture}"`'
        message = f"the network of {key} was not saved. Train it again, with the study's --set and --data: {command}"
        raise UserError("missing-file", message, option="KEY", value=key, architecture=str(row.architecture))
    if len({(row.task, row.preset, row.data, row.architecture) for row in with_network}) > 1:
        which_ones = ", ".join(f"{row.identity()} ({row.task}, {row.architecture.topology})" for row in with_network)
        message = f"{key} matches {len(with_network)} networks of study {study!r}. Give one of {which_ones}."
        choices = tuple(row.identity() for row in with_network)
        raise UserError("conflict", message, option="KEY", value=key, choices=choices)
    metric, direction = next(iter(with_network[0].directions.items()))
    return sorted(with_network, key=lambda row: row.metrics[metric], reverse=direction == "max")


def before_training(row: Row) -> str | None:
    """Return a line with the metrics of the starting weights before further training, if the Row has them."""
    if row.start is None or not row.curve:
        return None
    metrics = row.curve[0]["metrics"]
    return f"before training: {', '.join(f'{name} {value:.4g}' for name, value in metrics.items())}"
