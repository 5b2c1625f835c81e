"""What an export format is, and how its steps report errors."""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from nas.costs.random_inputs import RandomInputs
from nas.evaluation.trained_network import TrainedNetwork
from nas.exporters.output import new_file
from search_spaces.architecture.checkpoint import Record
from tasks.data.batches import Inputs, describe
from tasks.input_formats import InputFormat

TOLERANCE = 1e-5
"""Largest relative difference of outputs; safetensors must match bit for bit."""

Forward = Callable[[Inputs], list[Tensor]]
DynamicAxes = tuple[str, ...]


class ExportError(Exception):
    """An export that fails; `fields` are for programs: `problem`, a word, or `cause`."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.fields = fields


def describe_inputs(network: nn.Module, example: Inputs, axes: DynamicAxes) -> str:
    """Return type, shape and meaning of a network's inputs."""
    return str(network.input_format) if isinstance(network, TrainedNetwork) else describe(example, axes)


def inner_network(network: nn.Module) -> nn.Module:
    """Return the network that was trained, without its task's preprocessing."""
    return network.network if isinstance(network, TrainedNetwork) else network


def input_format_of(network: nn.Module) -> InputFormat | None:
    """Return what a network's preprocessing takes; None without preprocessing."""
    return network.input_format if isinstance(network, TrainedNetwork) else None


def class_names_of(network: nn.Module) -> tuple[str, ...]:
    """Return class names in the order of the scores; none if unknown or without preprocessing."""
    return network.class_names if isinstance(network, TrainedNetwork) else ()


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """An export format.

    Attributes:
        write: Writes the file or folder, loads it again and returns a function that calls it.
        axes: Free axes to try, the most first.
        tolerance: Largest relative difference of outputs.
        needs: Raises a UserError if packages are missing.
        check: Raises an ExportError if the format cannot hold such a network.
        output: Yields the path to write, and moves what was written to its place.
        inputs: Describes the inputs of what was written.
        input_format: Returns what the preprocessing in it takes; None without preprocessing.
    """

    write: Callable[[nn.Module, RandomInputs, DynamicAxes, Path, Record], Forward]
    axes: Callable[[RandomInputs], Sequence[DynamicAxes]]
    tolerance: float
    needs: Callable[[], object] = tuple
    check: Callable[[nn.Module, Record], object] = lambda network, record: None
    output: Callable[[Path], AbstractContextManager[Path]] = new_file
    inputs: Callable[[nn.Module, Inputs, DynamicAxes], str] = describe_inputs
    input_format: Callable[[nn.Module], InputFormat | None] = input_format_of


def run_export_step(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run `work` without warnings and logs; whatever it raises becomes an ExportError that quotes the root cause."""
    try:
        with warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            return work(*args, **kwargs)
    except Exception as error:
        root: BaseException = error
        while root.__cause__ is not None:
            root = root.__cause__
        reason = next((line.strip() for line in str(root).splitlines() if line.strip()), "")
        name = type(root).__name__
        raise ExportError(f"{name}: {reason}".rstrip(": ."), cause=name) from error


@contextmanager
def _quiet() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
