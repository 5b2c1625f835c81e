"""The contract of a task, and the results of its training."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import Repr
from typing import Any, ClassVar, Literal

from torch import nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.count import Count, Handlers
from search_spaces.support.errors import Notice, UserError
from tasks.data.batches import Inputs
from tasks.input_formats import InputFormat
from tasks.run import Run

_SHORT = Repr()
_SHORT.maxother = _SHORT.maxstring = 80


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that a task reports on its validation and test splits.

    Attributes:
        name: Column in the results; its standard error, if there is one, is `<name>_se`.
        unit: "share", "nats", "steps" ...
        direction: "max" if higher is better, "min" if lower is better.
    """

    name: str
    unit: str
    direction: Literal["max", "min"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitResult:
    """The result of training one architecture.

    Attributes:
        steps: Optimizer steps taken.
        metrics: Validation metrics: every metric of the task, `<metric>_se` if there is a standard error, nothing else.
        test: The same metrics on the test split; empty if the training was stopped early.
        extra_metrics: Other facts about the data or the network (skipped_documents, env_steps).
        speeds: Throughput per second. Ignored when results are compared, since it varies between runs.
        network: The trained network, with the parameter names of `Task.build`; None if the task does not return it.
        network_steps: Steps that `network` was trained for; None if `steps`.

    Values may be one-element tensors or NumPy scalars; they are converted to Python numbers. A value of `extra_metrics`
    or `speeds` that is not a number is dropped with a Notice, so that it cannot fail a training.

    Raises:
        TypeError, ValueError: A field has the wrong type; the message names it and its value.
    """

    steps: int
    metrics: Mapping[str, float]
    test: Mapping[str, float] = field(default_factory=dict)
    extra_metrics: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict, compare=False)
    network: nn.Module | None = field(default=None, compare=False, repr=False)
    network_steps: int | None = None

    def __post_init__(self) -> None:
        if self.network is not None and not isinstance(self.network, nn.Module):
            raise TypeError(f"FitResult.network must be a torch.nn.Module or None, got {_SHORT.repr(self.network)}")
        steps = _number(self.steps, "FitResult.steps")
        if not (steps.is_integer() and 0 <= steps < 2**63):
            raise ValueError(
                f"FitResult.steps must be a whole number of at most 64 bits, got {_SHORT.repr(self.steps)}"
            )
        object.__setattr__(self, "steps", int(self.steps))
        for name in ("metrics", "test"):
            object.__setattr__(self, name, plain_numbers(getattr(self, name), f"FitResult.{name}"))
        for name in ("extra_metrics", "speeds"):
            object.__setattr__(self, name, plain_numbers(getattr(self, name), f"FitResult.{name}", skip_invalid=True))


def plain_numbers(values: Any, name: str, *, skip_invalid: bool = False) -> dict[str, float]:
    """Convert a mapping to floats. Raises TypeError for invalid entries, or drops them with a Notice."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} must be a mapping from names to numbers, got {_SHORT.repr(values)}")
    numbers = {}
    for key, value in values.items():
        try:
            numbers[_name(key, name)] = _number(value, f"{name}[{key!r}]")
        except TypeError as error:
            if not skip_invalid:
                raise
            warnings.warn(Notice("skipped", f"{error}; it is skipped.", option=f"{name}[{key!r}]"), stacklevel=3)
    return numbers


def _name(key: Any, name: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"names in {name} must be text, got {_SHORT.repr(key)}")
    return key


def _number(value: Any, name: str) -> float:
    """Return a float. Raises TypeError for text and for arrays of several elements."""
    if not isinstance(value, str | bytes):
        with suppress(TypeError, ValueError, OverflowError, RuntimeError):
            return float(value)
    raise TypeError(f"{name} must be one number, got {_SHORT.repr(value)}")


class Diverged(RuntimeError):
    """The error raised if the training loss is not finite."""


class Task(ABC):
    """A learning problem: data, objective, training and metrics.

    Each process constructs a task once, as `Task(data)`. A subclass fits in one file.

    Attributes:
        name: Name used on the command line.
        version: Raise it when the task changes: Rows of different versions are never compared.
        metrics: What the task reports; the first is the primary metric.
        base: The architecture that spaces vary.
        presets: Name -> recipe, a frozen dataclass whose `str` is one line. "smoke" takes a few seconds on one core and
            "proxy" about a minute; "paper" is the published recipe.
        bases: Preset -> the architecture that it was published for, if that is not `base`.
        handlers: Operator ("aten::fft_rfft") -> a function from the shapes of its inputs and outputs to
            multiply-accumulates, or None if it has no matrix work. For operators that `nas cost` does not know.
        takes_data: Whether the task accepts `--data`.
        reports_intermediate: Whether trainings report metrics before the end, so that they can be paused or stopped.
        unused_with_start: Recipe settings that have no effect if a training starts from given weights.
        data: The folder or name given by `--data`, or None for the default.

    Raises:
        UserError: `data` is given, but `takes_data` is false.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    metrics: ClassVar[tuple[Metric, ...]]
    base: ClassVar[Architecture]
    presets: ClassVar[Mapping[str, Any]]
    bases: ClassVar[Mapping[str, Architecture]] = {}
    handlers: ClassVar[Handlers] = {}
    takes_data: ClassVar[bool] = True
    reports_intermediate: ClassVar[bool] = True
    unused_with_start: ClassVar[tuple[str, ...]] = ()

    def __init__(self, data: Path | None = None) -> None:
        if data is not None and not self.takes_data:
            message = f"task {self.name!r} has built-in data and takes no --data, got {str(data)!r}."
            raise UserError("unsupported", message, option="--data", value=str(data), task=self.name)
        self.data = data

    def base_for(self, preset: str) -> Architecture:
        """Return the architecture that `--arch` changes and spaces vary, under a preset."""
        return self.bases.get(preset, self.base)

    def metrics_for(self, recipe: Any) -> tuple[Metric, ...]:
        """Return the metrics reported under a recipe: all, or a part of `metrics` with the same first one."""
        return self.metrics

    def prepare(self) -> None:
        """Prepare what every training needs, before the first one. Raises UserError if that is impossible."""
        return None

    def check_recipe(self, recipe: Any) -> None:
        """Check that the data allows trainings by a recipe, before the first one. Raises UserError if it does not."""
        return None

    def check_data(self, recipe: Any) -> None:
        """Check that a recipe's data fits the networks, before the first training. Raises UserError if it does not."""
        return None

    @abstractmethod
    def build(self, architecture: Architecture) -> nn.Module:
        """Build the network on the default device. Parameter names mark `embedding.` and `.topology.` parts."""

    @abstractmethod
    def example(self) -> Inputs:
        """Return network inputs for one example, on the default device. Costs are counted with them."""

    @abstractmethod
    def fingerprint(self, recipe: Any) -> str:
        """Return hex digits that identify the data of a training by this recipe."""

    def inputs(self, recipe: Any) -> Inputs:
        """Return network inputs for a few validation examples, on the CPU. Trained networks are profiled with them."""
        return self.example()

    def input_format(self) -> InputFormat | None:
        """Return what users give a trained network, before `preprocess`; None if that is what `build` takes."""
        return None

    def preprocess(self, inputs: Any) -> Any:
        """Map inputs of `input_format` to those of the network, by tensor operations on any number of examples."""
        return inputs

    def class_names(self) -> tuple[str, ...]:
        """Return the classes in the order of the network's scores; empty if it has none or they have no names."""
        return ()

    def closed_form(self, architecture: Architecture) -> Count | None:
        """Return the closed-form parameters and MACs for one example, or None if there is no closed form."""
        return None

    def encoding(self) -> str:
        """Return what identifies the meaning of inputs beyond the version: for text, the tokenizer's fingerprint."""
        return ""

    def start_tasks(self) -> Mapping[str, int]:
        """Return the tasks whose trained networks can initialize this one, as name -> version."""
        return {self.name: self.version}

    def fixed_space(self) -> SearchSpace | None:
        """Return the task's only space, if it replays recorded trainings; None if any space will do."""
        return None

    def seeds(self, architecture: Architecture) -> tuple[int, ...] | None:
        """Return the only seeds available for an architecture; None if any will do."""
        return None

    def known_costs(self, architecture: Architecture) -> Mapping[str, Any] | None:
        """Return known costs by the names of a Row's costs; None if the network must be counted."""
        return None

    @abstractmethod
    def fit(self, run: Run) -> FitResult:
        """Train and evaluate one architecture.

        The result depends only on the run's architecture, recipe, seed and start, and on the data.

        Each report, and the FitResult, must have all metrics of `metrics_for`; a training without reports is allowed.

        If `run.report` returns STOP, the training ends. The FitResult has that step, the metrics just reported and no
        test, and a checkpoint stays in the run's folder. A later `fit` of the same run in the same folder repeats the
        reports and resumes; on a CPU the numbers equal those of an uninterrupted training. An interrupted training
        resumes in the same way. A finished training leaves no files.

        Raises:
            Diverged: The loss is not finite.
            UserError: `run.start` does not fit, or the task cannot start from given weights.
        """

    def training_step(self, run: Run) -> Callable[[], None]:
        """Return a function that takes one training step per call on the run's device, for profiling.

        The step uses the task's own data, batch, loss, recipe, optimizer, precision and compilation.

        Raises:
            NotImplementedError: The task does not support it.
        """
        raise NotImplementedError(f"task {self.name!r} does not implement training_step.")

    def render(self, network: nn.Module | None, file: Path) -> None:
        """Render what a trained network does, as a film or picture in `file`.

        With `network=None` nothing is drawn: the call only checks that rendering is possible, before hours of training.

        Raises:
            UserError: The task has nothing to render, or rendering is not possible here.
        """
        message = f"task {self.name!r} has nothing to render."
        raise UserError("unsupported", message, option="--render", task=self.name)

    def baselines(self, recipe: Any) -> Mapping[str, Mapping[str, float]]:
        """Return simple methods to compare with: name -> metrics, as columns ("accuracy", "test_accuracy")."""
        return {}
