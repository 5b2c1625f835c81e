"""The training, validation and test examples of a task.

Shapes: B = batch, ... = one example's axes.
"""

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Literal

import numpy as np
import torch
from torch import Generator, Tensor

from search_spaces.support.errors import UserError
from search_spaces.support.rank import ALONE, RankInfo
from tasks.data.batches import Batch, leaves, names, num_examples, select, tensors, to_device
from tasks.recipes.recipe import Recipe

Part = Literal["validation", "test"]

DataPosition = tuple[int, ...]
"""Progress of a training in its data, in the data's own units; () is the start."""


def derived_seed(seed: int, *purpose: int | str) -> int:
    """Return an independent seed for one purpose, such as ("order", 3).

    With one seed per step, a resumed training repeats the draws of an uninterrupted one.
    """
    text = "/".join(map(str, (seed, *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])  # a CPU generator takes 32 bits


@contextmanager
def seeded_rng(seed: int) -> Iterator[None]:
    """Seed all CPU generators that third-party data may use, and restore them afterwards."""
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
    """Return the order of an epoch, [examples]; it depends only on the seed and the epoch."""
    generator = Generator().manual_seed(derived_seed(seed, "order", epoch))
    return torch.randperm(examples, generator=generator)


def shuffled_batches(
    examples: int, recipe: Recipe, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo
) -> Iterator[tuple[int, Tensor]]:
    """Yield the number of each training micro-batch from `start` on, endlessly, and this rank's indices in it."""
    size, per_epoch = recipe.micro_batch, recipe.micro_batches(examples)
    first = sum(start)
    for epoch in count(first // per_epoch):
        order = shuffled_order(examples, seed, epoch).to(device)
        for number in range(max(first, epoch * per_epoch), (epoch + 1) * per_epoch):
            offset = number % per_epoch * size
            yield number, order[offset : offset + size][rank_info.shard]


def even_indices(examples: int, count: int) -> Tensor:
    """Return `count` indices spread evenly over all examples, [count]."""
    return torch.arange(count) * examples // count


class Splits(ABC):
    """Three disjoint sets of examples: training, validation and test."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A few hex digits that identify the contents."""

    @property
    @abstractmethod
    def num_examples(self) -> int:
        """Number of training examples."""

    @abstractmethod
    def training_batches(
        self, recipe: Recipe, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Yield training micro-batches from `start` on, endlessly, on the device, each with the position after it.

        A batch and its position depend only on the recipe, the seed, the rank and the position before. Each rank reads
        only its shard of a micro-batch's examples.
        """

    @abstractmethod
    def evaluation_batches(
        self, part: Part, recipe: Recipe, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """Yield each example of a part once, or `recipe.measured` of them, in batches, on the device.

        The shards of all ranks together are what a single process would read.
        """

    def check_recipe(self, recipe: Recipe) -> None:
        """Raise UserError if no training by this recipe is possible, for instance with a batch beyond the examples."""
        return None

    def counters(
        self, part: Part, recipe: Recipe, position: DataPosition, rank_info: RankInfo = ALONE
    ) -> Mapping[str, float]:
        """Return this rank's counts for a part and a training at this position, to report beside the metrics."""
        return {}


def check_batch(recipe: Recipe, examples: int) -> None:
    """Raise UserError if a batch has more than the training examples: it would not have the size that rows tell."""
    if recipe.batch > examples:
        message = f"batch must be at most the {examples} training examples, got {recipe.batch}."
        remedy = f"Set batch={examples} or less, or load more examples."
        raise UserError("mismatch", f"{message} {remedy}", option="batch", value=recipe.batch, most=examples)


def _check_part(name: str, part: Any) -> None:
    """Raise UserError if a part is no pair of inputs and targets, tensors with one length above 0."""
    rule = f"{name} must be a pair of inputs and targets"
    if not isinstance(part, tuple | list) or len(part) != 2:
        raise UserError("wrong-type", f"{rule}, got {type(part).__name__}.", option=name, value=type(part).__name__)
    lengths = []
    for what, values in zip(("inputs", "targets"), part, strict=True):
        kinds = sorted({type(leaf).__name__ for leaf in leaves(values) if not isinstance(leaf, Tensor)})
        if kinds:
            message = f"{what} of {name} must be tensors, got {', '.join(kinds)}. Convert arrays by torch.from_numpy."
            raise UserError("wrong-type", message, option=name, value=tuple(kinds))
        lengths += [len(leaf) if leaf.dim() else 0 for leaf in leaves(values)]
    if len(set(lengths)) > 1:
        message = f"inputs and targets of {name} must have one length, got {' and '.join(map(str, lengths))}."
        raise UserError("mismatch", message, option=name, value=tuple(lengths))
    if not lengths or lengths[0] == 0:
        raise empty_error(name)


def empty_error(name: str) -> UserError:
    """Return the error of a part without examples."""
    message = f"{name} must have at least one example, got none. Check what load() selects."
    return UserError("bad-data", message, option=name, value=0)


Augment = Callable[[Batch, Any, Generator], Batch]
"""Changes a training batch by the recipe, drawing only from the generator."""


def _identity(inputs: Any) -> Any:
    return inputs


@dataclass(frozen=True)
class TensorSplits(Splits):
    """Splits held in memory.

    Attributes:
        train: Inputs [examples, ...] and targets [examples, ...], tensors or tuples or mappings of them.
        validation: The same; seen by the search.
        test: The same; only reported.
        augment: Changes training batches; None for no augmentation.
        encode: Maps stored inputs to network inputs (bytes to floats).
    """

    train: Batch
    validation: Batch
    test: Batch
    augment: Augment | None = None
    encode: Callable[[Any], Any] = _identity

    def __post_init__(self) -> None:
        """Check the parts. Raises UserError for other forms, other lengths, and parts without examples."""
        for name in ("train", "validation", "test"):
            _check_part(name, getattr(self, name))

    @cached_property
    def fingerprint(self) -> str:
        """Hex digits of the tensors' shapes and bytes, and of their names if they have some."""
        digest, parts = hashlib.sha256(), (self.train, self.validation, self.test)
        for tensor in tensors(parts):
            digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())  # NumPy has no bfloat16
        if labels := names(parts):
            digest.update(" ".join(labels).encode())
        return digest.hexdigest()[:12]

    @property
    def num_examples(self) -> int:
        return num_examples(self.train)

    def check_recipe(self, recipe: Recipe) -> None:
        check_batch(recipe, self.num_examples)

    def training_batches(
        self, recipe: Recipe, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Yield batches of shuffled examples; the position is the number of micro-batches."""
        train = to_device(self.train, device)
        generator = Generator(device)
        purpose = ("augmentation",) if rank_info.world_size == 1 else ("augmentation", rank_info.rank)
        for number, indices in shuffled_batches(self.num_examples, recipe, seed, start, device, rank_info):
            batch = select(train, indices)
            if self.augment is not None:
                generator.manual_seed(derived_seed(seed, *purpose, number))
                batch = self.augment(batch, recipe, generator)
            yield (self.encode(batch[0]), batch[1]), (number + 1,)

    def evaluation_batches(
        self, part: Part, recipe: Recipe, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """Yield batches in storage order."""
        held_out = self.validation if part == "validation" else self.test
        if 0 < recipe.measured < num_examples(held_out):
            held_out = select(held_out, even_indices(num_examples(held_out), recipe.measured))
        for first in range(0, num_examples(held_out), recipe.micro_batch):
            inputs, targets = select(held_out, slice(first, first + recipe.micro_batch))
            inputs, targets = select((inputs, targets), rank_info.shard)
            if num_examples(targets):
                yield self.encode(to_device(inputs, device)), to_device(targets, device)
