"""A distributed training for test_shared_training.py, with arguments KIND-SHARING-OPTIMIZER and a folder.

Each process prints a line of JSON with its results and examples.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent))
from stories_lm import SHORT, StoriesLM

import tasks.training.time_budget
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import weights_of
from tasks.base import Task
from tasks.data.batches import Batch
from tasks.data.splits import TensorSplits
from tasks.language.tokenizer import Tokenizer
from tasks.recipes.recipe import Recipe
from tasks.run import CONTINUE, STOP, Decision, Run
from tasks.training.classification import ClassificationTask

READ: list[int] = []
TRAINING_TEXTS: set[str] = set()
MEASUREMENT_TEXTS: set[str] = set()


class Points(ClassificationTask):
    """Is a point inside a circle? The number of measured examples is odd."""

    name = "points"
    version = 1
    base = Architecture(depth=1, width=8, hidden=8)

    def load(self) -> TensorSplits:
        return RecordingSplits(examples(100, 1), examples(33, 2), examples(21, 3))

    def build(self, architecture: Architecture) -> nn.Module:
        """Points [B, 2] to class scores [B, 2]."""
        return nn.Sequential(nn.Linear(2, 8), nn.GELU(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 2))

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, 2),)


class RecordingSplits(TensorSplits):
    def training_batches(self, *args: Any) -> Iterator[tuple[Batch, tuple[int, ...]]]:
        for (inputs, targets), position in super().training_batches(*args):
            READ.append(len(inputs))
            yield (inputs, targets), position

    def evaluation_batches(self, *args: Any) -> Iterator[Batch]:
        for inputs, targets in super().evaluation_batches(*args):
            MEASUREMENT_TEXTS.update(map(str, inputs.tolist()))
            yield inputs, targets


def examples(count: int, seed: int) -> Batch:
    inputs = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return inputs, (inputs.norm(dim=1) > 1).long()


def watch_the_tokenizer() -> None:
    encode, encode_with_sizes = Tokenizer.encode, Tokenizer.encode_with_sizes

    def training(self: Tokenizer, texts: list[str]) -> Any:
        TRAINING_TEXTS.update(texts)
        return encode(self, texts)

    def measurement(self: Tokenizer, texts: list[str]) -> Any:
        MEASUREMENT_TEXTS.update(texts)
        return encode_with_sizes(self, texts)

    Tokenizer.encode, Tokenizer.encode_with_sizes = training, measurement  # type: ignore[method-assign]


def _clock(seconds: float) -> Callable[[], float]:
    """A clock that advances by so many seconds per call."""
    times = count(0, seconds)
    return lambda: next(times)


def main() -> None:
    (kind, sharing, *optimizers), folder = sys.argv[1].split("-"), sys.argv[2] if len(sys.argv) > 2 else ""
    torch.set_num_threads(1)
    watch_the_tokenizer()
    task: Task = StoriesLM() if kind == "stories" else Points()
    recipe = SHORT if kind == "stories" else Recipe(steps=40, batch=16, lr=0.01, accumulate=2)
    if kind == "hours":
        recipe = replace(recipe, steps=0, hours=1.0, accumulate=8)
        tasks.training.time_budget.perf_counter = _clock(20 if os.environ.get("RANK", "0") == "0" else 90)
    recipe = replace(recipe, sharing=sharing, optimizer=optimizers[0] if optimizers else "adamw")
    torch.manual_seed(0)
    start = weights_of(task.build(task.base))  # equal weights in the first report
    curve: list[float] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        curve.append(metrics["loss"])
        stop = Path(folder or "none", "stop")
        return STOP if stop.exists() and len(curve) == int(stop.read_text()) else CONTINUE

    run = Run(
        architecture=task.base,
        recipe=recipe,
        seed=0,
        folder=Path(folder) if folder else None,
        start=start,
        report=report,
    )
    fit = task.fit(run)
    record = {
        "rank": int(os.environ.get("RANK", "0")),
        "steps": fit.steps,
        "metrics": dict(fit.metrics),
        "test": dict(fit.test),
        "start": curve[0],
        "curve": curve,
        "read": sum(READ),
        "trained": sorted(TRAINING_TEXTS),
        "measured": sorted(MEASUREMENT_TEXTS),
    }
    sys.stdout.write(json.dumps(record) + "\n")  # in one write, so that lines of processes do not mix
    sys.stdout.flush()


if __name__ == "__main__":
    main()
