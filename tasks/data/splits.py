"""A task's examples: what is trained on, what the search sees, and what is only reported.

Shapes: B = batch, ... = one example's axes.
"""

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Generator, Tensor

from search_spaces.support.rank import ALONE, RankInfo
from tasks.data.batches import Batch, examples, names, select, tensors, to_device
from tasks.recipes.recipe import Recipe

Part = Literal["validation", "test"]

DataPosition = tuple[int, ...]
"""How far a training has come in its data, as the data itself counts; () is the start."""


def derived_seed(seed: int, *purpose: int | str) -> int:
    """A seed for one purpose ("order", 3): draws for one never move those for another.

    With a seed for each step, a training that was interrupted goes on with the draws it would have made.
    """
    text = "/".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])  # the CPU's generator takes 32 bits


@contextmanager
def seeded_rng(seed: int) -> Iterator[None]:
    """Seed all that somebody's data may draw from on the CPU, and leave it as it was found."""
    python, numpy, torchs = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(torchs)


def shuffled_order(examples: int, seed: int, epoch: int) -> Tensor:
    """The order of an epoch, [examples]; of nothing but the seed and the epoch."""
    generator = Generator().manual_seed(derived_seed(seed, "order", epoch))
    return torch.randperm(examples, generator=generator)


def even_indices(examples: int, count: int) -> Tensor:
    """Indices of so many examples, evenly spread over all, [count]."""
    return torch.arange(count) * examples // count


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
        self, recipe: Recipe, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Micro-batches of a training from `start` on, without end, on the device, each with the position behind it.

        A batch and its position are functions of the recipe, the seed, the share and the position before it alone. Of
        several processes each reads its own share of a micro-batch's examples, and nothing else.
        """

    @abstractmethod
    def evaluation_batches(
        self, part: Part, recipe: Recipe, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """Every example of a part once, or as many as the recipe wants, in batches, on the device.

        The shares of all processes together are what one alone would read.
        """

    def counters(
        self, part: Part, recipe: Recipe, position: DataPosition, rank_info: RankInfo = ALONE
    ) -> Mapping[str, float]:
        """Counts that this process has beside the metrics, of a part and of a training that has come so far."""
        return {}


Augment = Callable[[Batch, Any, Generator], Batch]
"""Changes a training batch by the recipe, with draws from the generator alone."""


def _identity(inputs: Any) -> Any:
    return inputs


@dataclass(frozen=True)
class TensorSplits(Splits):
    """Examples that lie in memory.

    Attributes:
        train: Inputs [examples, ...] and targets [examples, ...], tensors or tuples or mappings of them.
        validation: The same, what the search sees.
        test: The same, what is only reported.
        augment: Changes training batches; None leaves them.
        encode: Makes what the network reads of inputs as they lie in memory (bytes to floats).
    """

    train: Batch
    validation: Batch
    test: Batch
    augment: Augment | None = None
    encode: Callable[[Any], Any] = _identity

    @cached_property
    def fingerprint(self) -> str:
        """Of the tensors' shapes and bytes, and of their names where they have some."""
        digest, parts = hashlib.sha256(), (self.train, self.validation, self.test)
        for tensor in tensors(parts):
            digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())  # NumPy has no bfloat16
        if labels := names(parts):
            digest.update(" ".join(labels).encode())
        return digest.hexdigest()[:12]

    @property
    def examples(self) -> int:
        """How many there are to train on."""
        return examples(self.train)

    def training(
        self, recipe: Recipe, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Batches of shuffled examples; the position is the number of micro-batches."""
        train = to_device(self.train, device)
        size, per_epoch = recipe.micro_batch, recipe.micro_batches(self.examples)
        generator = Generator(device)
        purpose = ("augmentation",) if rank_info.world_size == 1 else ("augmentation", rank_info.rank)
        number = sum(start)
        while True:
            order = shuffled_order(self.examples, seed, number // per_epoch).to(device)
            for place in range(number % per_epoch, per_epoch):
                batch = select(train, order[place * size : (place + 1) * size][rank_info.shard])
                if self.augment is not None:
                    generator.manual_seed(derived_seed(seed, *purpose, number))
                    batch = self.augment(batch, recipe, generator)
                number += 1
                yield (self.encode(batch[0]), batch[1]), (number,)

    def evaluation_batches(
        self, part: Part, recipe: Recipe, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """Batches in the order they lie in."""
        held_out = self.validation if part == "validation" else self.test
        if 0 < recipe.measured < examples(held_out):
            held_out = select(held_out, even_indices(examples(held_out), recipe.measured))
        for first in range(0, examples(held_out), recipe.micro_batch):
            inputs, targets = select(held_out, slice(first, first + recipe.micro_batch))
            inputs, targets = select((inputs, targets), rank_info.shard)
            if examples(targets):
                yield self.encode(to_device(inputs, device)), to_device(targets, device)
