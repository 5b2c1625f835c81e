"""Tasks that train in no time, for testing the search: run as FILE.py:CLASS, like any user's."""

import hashlib
import json
import os
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count, linear
from search_spaces.support.errors import Notice, UserError
from tasks.base import Diverged, FitResult, Metric, Task
from tasks.recipes.settings import NotNegative
from tasks.run import STOP, Run, always_continue


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyRecipe:
    """There is nothing to train.

    Attributes:
        penalty: What a seed and a letter of the topology's name cost.
    """

    penalty: NotNegative = 0.01


class Toy(Task):
    """A made-up score of the architecture's shape; nothing is trained."""

    name = "toy"
    version = 1
    metrics = (Metric("accuracy", "share", "max"), Metric("loss", "nats", "min"))
    base = Architecture(depth=4, width=8, heads=4, head_dim=8, hidden=16)
    presets = {"smoke": ToyRecipe(), "proxy": ToyRecipe()}  # noqa: RUF012

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
        return (linear(8, inner) + linear(inner, 8)).repeat(architecture.depth)

    def fingerprint(self, recipe: ToyRecipe) -> str:
        """There is no data."""
        return "70e5"

    def fit(self, run: Run) -> FitResult:
        """Score the shape."""
        architecture, penalty = run.architecture, run.recipe.penalty
        size = architecture.depth * architecture.heads
        accuracy = 1 - 1 / (1 + size) - penalty * (run.seed + len(architecture.topology))
        scores = {"accuracy": accuracy, "accuracy_se": 0.01, "loss": 1 - accuracy}
        if run.report(1, scores) is STOP:
            return FitResult(steps=1, metrics=scores)
        return FitResult(steps=1, metrics=scores, test={"accuracy": accuracy / 2})


class Showing(Toy):
    """Has something to render: it writes a file, fails to on a network of one head, or is interrupted."""

    name = "showing"

    def fit(self, run: Run) -> FitResult:
        """Give the network as well."""
        return replace(super().fit(run), network=self.build(run.architecture))

    def render(self, network: nn.Module | None, file: Path) -> None:
        """Write how many parts the network has."""
        if file.suffix != ".txt":
            raise UserError("unsupported", f"a picture's name must end in .txt, got {file}.", path=str(file))
        if network is not None:
            if file.stem == "interrupted":
                raise KeyboardInterrupt
            if len(list(network.children())) == 1:
                raise OSError("no space left on device")
            file.write_text(str(len(list(network.children()))))


class Lasting(Toy):
    """Takes until somebody has seen how far it is, and made the file SEEN of the environment."""

    name = "lasting"

    def fit(self, run: Run) -> FitResult:
        """Say it again and again."""
        for step in range(10_000):
            if Path(os.environ["SEEN"]).exists():
                break
            time.sleep(0.02)
            run.on_step(step, 10_000)
        return super().fit(run)


class Tensors(Toy):
    """Counts its steps with a tensor."""

    name = "tensors"

    def fit(self, run: Run) -> FitResult:
        """Report it."""
        report = run.report
        steps: Any = torch.tensor(1.0)
        return super().fit(replace(run, report=lambda step, metrics: report(steps, metrics)))


class Stumbling(Toy):
    """Fails on some architectures, each in another way."""

    name = "stumbling"

    def fit(self, run: Run) -> FitResult:
        """Raise, run out of memory, diverge or end with a number that is none, by depth."""
        match run.architecture.depth:
            case 1:
                raise RuntimeError("a layer broke\nand this is its long story")
            case 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            case 3:
                raise Diverged("loss is nan at step 7")
            case 6:
                return FitResult(steps=1, metrics={"accuracy": float("nan"), "loss": 1.0})
        return super().fit(run)


class Deadly(Toy):
    """Takes its process down on shallow networks, as the kernel does when memory is short."""

    name = "deadly"

    def fit(self, run: Run) -> FitResult:
        """Die without a word at depth 1 with one head."""
        if run.architecture.depth == run.architecture.heads == 1:
            os._exit(9)
        return super().fit(run)


class Noticing(Toy):
    """Says something on the way."""

    name = "noticing"

    def fit(self, run: Run) -> FitResult:
        """Give a notice."""
        warnings.warn(Notice("skipped", "look here"), stacklevel=1)
        return super().fit(run)


class Interrupted(Toy):
    """Is interrupted by its user at the third evaluation of a process."""

    name = "toy"

    def fit(self, run: Run) -> FitResult:
        """Behave as Toy but for one Ctrl-C."""
        number = int(os.environ["TOYS_EVALUATED"]) + 1
        os.environ["TOYS_EVALUATED"] = str(number)
        if number == 3:
            raise KeyboardInterrupt
        return super().fit(run)


class FromFile(Toy):
    """Has data: the size of a file's digest is what it finds."""

    name = "from-file"

    def fingerprint(self, recipe: ToyRecipe) -> str:
        """Of the file."""
        assert self.data is not None
        return hashlib.sha256(self.data.read_bytes()).hexdigest()[:12]

    def fit(self, run: Run) -> FitResult:
        """Score the file."""
        score = int(self.fingerprint(run.recipe), 16) / 16**12
        return FitResult(steps=1, metrics={"accuracy": score, "loss": 1 - score})


class Counted(Toy):
    """Takes a while, and writes a line at each training into a file that all processes know."""

    name = "counted"

    def fit(self, run: Run) -> FitResult:
        """Say who trains what, and wait."""
        with Path(os.environ["TOYS_FITTED"]).open("a") as file:
            file.write(f"{os.getpid()}\t{run.architecture}\n")
        time.sleep(float(os.environ["TOYS_SECONDS"]))
        return super().fit(run)


class Irregular(Toy):
    """Has no closed form, and one network that is larger than all others say."""

    name = "irregular"

    def closed_form(self, architecture: Architecture) -> None:  # type: ignore[override]
        """Nobody has worked it out."""

    def build(self, architecture: Architecture) -> nn.Module:
        """Five blocks of three heads have another map."""
        network = super().build(architecture)
        if (architecture.depth, architecture.heads) == (5, 3):
            network.add_module("another", nn.Linear(8, 8))
        return network


class Stepping(Toy):
    """Takes five steps, reports each but the last, and can be stopped and gone on with."""

    name = "stepping"

    def fit(self, run: Run) -> FitResult:
        """Count, and keep the count in a file of the run's folder."""
        assert run.folder is not None
        file = run.folder / "count.json"
        began = json.loads(file.read_text()) if file.exists() else 0
        for step in range(1, 6):
            metrics = {"accuracy": step / 10, "loss": 1 - step / 10}
            if step < 5 and run.report(step, metrics) is STOP:
                run.folder.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(step))
                return FitResult(steps=step, metrics=metrics)
        file.unlink(missing_ok=True)
        return FitResult(steps=5, metrics=metrics, test={"accuracy": 0.4}, extra_metrics={"began_at": began})


class Learning(Stepping):
    """Learns in a hundred steps, reports every tenth, and can be stopped and gone on with; loss is what is left."""

    name = "learning"

    def fit(self, run: Run) -> FitResult:
        """Come nearer to what the shape gives; the larger, the slower."""
        assert run.folder is not None
        end, file = super(Stepping, self).fit(replace(run, report=always_continue)), run.folder / "count.json"
        began = json.loads(file.read_text()) if file.exists() else 0
        for step in range(10, 101, 10):
            accuracy = end.metrics["accuracy"] * (1 - 0.98 ** (4 * step / run.architecture.depth))
            metrics = {"accuracy": accuracy, "accuracy_se": 0.01, "loss": 1 - accuracy}
            if run.report(step, metrics) is STOP and step < 100:
                run.folder.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(step))
                return FitResult(steps=step, metrics=metrics, extra_metrics={"began_at": began})
        file.unlink(missing_ok=True)
        return FitResult(steps=100, metrics=metrics, test={"accuracy": accuracy}, extra_metrics={"began_at": began})


class Loading(Toy):
    """Has data that other processes load."""

    name = "loading"

    def fit(self, run: Run) -> FitResult:
        """Load it."""
        assert len(list(DataLoader(list(range(4)), num_workers=1))) == 4  # type: ignore[arg-type]
        return super().fit(run)


class Heedless(Toy):
    """Goes on whatever it is told."""

    name = "heedless"

    def fit(self, run: Run) -> FitResult:
        """Report twice."""
        metrics = {"accuracy": 0.5, "loss": 0.5}
        run.report(1, metrics)
        return FitResult(steps=2, metrics=metrics)
