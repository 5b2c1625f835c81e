"""What a task is: the contract between the search and whatever is learnt."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from search_spaces.architecture import Architecture
from search_spaces.count import Count
from search_spaces.errors import UserError
from search_spaces.registry import Registry

TASKS = Registry("nas.tasks", "task")

TASK_FAMILIES = Registry("nas.families", "family of tasks")
"""Functions from a name to a Task's class, for what is too many to list: FAMILY:NAME."""

Report = Callable[[int, Mapping[str, float]], None]
"""Called by `fit` with the step and the validation metrics there; may raise to end the training."""


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
class Fitted:
    """What training one architecture gave.

    Attributes:
        steps: Optimiser steps taken.
        data: Fingerprint of the data.
        validation: Metric -> value, with `<metric>_se` where there is a standard error.
        test: The same on the test split.
        speeds: What the training did in a second, as columns; they differ each time, and two Fitted may be equal.
        network: The trained network, with the parameters of `Task.build`'s; None where the task does not give it.
    """

    steps: int
    data: str
    validation: Mapping[str, float]
    test: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict, compare=False)
    network: nn.Module | None = field(default=None, compare=False, repr=False)


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
        data: The folder or name given by `--data`, or None for the default.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    metrics: ClassVar[tuple[Metric, ...]]
    base: ClassVar[Architecture]
    presets: ClassVar[Mapping[str, Any]]
    bases: ClassVar[Mapping[str, Architecture]] = {}

    def __init__(self, data: Path | None = None) -> None:
        self.data = data

    def base_for(self, preset: str) -> Architecture:
        """The architecture that `--arch` changes and spaces are laid out around, under a preset."""
        return self.bases.get(preset, self.base)

    def prepare(self) -> None:
        """See to what every training needs, before the first one. Raises UserError where it cannot be had."""
        return None

    @abstractmethod
    def build(self, architecture: Architecture) -> nn.Module:
        """The network, on the default device. `embedding.` and `.topology.` in parameter names mark those parts."""

    @abstractmethod
    def example(self) -> tuple[Tensor, ...]:
        """Inputs of the network for one example, on the default device: what costs are counted with."""

    def inputs(self, preset: str) -> tuple[Tensor, ...]:
        """Inputs of the network for some validation examples, on the CPU: what trained networks are measured with."""
        return self.example()

    def closed_form(self, architecture: Architecture) -> Count | None:
        """The network's parameters and MACs for one example by arithmetic, or None where nobody has worked them out."""
        return None

    @abstractmethod
    def fit(self, architecture: Architecture, preset: str, seed: int, folder: Path | None, report: Report) -> Fitted:
        """Train and measure one architecture: a pure function of its first three arguments and the data.

        `folder` is where checkpoints may be kept; a checkpoint found there is continued. None keeps none.

        Raises:
            Diverged: The loss is not finite.
        """

    def fit_from(
        self,
        weights: Mapping[str, Tensor],
        architecture: Architecture,
        preset: str,
        seed: int,
        folder: Path | None,
        report: Report,
    ) -> Fitted:
        """Do as `fit` does, from trained weights by their names in `build`'s network.

        Raises:
            UserError: The task cannot, or the weights do not fit.
        """
        raise UserError(f"task {self.name!r} cannot train from given weights.")

    def render(self, network: nn.Module | None, file: Path) -> None:
        """Show what a trained network does, as a film or a picture in `file`.

        Without a network nothing is drawn: what would keep it from being drawn is raised, before hours of training.

        Raises:
            UserError: The task has nothing to render, or it cannot be done here.
        """
        raise UserError(f"task {self.name!r} has nothing to render.")

    def baselines(self, preset: str) -> Mapping[str, Mapping[str, float]]:
        """Name of a simple method -> its metrics, as columns ("accuracy", "test_accuracy"), to hold results against."""
        return {}
