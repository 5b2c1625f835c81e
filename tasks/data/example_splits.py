"""Splits of dict examples with a collator, as in Hugging Face data sets.

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
from tasks.data.splits import (
    DataPosition,
    Part,
    Splits,
    check_batch,
    derived_seed,
    empty_error,
    even_indices,
    seeded_rng,
    shuffled_batches,
)
from tasks.recipes.recipe import Recipe

Example = Mapping[str, Any]


class Examples(Protocol):
    """A data set with random access, such as a list of dicts or a `datasets.Dataset`."""

    def __len__(self) -> int:
        """Return the number of examples."""

    def __getitem__(self, index: int, /) -> Any:
        """Return one example, a mapping of names to values."""


Collate = Callable[[list[Any]], Mapping[str, Any]]


def stack_examples(examples: Sequence[Example]) -> dict[str, Tensor]:
    """Stack examples of equal shapes to a batch; `label` is renamed to `labels`."""
    names = {name: "labels" if name in ("label", "label_ids") else name for name in examples[0]}
    return {key: torch.stack([torch.as_tensor(example[name]) for example in examples]) for name, key in names.items()}


@dataclass(frozen=True)
class ExampleSplits(Splits):
    """Splits of three data sets. All that the collator returns is input; the labels in it are the targets.

    Attributes:
        train: Training examples.
        validation: Validation examples, seen by the search.
        test: Test examples, only reported.
        collate: Makes a batch of a list of examples; its draws depend only on the seed and the batch's number.
        columns: Names of the columns to keep; None for all.
        labels: Names of the targets.
    """

    train: Examples
    validation: Examples
    test: Examples
    collate: Collate = field(default=stack_examples)
    columns: Collection[str] | None = None
    labels: tuple[str, ...] = ("labels",)

    def __post_init__(self) -> None:
        """Check the parts. Raises UserError for one without examples."""
        for name in ("train", "validation", "test"):
            if not len(getattr(self, name)):
                raise empty_error(name)

    @cached_property
    def fingerprint(self) -> str:
        """Hex digits of all raw examples; computing them reads each once."""
        return fingerprint_of((part[i] for i in range(len(part))) for part in (self.train, self.validation, self.test))

    @property
    def num_examples(self) -> int:
        return len(self.train)

    def check_recipe(self, recipe: Recipe) -> None:
        check_batch(recipe, self.num_examples)

    def training_batches(
        self, recipe: Recipe, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Yield batches of shuffled examples; the position is the number of micro-batches."""
        purpose = ("data",) if rank_info.world_size == 1 else ("data", rank_info.rank)
        cpu = torch.device("cpu")
        for number, indices in shuffled_batches(self.num_examples, recipe, seed, start, cpu, rank_info):
            with seeded_rng(derived_seed(seed, *purpose, number)):
                batch = self._batch(self.train, indices)
            yield to_device(batch, device), (number + 1,)

    def evaluation_batches(
        self, part: Part, recipe: Recipe, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """Yield batches in storage order, with the same draws each time."""
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
                    f"a collator must return tensors, got {type(value).__name__} for {name!r}. Remove that column.",
                    option=name,
                    type=type(value).__name__,
                )
        return batch, {name: batch[name] for name in self.labels if name in batch}

    def _select_columns(self, example: Example) -> Example:
        if self.columns is None:
            return example
        return {name: value for name, value in example.items() if name in self.columns}
