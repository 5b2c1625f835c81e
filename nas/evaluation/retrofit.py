"""The origin of a checkpoint, and retrofits: its network with another topology, as the start of a training."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import torch
from torch import nn

from nas.evaluation.saved_networks import check_save_folder, network_of
from nas.request.job import EvaluationJob, is_first_process, reload_task, with_identity
from nas.request.resolve import make_folder
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import Record, read_record, save_checkpoint, weights_of
from search_spaces.models.retrofit import retrofit_checkpoint
from search_spaces.support.errors import UserError, unknown_name_error
from search_spaces.support.spec import Scalar
from search_spaces.topologies.registry import incompatibility_reason
from tasks.base import Task
from tasks.registry import TASKS, kind_of


@dataclass(frozen=True)
class CheckpointSource:
    """The origin of a trained network.

    Attributes:
        folder: Its checkpoint.
        task: The task that it was trained on.
        reference: Text that loads the task.
        preset: The preset of its training, unless another was given.
        data: The `--data` of its training, unless other data was given.
        settings: Overrides of the preset's recipe; none if another preset was given.
    """

    folder: Path
    task: Task
    reference: str
    preset: str
    data: str | None
    settings: Mapping[str, Scalar]


def origin_of(
    checkpoint: Path,
    task: str | None = None,
    preset: str | None = None,
    data: str | None = None,
    load: Callable[[str, str | None], Task] = reload_task,
) -> CheckpointSource:
    """Return the origin of a checkpoint: its record, overridden by the arguments. `load` may cache tasks.

    Raises:
        UserError: The checkpoint has no preset or another task or version, or its task is in a file that was not given.
    """
    record = read_record(checkpoint)
    settings = {name: str(value) for name, value in record.settings.items()}
    preset = preset or settings.get("preset")
    if preset is None:
        message = f"{checkpoint} has no record of its preset. Give a checkpoint that `nas evaluate --save` wrote."
        raise UserError("bad-file", message, path=str(checkpoint), needs="preset")
    reference = task or installed_reference(record, checkpoint)
    data = data if data is not None else settings.get("data")
    loaded_task = load(reference, data)
    check_task(record, {loaded_task.name: loaded_task.version}, checkpoint)
    if preset not in loaded_task.presets:
        raise unknown_name_error("preset", preset, loaded_task.presets, of=f"task {loaded_task.name!r}")
    recipe_settings = {
        name: value for name, value in record.settings.items() if preset == record.settings.get("preset")
    }
    changes = {
        name.removeprefix("recipe."): value for name, value in recipe_settings.items() if name.startswith("recipe.")
    }
    return CheckpointSource(checkpoint.resolve(), loaded_task, reference, preset, data, changes)


def start_architecture(
    checkpoint: Path, task: Task, save: str | Path | None, changes: Mapping[str, str | None]
) -> Architecture:
    """Return the architecture of the checkpoint that a training starts from, of the task or one it can start from.

    Raises:
        UserError: The checkpoint has another task or another encoding, its topology refuses the architecture,
            `changes` of it are given, or `save` would overwrite it.
    """
    for flag, value in changes.items():
        if value:
            message = f"--start cannot be combined with {flag}, got {value!r}. Leave one out."
            raise UserError("conflict", message, option=flag, value=value, excludes="--start")
    record = read_record(checkpoint)
    check_task(record, task.start_tasks(), checkpoint)
    if save is not None and Path(save).resolve() == checkpoint.resolve():
        message = f"--save must be another folder than --start, got {save}."
        raise UserError("conflict", message, option="--save", path=str(save), excludes="--start")
    if reason := incompatibility_reason(record.architecture):
        message = f"{checkpoint} holds {record.architecture}, which cannot be built: {reason}"
        raise UserError("unsupported", message, path=str(checkpoint), architecture=str(record.architecture))
    check_encoding(record, task, checkpoint)
    return record.architecture


def data_of(checkpoint: Path, reference: str) -> str | None:
    """Return the `--data` that a network of this task was trained on; None for another task or without `--data`."""
    settings = read_record(checkpoint).settings
    data = settings.get("data") if settings.get("reference") == reference else None
    return None if data is None else str(data)


def check_task(record: Record, tasks: Mapping[str, int], checkpoint: Path) -> None:
    """Raise UserError if a checkpoint is not of one of these tasks in these versions."""
    if tasks.get(record.task) != record.task_version:
        versions = " or ".join(f"{name!r} version {version}" for name, version in tasks.items())
        message = (
            f"{checkpoint} is of task {record.task!r} version {record.task_version}, expected {versions}. "
            "Give another checkpoint, or train again."
        )
        raise UserError(
            "mismatch",
            message,
            path=str(checkpoint),
            task=record.task,
            version=record.task_version,
            choices=tuple(tasks),
        )


def check_encoding(record: Record, task: Task, checkpoint: Path) -> None:
    """Raise UserError if a network was trained with another tokenizer's ids, whose shapes are the same."""
    if "encoding" in record.settings and record.settings["encoding"] != task.encoding():
        data = record.settings.get("data")
        message = (
            f"{checkpoint} was trained with another tokenizer. Give the data that it was trained on"
            f"{'' if data is None else f' ({data})'}, or that tokenizer."
        )
        raise UserError("mismatch", message, option="tokenizer", path=str(checkpoint), data=data)


def installed_reference(record: Record, checkpoint: Path) -> str:
    """Return the installed task of a checkpoint. Raises UserError for others: a file must not choose code to run."""
    if is_installed(record.task):
        return record.task
    reference = _file_reference(record, checkpoint)
    name = "FILE.py:CLASS" if reference is None else shlex.quote(reference)
    message = f"{checkpoint} is of task {record.task!r}, which is not installed. Give its file: --task {name}."
    fields = {"task": record.task, "path": str(checkpoint), "reference": reference}
    raise UserError("missing-value", message, option="--task", **fields)


def _file_reference(record: Record, checkpoint: Path) -> str | None:
    """Return the task's file and class, if the file exists and did not come with the checkpoint."""
    reference = record.settings.get("reference")
    if not isinstance(reference, str) or kind_of(reference) != "file":
        return None
    file = Path(reference.rpartition(":")[0] or reference).resolve()
    return reference if file.is_file() and not file.is_relative_to(checkpoint.resolve()) else None


def is_installed(task: str) -> bool:
    """Return whether a task can be loaded by its name alone."""
    return task in TASKS.names() or task.startswith("goal:")


def retrofit_job(origin: CheckpointSource, topology: str, job: EvaluationJob) -> EvaluationJob:
    """Return the job of a training that continues with another topology: `job` with architecture and start_folder set.

    Writes the starting checkpoint into the folder of the saved network.

    Raises:
        UserError: The topology does not start as the residual network does, or the folder cannot be created, or it
            holds another network.
    """
    target = Path(str(job.save))
    if target.resolve() == origin.folder:
        message = f"--save must be another folder than the checkpoint, got {target}."
        raise UserError("conflict", message, option="--save", path=str(target), excludes="CHECKPOINT")
    torch.manual_seed(job.seed)  # for the topology's new weights
    record = read_record(origin.folder)
    check_encoding(record, origin.task, origin.folder)

    def build(architecture: Architecture) -> nn.Module:
        return network_of(origin.task, replace(record, architecture=architecture))

    network, start_record = retrofit_checkpoint(origin.folder, topology, build)
    with TemporaryDirectory() as elsewhere:
        save_checkpoint(Path(elsewhere), weights_of(network), start_record)
        job = replace(job, architecture=start_record.architecture, start_folder=elsewhere)
        check_save_folder(with_identity(job))
    make_folder(target)
    start = target / "start" if is_first_process() else Path(mkdtemp())  # two processes must not write the same files
    save_checkpoint(start, weights_of(network), start_record)
    return replace(job, start_folder=str(start))
