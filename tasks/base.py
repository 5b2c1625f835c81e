"""What a task is: the contract between the search and whatever is learnt."""

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
from tasks.run import Run

_SHORT = Repr()
_SHORT.maxother = _SHORT.maxstring = 80


@dataclass(frozen=True, slots=True)
class Metric:
    """What a task measures on its validation and test splits.

    Attributes:
        name: Column in the results; its standard error, where there is one, is `<name>_se`.
        unit: "share", "nats", "steps" ...
        direction: Whether more or less of it is better.
    """

    name: str
    unit: str
    direction: Literal["max", "min"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitResult:
    """The result of training one architecture.

    Attributes:
        steps: Optimiser steps taken.
        metrics: On validation: every metric of the task, `<metric>_se` where there is a standard error, nothing else.
        test: The same on the test split; empty where the training was stopped on the way.
        extra_metrics: What else was learnt of data or network (skipped_documents, env_steps), which is no metric.
        speeds: What the training did in a second; they differ each time, and two FitResult may be equal.
        network: The trained network, with the parameters of `Task.build`'s; None where the task does not give it.
        network_steps: Those of the steps that the network has behind it; None where it is all of them.

    Numbers may be tensors or NumPy's of one element: they become plain ones. Of `extra_metrics` and `speeds`, what is
    no number is left out with a Notice: what is told beside the metrics takes no training with it.

    Raises:
        TypeError, ValueError: A field is not of its kind; names it and its value.
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
    """Text -> plain number. What is no number raises, or is left out with a Notice."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} must be a mapping from names to numbers, got {_SHORT.repr(values)}")
    numbers = {}
    for key, value in values.items():
        try:
            numbers[_name(key, name)] = _number(value, f"{name}[{key!r}]")
        except TypeError as error:
            if not skip_invalid:
                raise
            warnings.warn(Notice("skipped", f"{error}; it is left out.", option=f"{name}[{key!r}]"), stacklevel=3)
    return numbers


def _name(key: Any, name: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"names in {name} must be text, got {_SHORT.repr(key)}")
    return key


def _number(value: Any, name: str) -> float:
    """A plain number. Raises TypeError naming what is none: text, or an array of more elements than one."""
    if not isinstance(value, str | bytes):
        with suppress(TypeError, ValueError, OverflowError, RuntimeError):
            return float(value)
    raise TypeError(f"{name} must be one number, got {_SHORT.repr(value)}")


class Diverged(RuntimeError):
    """Training gave a loss that is not finite."""


class Task(ABC):
    """Something to learn. A subclass is one file; it is constructed as `Task(data)` once for each process.

    Attributes:
        name: How people ask for it; a revised task takes a new version.
        version: Rows of different versions are never compared.
        metrics: What it measures, the first one being what people mean by "how good".
        base: The architecture that spaces are laid out around.
        presets: Name -> settings of a training run, a frozen dataclass whose `str` is one line. "smoke" takes
            a few seconds of one core and "proxy" about a minute; "paper" is the published recipe.
        bases: Preset -> the architecture that it was published for, where that is not `base`.
        handlers: Operator ("aten::fft_rfft") -> what counts its multiply-accumulates from the shapes of its inputs and
            of its outputs, or None where it has no matrix work; for operators of the task's networks that `nas cost`
            does not know.
        takes_data: Whether `--data` is for it.
        reports_intermediate: Whether its trainings report metrics on the way, so that they can be paused or stopped.
        unused_with_start: The settings of its recipes that say nothing where a training begins with given weights.
        data: The folder or name given by `--data`, or None for the default.

    Raises:
        UserError: Data for a task that has its own.
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
            message = f"task {self.name!r} has its data built in and takes no --data, got {str(data)!r}."
            raise UserError("unsupported", message, option="--data", value=str(data), task=self.name)
        self.data = data

    def base_for(self, preset: str) -> Architecture:
        """The architecture that `--arch` changes and spaces are laid out around, under a preset."""
        return self.bases.get(preset, self.base)

    def metrics_for(self, recipe: Any) -> tuple[Metric, ...]:
        """What a training by a recipe measures, the first as in `metrics`: all of these, unless it leaves some out."""
        return self.metrics

    def prepare(self) -> None:
        """See to what every training needs, before the first one. Raises UserError where it cannot be had."""
        return None

    @abstractmethod
    def build(self, architecture: Architecture) -> nn.Module:
        """The network, on the default device. `embedding.` and `.topology.` in parameter names mark those parts."""

    @abstractmethod
    def example(self) -> Inputs:
        """Inputs of the network for one example, on the default device: what costs are counted with."""

    @abstractmethod
    def fingerprint(self, recipe: Any) -> str:
        """Of the data that a training by this recipe sees: hex digits, others for other data."""

    def inputs(self, recipe: Any) -> Inputs:
        """Inputs of the network for some validation examples, on the CPU: what trained networks are measured with."""
        return self.example()

    def closed_form(self, architecture: Architecture) -> Count | None:
        """The network's parameters and MACs for one example by arithmetic, or None where nobody has worked them out."""
        return None

    def encoding(self) -> str:
        """What inputs mean to its networks where its version does not fix it: of text, its tokenizer's fingerprint."""
        return ""

    def start_tasks(self) -> Mapping[str, int]:
        """Name -> version of the tasks whose trained networks a training of this one may begin with."""
        return {self.name: self.version}

    def fixed_space(self) -> SearchSpace | None:
        """The only space that it has, as one whose trainings are recorded; None where any is laid out around a base."""
        return None

    def seeds(self, architecture: Architecture) -> tuple[int, ...] | None:
        """The only seeds that an architecture can be trained with; None where any will do."""
        return None

    def known_costs(self, architecture: Architecture) -> Mapping[str, Any] | None:
        """What counting would say, by the names that a Row's costs have; None where the network is counted."""
        return None

    @abstractmethod
    def fit(self, run: Run) -> FitResult:
        """Train and measure one architecture: a function of run's architecture, recipe, seed, start and the data.

        Where `run.report` answers STOP, the training ends there: FitResult has that step, the metrics just reported and
        no test, and a checkpoint is left in the run's folder. A later `fit` of the same run with the same folder says
        the curve again and goes on, on a CPU to the same numbers as if it had never stopped. So does one after an
        interruption. A training that ended leaves no files.

        Raises:
            Diverged: The loss is not finite.
            UserError: `run.start` does not fit, or the task cannot begin with given weights.
        """

    def training_step(self, run: Run) -> Callable[[], None]:
        """What takes one step of this training each time it is called, on the run's device: for profiles.

        It is the task's own step: its data, batch, loss, recipe, optimiser, precision and compilation.

        Raises:
            NotImplementedError: The task has none.
        """
        raise NotImplementedError(f"task {self.name!r} does not give its training step: only fit knows it.")

    def render(self, network: nn.Module | None, file: Path) -> None:
        """Show what a trained network does, as a film or a picture in `file`.

        Without a network nothing is drawn: what would keep it from being drawn is raised, before hours of training.

        Raises:
            UserError: The task has nothing to render, or it cannot be done here.
        """
        message = f"task {self.name!r} has nothing to render."
        raise UserError("unsupported", message, option="--render", task=self.name)

    def baselines(self, recipe: Any) -> Mapping[str, Mapping[str, float]]:
        """Name of a simple method -> its metrics, as columns ("accuracy", "test_accuracy"), to hold results against."""
        return {}
