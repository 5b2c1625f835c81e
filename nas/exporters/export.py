"""Exports of trained networks: graphs, weights, and folders that timm and transformers load.

Each is checked before it appears at its place. The check loads it again and compares its outputs with the network's,
for the example and for random inputs of several sizes. The difference of a tensor is its largest error, divided by the
largest magnitude of the network's output.
"""

import copy
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nas.costs.random_inputs import RandomInputs
from nas.evaluation.saved_networks import read_network
from nas.evaluation.trained_network import TrainedNetwork
from nas.exporters.destination import FILES, Destination
from nas.exporters.export_format import DynamicAxes, ExportError, ExportFormat, Forward, class_names_of, run_export_step
from nas.exporters.formats import FORMATS, format_for
from results.records.row import Row
from search_spaces.architecture.checkpoint import Record, read_record
from search_spaces.support.errors import UserError
from search_spaces.support.files import unwritable
from tasks.base import Task
from tasks.data.batches import Inputs, call, map_tensors, tensors
from tasks.input_formats import InputFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """An exported file or folder and the result of its check.

    Attributes:
        format: The name of its format in FORMATS.
        file: The file or folder.
        size: Its size in bytes.
        params: Number of weights.
        inputs: Type, shape and meaning of each input: "uint8 [batch, 3, 32, 32], RGB pixels from 0 to 255".
        input_format: What its preprocessing takes; None without preprocessing.
        class_names: Class names in the order of the scores; empty if unknown or without preprocessing.
        axes: Axes of a graph's inputs that may have any length: "batch", "tokens". Others have the example's length.
        num_inputs: Number of inputs that it was checked with.
        difference: Largest difference of outputs, relative to the largest output.
        tolerance: Largest difference allowed.
        row: The row of its training, if known.
        num_seeds: Number of saved seeds of which it is the best.
        repository: The hub's repository "USER/NAME" that it is for; None without an upload.
        url: The address of that repository, once it is uploaded.
    """

    format: str
    file: Path
    size: int
    params: int
    inputs: str
    input_format: InputFormat | None
    class_names: tuple[str, ...]
    axes: DynamicAxes
    num_inputs: int
    difference: float
    tolerance: float
    row: Row | None = field(default=None, repr=False)
    num_seeds: int = 1
    repository: str | None = None
    url: str | None = None

    def __str__(self) -> str:
        free = f", dynamic {' and '.join(self.axes)}" if self.axes else ""
        same = f"outputs differ by at most {self.difference:.1e}" if self.difference else "outputs are bit-identical"
        return f"{self.file}: {self.params:,} weights, {self.size:,} bytes{free}; {same} for {self.num_inputs} inputs"


def export_folder(folder: Path, to: Destination, task: Task, *, raw: bool = False) -> ExportReport:
    """Export a saved network, a folder of `search_spaces.architecture.checkpoint`, as `export` does.

    The export includes the task's preprocessing unless `raw`, and then takes the task's input format. For a repository
    of the hub, the network determines the format.

    The record's settings name its preset, and as `recipe.FIELD` the fields that override it. Fixed sizes, such as a
    text's length, are those of `task.example()`.

    Raises:
        UserError: The folder is no checkpoint, or one of another task or version, or as `export`.
    """
    record = read_record(folder)
    if (record.task, record.task_version) != (task.name, task.version):
        description = f"{record.task!r} version {record.task_version}"
        message = f"{folder} holds a network of task {description}, got {task.name!r} version {task.version}."
        fields = {"task": record.task, "version": record.task_version, "expected": (task.name, task.version)}
        raise UserError("mismatch", message, path=str(folder), **fields)
    network = read_network(folder, task)
    if to.format is None:
        name = format_for(network, record)
        to = replace(to, format=name, path=to.path / "network.pt2" if name in FILES else to.path)
    if raw or to.format == ".safetensors":  # which need no data, as a text's tokenizer would
        return export(network, task.example(), to, record)
    trained = TrainedNetwork(network, task)
    return export(network if trained.input_format is None else trained, trained.example(), to, record)


def export(network: nn.Module, example: Inputs, to: Destination, record: Record) -> ExportReport:
    """Write a network to a file, which replaces an existing one, or to a new folder.

    Exports are of a copy in evaluation mode, on the CPU and in fp32 or fp64. They take any number of examples, and if
    possible token ids of any length up to the example's.

    Raises:
        UserError: Missing packages, a file or folder that cannot be written, or a network without an exact export. Then
            an existing file stays as it was.
    """
    assert to.format is not None
    kind = FORMATS[to.format]
    kind.needs()
    try:
        kind.check(network, record)
        with kind.output(to.path) as partial, torch.random.fork_rng(devices=[]):
            fields = _write_and_check(_for_export(network), example, partial, record, kind)
    except ExportError as cause:
        *others, last = (ending for ending in FILES if ending != to.format)
        message = f"this network cannot be exported to {to.path.name}: {cause}. Try {', '.join(others)} or {last}."
        raise UserError("unsupported", message, option="--to", path=str(to.path), **cause.fields) from cause
    except OSError as error:
        raise unwritable(to.path, error, "--to") from error
    return ExportReport(
        format=to.format,
        file=to.path,
        size=sum(path.stat().st_size for path in (to.path, *to.path.glob("*")) if path.is_file()),
        params=sum(parameter.numel() for parameter in network.parameters()),
        inputs=kind.inputs(network, example, fields["axes"]),
        input_format=kind.input_format(network),
        class_names=class_names_of(network),
        repository=to.repository,
        **fields,
    )


def _write_and_check(
    network: nn.Module, example: Inputs, partial: Path, record: Record, kind: ExportFormat
) -> dict[str, Any]:
    """Write the file with as many free axes as possible, and return the results of its check."""
    draws = RandomInputs(network, map_tensors(example, _at_least_fp32))
    errors: list[ExportError] = []
    for axes in kind.axes(draws):
        try:
            forward = kind.write(network, draws, axes, partial, record)
            samples = _inputs(draws, axes)
            difference = max(_difference(network, forward, sample) for sample in samples)
            if difference > kind.tolerance:
                gap = f"its outputs differ by {difference:.1e} relative to the largest"
                message = f"{gap}, at most {kind.tolerance:g} is allowed"
                raise ExportError(message, problem="difference", difference=difference, most=kind.tolerance)  # noqa: TRY301
        except ExportError as error:
            errors.append(error)
        else:
            return {"axes": axes, "num_inputs": len(samples), "difference": difference, "tolerance": kind.tolerance}
    raise errors[-1]


def _inputs(draws: RandomInputs, axes: DynamicAxes) -> list[Inputs]:
    """Return the example and random inputs of several batch sizes and lengths: odd, short and full."""
    sizes = (1, 2, 3, 5) if "batch" in axes else (None,) * 4
    most = draws.tokens if "tokens" in axes else 0
    lengths = sorted({1, 2, 3, most // 3, most // 2, most - 1, most} & set(range(1, most + 1)))
    return [draws.example, *(draws.draw(size) for size in sizes), *(draws.draw(tokens=length) for length in lengths)]


def _difference(network: nn.Module, forward: Forward, inputs: Inputs) -> float:
    """Return the largest difference of the file's outputs, relative to each tensor's largest magnitude."""
    references = run_export_step(lambda: tensors(torch.no_grad()(call)(network, inputs)))
    if not all(x.isfinite().all() for x in references):
        raise ExportError("its outputs are not finite", problem="not-finite")
    outputs = run_export_step(forward, inputs)
    if [x.shape for x in outputs] != [x.shape for x in references]:
        shapes = [[list(x.shape) for x in group] for group in (outputs, references)]
        raise ExportError(f"its outputs have shapes {shapes[0]}, the network's {shapes[1]}", problem="shapes")
    largest_difference = 0.0
    for output, reference in zip(outputs, references, strict=True):
        if reference.numel():
            scale = reference.abs().max().item()
            difference = ((output.double() - reference.double()).abs().max() / (scale or 1.0)).item()
            largest_difference = max(largest_difference, math.inf if math.isnan(difference) else difference)
    return largest_difference


def _for_export(network: nn.Module) -> nn.Module:
    """Return a copy in evaluation mode, on the CPU and in fp32 or fp64."""
    twin = copy.deepcopy(network).cpu().eval().requires_grad_(False)
    return twin.float() if any(_at_least_fp32(x) is not x for x in twin.parameters()) else twin


def _at_least_fp32(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
