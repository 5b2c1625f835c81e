"""Export formats by name, and how each file is written and loaded again."""

import copy
import math
from collections.abc import Mapping
from importlib import import_module
from json import dumps
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, ShapesCollection

from nas.costs.random_inputs import RandomInputs
from nas.exporters.counterpart import provenance
from nas.exporters.destination import TIMM, TRANSFORMERS
from nas.exporters.export_format import (
    TOLERANCE,
    DynamicAxes,
    ExportError,
    ExportFormat,
    Forward,
    class_names_of,
    input_format_of,
    run_export_step,
)
from nas.exporters.output import new_folder
from nas.exporters.timm_checkpoint import check_timm, describe_timm_inputs, timm_input_format, write_timm
from nas.exporters.transformers_checkpoint import check_transformers, transformers_package, write_transformers
from search_spaces.architecture.checkpoint import Record, load_weights, weights_of
from search_spaces.support.errors import UserError
from tasks.data.batches import Inputs, call, tensors
from tasks.input_formats import to_json

MAX_ONNX_BYTES = 2**31 - 2**24
"""Most bytes of weights in one ONNX file, with room for the graph."""

_PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def _safetensors(network: nn.Module, draws: RandomInputs, axes: DynamicAxes, path: Path, record: Record) -> Forward:
    """Write the weights, and load them into a copy without weights."""
    how = (
        "network = tasks.load.load_task(task, None).build(search_spaces.Architecture(**architecture)); "
        "search_spaces.architecture.checkpoint.load_weights(network, safetensors.torch.load_file(FILE), FILE)"
    )
    weights = {name: x.contiguous() for name, x in weights_of(network).items()}
    run_export_step(save_file, weights, path, metadata={"format": "pt", **_metadata(network, record, how)})
    empty = copy.deepcopy(network)
    with torch.no_grad():
        for x in weights_of(empty).values():
            x.fill_(math.nan if x.is_floating_point() else 0)
    load_weights(empty, load_file(path), path.name)
    return torch.no_grad()(lambda inputs: tensors(call(empty, inputs)))


def _pt2(network: nn.Module, draws: RandomInputs, axes: DynamicAxes, path: Path, record: Record) -> Forward:
    metadata = _metadata(network, record, "torch.export.load(FILE).module()")
    run_export_step(torch.export.save, _program(network, draws, axes), path, extra_files=metadata)
    module = run_export_step(lambda: torch.export.load(path).module())
    return torch.no_grad()(lambda inputs: tensors(call(module, inputs)))


def _onnx(network: nn.Module, draws: RandomInputs, axes: DynamicAxes, path: Path, record: Record) -> Forward:
    onnx, runtime = onnx_packages()
    weights = sum(x.numel() * x.element_size() for x in weights_of(network).values())
    if weights > MAX_ONNX_BYTES:
        message = f"an ONNX file has at most 2 GiB, and the weights have {weights:,} bytes"
        raise ExportError(message, problem="size", bytes=weights)
    with torch.no_grad():
        count = len(tensors(call(network, draws.example)))
    program = _program(network, draws, axes)
    names = [str(name) for name in program.graph_signature.user_inputs]
    outputs = ["output"] if count == 1 else [f"output_{i}" for i in range(count)]
    onnx_program = run_export_step(
        lambda: torch.onnx.export(program, dynamo=True, verbose=False, input_names=names, output_names=outputs)
    )
    for node in onnx_program.model.graph.all_nodes():
        node.metadata_props.clear()  # stack traces are more than half of the file
    _name_axes(onnx_program.model, draws, axes)
    onnx_program.model.metadata_props.update(
        _metadata(network, record, "onnxruntime.InferenceSession(FILE).run(None, {input: array})")
    )
    run_export_step(onnx_program.save, path, external_data=False)
    run_export_step(onnx.checker.check_model, str(path), full_check=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = torch.get_num_threads(), 4
    session = run_export_step(runtime.InferenceSession, str(path), options, providers=["CPUExecutionProvider"])

    def run(inputs: Inputs) -> list[Tensor]:
        arrays = dict(zip(names, (x.numpy() for x in tensors(inputs)), strict=True))
        input_names = {node.name for node in session.get_inputs()}  # unused inputs are dropped from the graph
        return [torch.from_numpy(y) for y in session.run(None, {k: x for k, x in arrays.items() if k in input_names})]

    return run


def _dynamic_axes_to_try(draws: RandomInputs) -> list[DynamicAxes]:
    return [("batch", "tokens"), ("batch",), ()] if draws.sequences else [("batch",), ()]


def _program(network: nn.Module, draws: RandomInputs, axes: DynamicAxes) -> ExportedProgram:
    """Trace the network's graph, with two examples: torch takes a length of one for a constant."""
    inputs = draws.draw(2) if "batch" in axes else draws.example
    shapes = ShapesCollection()
    for x, example in zip(tensors(inputs), tensors(draws.example), strict=True):
        if free := {axis: Dim.DYNAMIC for axis, name in draws.axes(example).items() if name in axes}:
            shapes[x] = free
    is_mapping = isinstance(inputs, Mapping)
    program: ExportedProgram = run_export_step(
        torch.export.export,
        network,
        () if is_mapping else tuple(tensors(inputs)),
        inputs if is_mapping else None,
        dynamic_shapes=shapes if axes else None,
    )
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # no paths of this machine in the file
    return program


def _name_axes(model: Any, draws: RandomInputs, axes: DynamicAxes) -> None:
    """Name the free axes in an ONNX graph."""
    names: dict[Any, str] = {}
    for value, x in zip(model.graph.inputs, tensors(draws.example), strict=True):
        names |= {value.shape[axis].value: name for axis, name in draws.axes(x).items() if name in axes}
    values = (value for node in model.graph.all_nodes() for value in node.outputs)
    for value in (*model.graph.inputs, *values):
        for axis, length in enumerate(value.shape or ()):
            if getattr(length, "value", None) in names:
                value.shape[axis] = names[length.value]


def onnx_packages() -> tuple[Any, Any]:
    """Return the modules onnx and onnxruntime. Raises UserError if one is missing, or onnxscript, which torch needs."""
    try:
        onnx, _, runtime = map(import_module, _PACKAGES)
    except ImportError as error:
        install = 'an .onnx file needs more packages: pip install ".[onnx]"'
        raise UserError("needs-extra", f"{install} ({error}).", extra="onnx") from error
    return onnx, runtime


def _metadata(network: nn.Module, record: Record, how_to_load: str) -> dict[str, str]:
    """Return a file's metadata as text; architecture, inputs and classes are JSON."""
    return {
        "inputs": to_json(input_format_of(network)),
        "classes": dumps(class_names_of(network)),
        "how_to_load": how_to_load,
        **{name: value if isinstance(value, str) else dumps(value) for name, value in provenance(record).items()},
    }


FORMATS: Mapping[str, ExportFormat] = {
    ".pt2": ExportFormat(_pt2, _dynamic_axes_to_try, TOLERANCE),
    ".onnx": ExportFormat(_onnx, _dynamic_axes_to_try, TOLERANCE, onnx_packages),
    ".safetensors": ExportFormat(_safetensors, lambda draws: [()], 0.0),
    TIMM: ExportFormat(
        write_timm,
        lambda draws: [("batch",)],
        TOLERANCE,
        check=check_timm,
        output=new_folder,
        inputs=describe_timm_inputs,
        input_format=timm_input_format,
    ),
    TRANSFORMERS: ExportFormat(
        write_transformers,
        lambda draws: [("batch", "tokens")],
        TOLERANCE,
        transformers_package,
        check=check_transformers,
        output=new_folder,
    ),
}
"""Name of a format, as in Destination -> format."""


def format_for(network: nn.Module, record: Record) -> str:
    """Return the format of a network on the hub: that of a library that has its counterpart, else .pt2."""
    for name in (TIMM, TRANSFORMERS):
        try:
            FORMATS[name].check(network, record)
        except ExportError:
            continue
        return name
    return ".pt2"
