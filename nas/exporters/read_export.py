"""Read an exported graph, .pt2 or .onnx, as a function of tensors, with what its metadata says of its inputs."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nas.exporters.formats import onnx_packages
from search_spaces.support.errors import UserError, reason_of
from search_spaces.support.files import check_regular_file, kind_of_read_error
from tasks.input_formats import InputFormat, from_json


@dataclass(frozen=True, slots=True)
class Predictor:
    """A trained network as a function.

    Attributes:
        scores: Maps inputs of the format to the network's outputs, for one or more examples.
        input_format: What it takes; None if unknown.
        class_names: Class names in the order of the scores; empty if unknown.
    """

    scores: Callable[[Tensor], Tensor]
    input_format: InputFormat | None
    class_names: tuple[str, ...]


def read_export(path: Path) -> Predictor:
    """Read an exported graph.

    Raises:
        UserError: Another kind of file, a file that cannot be read, or missing packages.
    """
    read = {".pt2": _read_pt2, ".onnx": _read_onnx}.get(path.suffix)
    if read is None:
        message = f"NETWORK must be a .pt2 or .onnx file, or a folder of a trained network, got {str(path)!r}."
        raise UserError("unsupported", message, option="NETWORK", path=str(path), choices=(".pt2", ".onnx"))
    try:
        check_regular_file(path)
        scores, metadata = read(path)
        return Predictor(scores, from_json(metadata["inputs"]), tuple(json.loads(metadata["classes"])))
    except UserError:
        raise
    except Exception as error:  # torch and onnxruntime raise many kinds
        message = f"{path} is no network that `nas export` wrote: {reason_of(error):.200}. Export it again."
        raise UserError(kind_of_read_error(error), message, path=str(path), cause=type(error).__name__) from error


def _read_pt2(path: Path) -> tuple[Callable[[Tensor], Tensor], dict[str, str]]:
    metadata = {"inputs": "", "classes": ""}
    module = torch.export.load(path, extra_files=metadata).module()
    return torch.no_grad()(lambda inputs: module(inputs)), metadata


def _read_onnx(path: Path) -> tuple[Callable[[Tensor], Tensor], dict[str, str]]:
    _, runtime = onnx_packages()
    session: Any = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    metadata = dict(session.get_modelmeta().custom_metadata_map)
    return lambda inputs: torch.from_numpy(session.run(None, {name: inputs.numpy()})[0]), metadata
