"""One training: what it is of, what it may use, and what it is told on the way."""

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


Advanced = Callable[[int, int], None]
"""Called with the optimiser's step and how many there are in all, as often as one likes."""


def no_op(step: int, steps: int) -> None:
    """Tell nobody."""


def always_continue(step: int, metrics: Mapping[str, float]) -> Decision:
    """Take no notice."""
    return CONTINUE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All that one training needs; what comes later adds a field and breaks nobody.

    What a training finds is a function of architecture, recipe, seed, start and the task's data, and of the machine
    where the recipe says how long it lasts.

    Attributes:
        architecture: The network.
        recipe: The settings: a preset, or one changed by `tasks.recipes.settings.changed`. A frozen dataclass.
        seed: Of initialisation, data order and augmentation.
        device: What the caller lends: a task may use less, but never more.
        threads: How many the CPU's operators may use, while it trains.
        folder: Where the training may keep files, or None. One that ended leaves none.
        start: The weights to begin with, by the names of `Task.build`'s network, or None where they are drawn.
        report: Is told the metrics on the way, and says whether to go on.
        advanced: May be told how far it is, for whoever waits.
    """

    architecture: Architecture
    recipe: Any
    seed: int
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    threads: int = 1
    folder: Path | None = None
    start: Mapping[str, Tensor] | None = None
    report: Report = always_continue
    advanced: Advanced = no_op
