"""`nas evaluate` and `nas retrofit`: train one network and print its Row."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import torch

from nas import report
from nas.commands.results import for_a_terminal
from nas.commands.search import architecture_of
from nas.conditioning import refuse
from nas.cost import meta_device
from nas.evaluate import Job, evaluate, first_process, kept_row, task_of
from nas.objectives import known_measures
from nas.options import Format
from nas.profiling.profile import trace_of
from nas.store import slug
from results import export, table
from search_spaces.checkpoint import Record, read_record
from search_spaces.errors import Notice, UserError, unknown
from search_spaces.retrofit import retrofit_checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What an evaluation asked for; the fields are the options of that name."""

    arch: str = ""
    topology: str | None
    preset: str | None
    seed: int
    data: Path | None
    save: Path | None
    render: Path | None = None
    profile: bool = False
    measures: list[str] = field(default_factory=list)
    format: Format
    output: Path | None


def run(reference: str, request: Request) -> None:
    """Evaluate and print."""
    assert request.preset is not None
    task = task_of(reference, request.data)
    architecture = architecture_of(task, request.preset, request.arch, request.topology)
    measures = known_measures(request.measures)
    if "conditioning" in measures:
        with meta_device():
            refuse(task.build(architecture))
    if request.render is not None:
        task.render(None, request.render)
    job = Job(
        task=reference,
        architecture=architecture,
        preset=request.preset,
        seed=request.seed,
        data=None if request.data is None else str(request.data),
        folder=_made(request.save),
        save=request.save is not None,
        profiled=request.profile,
        render=None if request.render is None else str(request.render),
        trace=str(trace_of(task.name, architecture)) if request.profile else None,
        measures=measures,
    )
    _evaluate(job, request)


def retrofit(checkpoint: Path, request: Request) -> None:
    """Turn a trained residual network into one of another topology, train it further and print."""
    assert request.topology is not None
    record = read_record(checkpoint)
    reference, preset, data = _origin(record, checkpoint)
    preset = request.preset or preset
    data = str(request.data) if request.data is not None else data
    task = task_of(reference, data)
    if record.task_version != task.version:
        versions = f"{record.task_version}, this is version {task.version}"
        raise UserError(f"{checkpoint} is of task {task.name!r} version {versions}. Train the residual network again.")
    if preset not in task.presets:
        raise unknown(f"preset of task {task.name!r}", preset, task.presets)
    checkpoint = checkpoint.resolve()
    save = request.save or checkpoint.with_name(f"{checkpoint.name}-{slug(request.topology)}")
    if save.resolve() == checkpoint:
        raise UserError(f"--save must be another folder than the checkpoint, got {save}.")
    folder = _made(save)
    torch.manual_seed(request.seed)  # of what the topology adds
    start = save / "start" if first_process() else Path(mkdtemp())  # two must not write the same files
    architecture = retrofit_checkpoint(checkpoint, request.topology, task.build, start).architecture
    job = Job(
        task=reference,
        architecture=architecture,
        preset=preset,
        seed=request.seed,
        data=data,
        start=str(start),
        folder=folder,
        save=True,
    )
    _evaluate(job, request)


def _evaluate(job: Job, request: Request) -> None:
    """Evaluate and print; a failed evaluation is printed too, and then is a UserError."""
    for_terminal = for_a_terminal(request.format, request.output)
    if kept_row(job) is not None and first_process():
        kept = f"{job.folder} holds this very evaluation, which is shown. Remove the folder to train again."
        warnings.warn(kept, Notice, 2)
    row = evaluate(job)
    if not first_process():
        return
    if job.start is not None and row.curve:
        report.screen(stderr=True).print(f"before training: {_metrics(row.curve[0])}", highlight=False, markup=False)
    if for_terminal:
        report.print_record(report.screen(), row.columns())
    else:
        export.write(table.from_rows([row]), request.format.value, request.output)
    if row.status == "failed":
        raise UserError(f"the evaluation failed: {row.error}")


def _origin(record: Record, checkpoint: Path) -> tuple[str, str, str | None]:
    """The task as it was asked for, the preset and the data that a network was trained with."""
    settings = {name: str(value) for name, value in record.settings.items()}
    if "preset" not in settings:
        raise UserError(f"{checkpoint} does not say how it was trained. Take one that `nas evaluate --save` wrote.")
    return settings.get("reference", record.task), settings["preset"], settings.get("data")


def _metrics(point: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in point.items() if name != "step")


def _made(folder: Path | None) -> str | None:
    """A folder that can be written to, made where it is not there: before hours of training, not after."""
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--save must be a folder that can be made, got {folder} ({error.strerror}).") from error
    return str(folder)
