"""Tasks that train in no time, run as FILE.py:CLASS like any user's."""

import hashlib
import json
import os
import time
import warnings
from collections import OrderedDict
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
    """The recipe of toys.

    Attributes:
        penalty: Subtracted from the accuracy per seed and per letter of the topology's name.
    """

    penalty: NotNegative = 0.01


class Toy(Task):
    """A synthetic score of the architecture's shape; nothing is trained."""

    name = "toy"
    version = 1
    metrics = (Metric("accuracy", "share", "max"), Metric("loss", "nats", "min"))
    base = Architecture(depth=4, width=8, heads=4, head_dim=8, hidden=16)
    presets = {"smoke": ToyRecipe(), "proxy": ToyRecipe()}  # noqa: RUF012

    def build(self, architecture: Architecture) -> nn.Module:
        """Build a few linear maps with the topology's name, so that depth and heads cost something."""
        inner, name = architecture.heads * architecture.head_dim, "".join(filter(str.isalnum, architecture.topology))
        maps = [nn.Sequential(nn.Linear(8, inner), nn.Linear(inner, 8)) for _ in range(architecture.depth)]
        return nn.Sequential(OrderedDict((f"{name}{number}", each) for number, each in enumerate(maps)))

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, 8),)

    def closed_form(self, architecture: Architecture) -> Count:
        inner = architecture.heads * architecture.head_dim
        return (linear(8, inner) + linear(inner, 8)).copies(architecture.depth)

    def fingerprint(self, recipe: ToyRecipe) -> str:
        return "70e5"

    def fit(self, run: Run) -> FitResult:
        architecture, penalty = run.architecture, run.recipe.penalty
        size = architecture.depth * architecture.heads
        accuracy = 1 - 1 / (1 + size) - penalty * (run.seed + len(architecture.topology))
        scores = {"accuracy": accuracy, "accuracy_se": 0.01, "loss": 1 - accuracy}
        if run.report(1, scores) is STOP:
            return FitResult(steps=1, metrics=scores)
        return FitResult(steps=1, metrics=scores, test={"accuracy": accuracy / 2})


class Showing(Toy):
    """Has a network to render: it writes a file, fails for a network of one block, or is interrupted."""

    name = "showing"

    def fit(self, run: Run) -> FitResult:
        return replace(super().fit(run), network=self.build(run.architecture))

    def render(self, network: nn.Module | None, file: Path) -> None:
        """Write the number of the network's blocks."""
        if file.suffix != ".txt":
            raise UserError("unsupported", f"a picture's name must end in .txt, got {file}.", path=str(file))
        if network is not None:
            if file.stem == "interrupted":
                raise KeyboardInterrupt
            if len(list(network.children())) == 1:
                raise OSError("no space left on device")
            file.write_text(str(len(list(network.children()))))


class Lasting(Toy):
    """Reports its steps until the file SEEN of the environment exists."""

    name = "lasting"

    def fit(self, run: Run) -> FitResult:
        for step in range(10_000):
            if Path(os.environ["SEEN"]).exists():
                break
            time.sleep(0.02)
            run.on_step(step, 10_000)
        return super().fit(run)


class Tensors(Toy):
    """Reports its step as a tensor."""

    name = "tensors"

    def fit(self, run: Run) -> FitResult:
        report = run.report
        steps: Any = torch.tensor(1.0)
        return super().fit(replace(run, report=lambda step, metrics: report(steps, metrics)))


class Stumbling(Toy):
    """Fails in several ways, depending on depth."""

    name = "stumbling"

    def fit(self, run: Run) -> FitResult:
        """Raise, run out of memory, diverge or return NaN."""
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
    """Kills its process at depth 1 with one head, as the kernel does if memory is short."""

    name = "deadly"

    def fit(self, run: Run) -> FitResult:
        if run.architecture.depth == run.architecture.heads == 1:
            os._exit(9)
        return super().fit(run)


class Noticing(Toy):
    """Gives a notice."""

    name = "noticing"

    def fit(self, run: Run) -> FitResult:
        warnings.warn(Notice("skipped", "look here"), stacklevel=1)
        return super().fit(run)


class Interrupted(Toy):
    """Toy with a Ctrl-C at the third evaluation of a process."""

    name = "toy"

    def fit(self, run: Run) -> FitResult:
        number = int(os.environ["TOYS_EVALUATED"]) + 1
        os.environ["TOYS_EVALUATED"] = str(number)
        if number == 3:
            raise KeyboardInterrupt
        return super().fit(run)


class FromFile(Toy):
    """Has a file as data; its score follows from the file's digest."""

    name = "from-file"

    def fingerprint(self, recipe: ToyRecipe) -> str:
        assert self.data is not None
        return hashlib.sha256(self.data.read_bytes()).hexdigest()[:12]

    def fit(self, run: Run) -> FitResult:
        score = int(self.fingerprint(run.recipe), 16) / 16**12
        return FitResult(steps=1, metrics={"accuracy": score, "loss": 1 - score})


class Counted(Toy):
    """Waits, and adds a line per training to a file that all processes know."""

    name = "counted"

    def fit(self, run: Run) -> FitResult:
        with Path(os.environ["TOYS_FITTED"]).open("a") as file:
            file.write(f"{os.getpid()}\t{run.architecture}\n")
        time.sleep(float(os.environ["TOYS_SECONDS"]))
        return super().fit(run)


class Irregular(Toy):
    """Has no closed form, and one network that is larger than the others suggest."""

    name = "irregular"

    def closed_form(self, architecture: Architecture) -> None:  # type: ignore[override]
        """Return nothing."""

    def build(self, architecture: Architecture) -> nn.Module:
        """Add a map to networks of five blocks and three heads."""
        network = super().build(architecture)
        if (architecture.depth, architecture.heads) == (5, 3):
            network.add_module("another", nn.Linear(8, 8))
        return network


class Stepping(Toy):
    """Takes five steps, reports each but the last, and can stop and resume."""

    name = "stepping"

    def fit(self, run: Run) -> FitResult:
        """Count, and keep the count in a file of the run's folder."""
        assert run.folder is not None
        file = run.folder / "count.json"
        start = json.loads(file.read_text()) if file.exists() else 0
        for step in range(1, 6):
            metrics = {"accuracy": step / 10, "loss": 1 - step / 10}
            if step < 5 and run.report(step, metrics) is STOP:
                run.folder.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(step))
                return FitResult(steps=step, metrics=metrics)
        file.unlink(missing_ok=True)
        return FitResult(steps=5, metrics=metrics, test={"accuracy": 0.4}, extra_metrics={"began_at": start})


class Learning(Stepping):
    """Takes a hundred steps, reports every tenth, and can stop and resume."""

    name = "learning"

    def fit(self, run: Run) -> FitResult:
        """Approach Toy's accuracy; larger networks are slower."""
        assert run.folder is not None
        end, file = super(Stepping, self).fit(replace(run, report=always_continue)), run.folder / "count.json"
        start = json.loads(file.read_text()) if file.exists() else 0
        for step in range(10, 101, 10):
            accuracy = end.metrics["accuracy"] * (1 - 0.98 ** (4 * step / run.architecture.depth))
            metrics = {"accuracy": accuracy, "accuracy_se": 0.01, "loss": 1 - accuracy}
            if run.report(step, metrics) is STOP and step < 100:
                run.folder.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(step))
                return FitResult(steps=step, metrics=metrics, extra_metrics={"began_at": start})
        file.unlink(missing_ok=True)
        return FitResult(steps=100, metrics=metrics, test={"accuracy": accuracy}, extra_metrics={"began_at": start})


class Loading(Toy):
    """Loads its data in another process."""

    name = "loading"

    def fit(self, run: Run) -> FitResult:
        assert len(list(DataLoader(list(range(4)), num_workers=1))) == 4  # type: ignore[arg-type]
        return super().fit(run)


class Heedless(Toy):
    """Ignores the stop."""

    name = "heedless"

    def fit(self, run: Run) -> FitResult:
        metrics = {"accuracy": 0.5, "loss": 0.5}
        run.report(1, metrics)
        return FitResult(steps=2, metrics=metrics)
