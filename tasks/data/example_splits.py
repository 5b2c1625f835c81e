"""Examples one by one, as dicts, and what makes batches of them: the form of Hugging Face's data sets and collators.

Shapes: B = batch.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from search_spaces.support.errors import UserError
from search_spaces.support.rank import ALONE, RankInfo
from tasks.data.batches import Batch, to_device
from tasks.data.fingerprints import fingerprint_of
from tasks.data.splits import DataPosition, Part, Splits, derived_seed, even_indices, seeded_rng, shuffled_order
from tasks.recipes.recipe import Recipe

Example = Mapping[str, Any]


class Examples(Protocol):
    """A data set: a list of dicts will do, and so will a `datasets.Dataset`."""

    def __len__(self) -> int:
        """How many examples there are."""

    def __getitem__(self, index: int, /) -> Any:
        """One of them, a mapping of names to values."""


Collate = Callable[[list[Any]], Mapping[str, Any]]


def stack_examples(examples: Sequence[Example]) -> dict[str, Tensor]:
    """A batch of examples whose values have the same shapes; `label` is called `labels`."""
    names = {name: "labels" if name in ("label", "label_ids") else name for name in examples[0]}
    return {key: torch.stack([torch.as_tensor(example[name]) for example in examples]) for name, key in names.items()}


@dataclass(frozen=True)
class ExampleSplits(Splits):
    """Three data sets. A batch's inputs are all that the collator gives, and its targets the labels in them.

    Attributes:
        train: What is trained on.
        validation: What the search sees.
        test: What is only reported.
        collate: Makes a batch of a list of examples; what it draws is a function of the seed and the batch's number.
        columns: The names that examples are left with; None leaves all.
        labels: The names of the targets.
    """

    train: Examples
    validation: Examples
    test: Examples
    collate: Collate = field(default=stack_examples)
    columns: Collection[str] | None = None
    labels: tuple[str, ...] = ("labels",)

    @cached_property
    def fingerprint(self) -> str:
        """Of all examples, each as it is given; it takes a pass over them."""
        return fingerprint_of((part[i] for i in range(len(part))) for part in (self.train, self.validation, self.test))

    @property
    def examples(self) -> int:
        """How many there are to train on."""
        return len(self.train)

    def training(
        self, recipe: Recipe, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Batches of shuffled examples; the position is the number of micro-batches."""
        size, per_epoch = recipe.micro_batch, recipe.micro_batches(self.examples)
        purpose = ("data",) if rank_info.world_size == 1 else ("data", rank_info.rank)
        number = sum(start)
        while True:
            order = shuffled_order(self.examples, seed, number // per_epoch)
            for place in range(number % per_epoch, per_epoch):
                indices = order[place * size : (place + 1) * size][rank_info.shard]
                with seeded_rng(derived_seed(seed, *purpose, number)):
                    batch = self._batch(self.train, indices)
                number += 1
                yield to_device(batch, device), (number,)

    def evaluation_batches(
        self, part: Part, recipe: Recipe, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """Batches in the order they lie in, whose draws are the same each time."""
        held_out = self.validation if part == "validation" else self.test
        count = min(recipe.measured or len(held_out), len(held_out))
        order = even_indices(len(held_out), count)
        for first in range(0, count, recipe.micro_batch):
            indices = order[first : first + recipe.micro_batch][rank_info.shard]
            if len(indices):
                with seeded_rng(derived_seed(first, part)):
                    batch = self._batch(held_out, indices)
                yield to_device(batch, device)

    def _batch(self, part: Examples, indices: Tensor) -> Batch:
        batch = dict(self.collate([self._select_columns(part[i]) for i in indices.tolist()]))
        for name, value in batch.items():
            if not isinstance(value, Tensor):
                raise UserError(
                    "bad-plugin",
                    f"a collator must give tensors, got {type(value).__name__} for {name!r}. Leave that column out.",
                    option=name,
                    type=type(value).__name__,
                )
        return batch, {name: batch[name] for name in self.labels if name in batch}

    def _select_columns(self, example: Example) -> Example:
        if self.columns is None:
            return example
        return {name: value for name, value in example.items() if name in self.columns}
