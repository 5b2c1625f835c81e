"""A task's examples: what is trained on, what the search sees, and what is only reported.

Shapes: B = batch, ... = one example's axes.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Generator, Tensor

from tasks.recipe import Recipe

Batch = tuple[Tensor, Tensor]
"""What the network reads [B, ...], and what it should answer [B, ...]."""

Part = Literal["validation", "test"]

DataPosition = tuple[int, ...]
"""How far a training has come in its data, as the data itself counts; () is the start."""


def derived_seed(seed: int, *purpose: int | str) -> int:
    """A seed for one purpose ("order", 3): draws for one never move those for another.

    With a seed for each step, a training that was interrupted goes on with the draws it would have made.
    """
    text = "/".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])  # the CPU's generator takes 32 bits


def shuffled(examples: int, seed: int, epoch: int) -> Tensor:
    """The order of an epoch, [examples]; of nothing but the seed and the epoch."""
    generator = Generator().manual_seed(derived_seed(seed, "order", epoch))
    return torch.randperm(examples, generator=generator)


def spread(examples: int, wanted: int) -> Tensor:
    """Indices of so many examples, evenly spread over all, [wanted]."""
    return torch.arange(wanted) * examples // wanted


class Splits(ABC):
    """Three sets of examples that share none."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of all that is in them: a few hex digits, other for other data."""

    @property
    @abstractmethod
    def examples(self) -> int:
        """How many there are to train on."""

    @abstractmethod
    def training(
        self, recipe: Recipe, seed: int, start: DataPosition, device: torch.device
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Batches of a training from `start` on, without end, on the device, each with the progress behind it.

        A batch and its progress are functions of the recipe, the seed and the progress before it alone.
        """

    @abstractmethod
    def measured(self, part: Part, recipe: Recipe, device: torch.device) -> Iterator[Batch]:
        """Every example of a part once, or as many as the recipe wants, in batches, on the device."""

    def remarks(self, part: Part, recipe: Recipe, progress: DataPosition) -> Mapping[str, float]:
        """What is to be told beside the metrics: of a part, and of a training that has come so far."""
        return {}


Augment = Callable[[Batch, Any, Generator], Batch]
"""Changes a training batch by the recipe, with draws from the generator alone."""


def _as_it_is(inputs: Tensor) -> Tensor:
    return inputs


@dataclass(frozen=True)
class TensorSplits(Splits):
    """Examples that lie in memory.

    Attributes:
        train: Inputs [examples, ...] and targets [examples, ...].
        validation: The same, what the search sees.
        test: The same, what is only reported.
        augment: Changes training batches; None leaves them.
        encode: Makes what the network reads of inputs [B, ...] as they lie in memory (bytes to floats).
    """

    train: Batch
    validation: Batch
    test: Batch
    augment: Augment | None = None
    encode: Callable[[Tensor], Tensor] = _as_it_is

    @cached_property
    def fingerprint(self) -> str:
        """Of the tensors' shapes and bytes."""
        digest = hashlib.sha256()
        for tensor in (*self.train, *self.validation, *self.test):
            digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()[:12]

    @property
    def examples(self) -> int:
        """How many there are to train on."""
        return len(self.train[0])

    def training(
        self, recipe: Recipe, seed: int, start: DataPosition, device: torch.device
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Batches of shuffled examples; progress is the number of passes."""
        inputs, targets = (tensor.to(device) for tensor in self.train)
        size, passes = recipe.batch // recipe.accumulate, recipe.passes(self.examples)
        generator = Generator(device)
        step = sum(start)
        while True:
            order = shuffled(self.examples, seed, step // passes).to(device)
            for position in range(step % passes, passes):
                chosen = order[position * size : (position + 1) * size]
                batch = inputs[chosen], targets[chosen]
                if self.augment is not None:
                    generator.manual_seed(derived_seed(seed, "augmentation", step))
                    batch = self.augment(batch, recipe, generator)
                step += 1
                yield (self.encode(batch[0]), batch[1]), (step,)

    def measured(self, part: Part, recipe: Recipe, device: torch.device) -> Iterator[Batch]:
        """Batches in the order they lie in."""
        size = recipe.batch // recipe.accumulate
        inputs, targets = self.validation if part == "validation" else self.test
        if 0 < recipe.measured < len(inputs):
            chosen = spread(len(inputs), recipe.measured)
            inputs, targets = inputs[chosen], targets[chosen]
        for batch, answers in zip(inputs.split(size), targets.split(size), strict=True):
            yield self.encode(batch.to(device)), answers.to(device)
