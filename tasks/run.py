"""The run that `Task.fit` trains: its architecture, recipe, seed, device and callbacks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final, final

import torch
from torch import Tensor

from search_spaces.architecture.architecture import Architecture


class Decision(Enum):
    """What a training does after a report."""

    CONTINUE = "continue"
    STOP = "stop"


CONTINUE: Final = Decision.CONTINUE
STOP: Final = Decision.STOP

Report = Callable[[int, Mapping[str, float]], Decision]
"""Called with the optimizer step and the values of all metrics of the task; what it raises ends the training."""


StepCallback = Callable[[int, int], None]
"""Called with the current optimizer step and the total, as often as the training likes."""


def no_op(step: int, steps: int) -> None:
    """Do nothing: the default step callback."""


def always_continue(step: int, metrics: Mapping[str, float]) -> Decision:
    """Return CONTINUE: the default report never stops early."""
    return CONTINUE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The input of one training.

    The result depends only on architecture, recipe, seed, start and the task's data; with a time limit also on the
    machine.

    Attributes:
        architecture: The network's architecture.
        recipe: A preset, or one changed by `tasks.recipes.settings.override`. A frozen dataclass.
        seed: Seed of initialization, data order and augmentation.
        device: The device to use. A task may use less of it, never more.
        threads: CPU threads for operators during training.
        folder: Folder for checkpoints, or None. A finished training leaves no files in it.
        start: Initial weights, by the parameter names of `Task.build`; None for random initialization.
        report: Called with intermediate values of all metrics of the task; decides whether to continue.
        on_step: Called with the step and the total, to show progress. A task may ignore it.
    """

    architecture: Architecture
    recipe: Any
    seed: int
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    threads: int = 1
    folder: Path | None = None
    start: Mapping[str, Tensor] | None = None
    report: Report = always_continue
    on_step: StepCallback = no_op
