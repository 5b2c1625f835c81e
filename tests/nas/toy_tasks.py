"""Tasks that train in no time, for testing the search: run as FILE.py:CLASS, like any user's."""

import os
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from search_spaces.architecture import Architecture
from search_spaces.count import Count, linear
from search_spaces.errors import UserError
from tasks.base import Diverged, Fitted, Metric, Report, Task


class Toy(Task):
    """A made-up score of the architecture's shape; nothing is trained."""

    name = "toy"
    version = 1
    metrics = (Metric("accuracy", "share", "max"), Metric("loss", "nats", "min"))
    base = Architecture(depth=4, width=8, heads=4, head_dim=8, hidden=16)
    presets = {"smoke": "nothing to train", "proxy": "nothing to train"}  # noqa: RUF012

    def build(self, architecture: Architecture) -> nn.Module:
        """A few linear maps, so that depth and heads cost something."""
        inner = architecture.heads * architecture.head_dim
        maps = [nn.Sequential(nn.Linear(8, inner), nn.Linear(inner, 8)) for _ in range(architecture.depth)]
        return nn.Sequential(*maps)

    def example(self) -> tuple[Tensor, ...]:
        """One vector."""
        return (torch.zeros(1, 8),)

    def closed_form(self, architecture: Architecture) -> Count:
        """The maps' weights, biases and products."""
        inner = architecture.heads * architecture.head_dim
        return (linear(8, inner) + linear(inner, 8)).repeated(architecture.depth)

    def fit(self, architecture: Architecture, preset: str, seed: int, folder: Path | None, report: Report) -> Fitted:
        """Score the shape."""
        accuracy = 1 - 1 / (1 + architecture.depth * architecture.heads) - 0.01 * (seed + len(architecture.topology))
        report(1, {"accuracy": accuracy})
        scores = {"accuracy": accuracy, "accuracy_se": 0.01, "loss": 1 - accuracy}
        return Fitted(steps=1, data="toy", validation=scores, test={"accuracy": accuracy / 2})


class Showing(Toy):
    """Has something to render: it writes a file, or fails to, on a network of one head."""

    name = "showing"

    def fit(self, architecture: Architecture, preset: str, seed: int, folder: Path | None, report: Report) -> Fitted:
        """Give the network as well."""
        return replace(super().fit(architecture, preset, seed, folder, report), network=self.build(architecture))

    def render(self, network: nn.Module | None, file: Path) -> None:
        """Write how many parts the network has."""
        if file.suffix != ".txt":
            raise UserError(f"a picture's name must end in .txt, got {file}.")
        if network is not None:
            if len(list(network.children())) == 1:
                raise OSError("no space left on device")
            file.write_text(str(len(list(network.children()))))


class Stumbling(Toy):
    """Fails on some architectures, each in another way."""

    name = "stumbling"

    def fit(self, architecture: Architecture, preset: str, seed: int, folder: Path | None, report: Report) -> Fitted:
        """Raise, run out of memory, diverge or end with a number that is none, by depth."""
        match architecture.depth:
            case 1:
                raise RuntimeError("a layer broke\nand this is its long story")
            case 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            case 3:
                raise Diverged("loss is nan at step 7")
            case 6:
                return Fitted(steps=1, data="toy", validation={"accuracy": float("nan"), "loss": 1.0})
        return super().fit(architecture, preset, seed, folder, report)


class Deadly(Toy):
    """Takes its process down on shallow networks, as the kernel does when memory is short."""

    name = "deadly"

    def fit(self, architecture: Architecture, preset: str, seed: int, folder: Path | None, report: Report) -> Fitted:
        """Die without a word at depth 1 with one head."""
        if architecture.depth == architecture.heads == 1:
            os._exit(9)
        return super().fit(architecture, preset, seed, folder, report)


class Interrupted(Toy):
    """Is interrupted by its user at the third evaluation of a process."""

    name = "toy"
    seen = 0

    def fit(self, architecture: Architecture, preset: str, seed: int, folder: Path | None, report: Report) -> Fitted:
        """Behave as Toy but for one Ctrl-C."""
        type(self).seen += 1
        if type(self).seen == 3:
            raise KeyboardInterrupt
        return super().fit(architecture, preset, seed, folder, report)
