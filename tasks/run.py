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
    """What a training does after it has reported."""

    CONTINUE = "continue"
    STOP = "stop"


CONTINUE: Final = Decision.CONTINUE
STOP: Final = Decision.STOP

Report = Callable[[int, Mapping[str, float]], Decision]
"""Called with the optimiser's step and the metrics there; what it raises ends the training at once."""


StepCallback = Callable[[int, int], None]
"""Called with the optimiser's step and the number of steps, as often as the training likes."""


def no_op(step: int, steps: int) -> None:
    """The default step callback: do nothing."""


def always_continue(step: int, metrics: Mapping[str, float]) -> Decision:
    """The default report: never stop early."""
    return CONTINUE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that one training needs; what comes later adds a field and breaks nobody.

    What a training finds is a function of architecture, recipe, seed, start and the task's data, and of the machine
    where the recipe says how long it lasts.

    Attributes:
        architecture: The network.
        recipe: The settings: a preset, or one changed by `tasks.recipes.settings.override`. A frozen dataclass.
        seed: Of initialisation, data order and augmentation.
        device: What the caller lends: a task may use less, but never more.
        threads: How many the CPU's operators may use, while it trains.
        folder: Where the training may keep files, or None. One that ended leaves none.
        start: The weights to begin with, by the names of `Task.build`'s network, or None where they are drawn.
        report: Is told the metrics on the way, and says whether to go on.
        on_step: Called with the step and the number of steps, to show progress. A task may leave it out.
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
