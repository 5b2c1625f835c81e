"""Splits of image files with random access.

Shapes: C = channels, H and W = height and width of an image.
"""

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.utils.data import DataLoader, Dataset

from search_spaces.support.rank import ALONE, RankInfo
from tasks.data.batches import Batch, to_device
from tasks.data.image_sources import ImageSource
from tasks.data.splits import Augment, DataPosition, Part, Splits, derived_seed, even_indices, shuffled_order

Key = tuple[int, int]
"""Index of the image, and the seed of its random transform."""

Transform = Callable[[Any], Tensor | tuple[Tensor, ...]]
"""Map an image to [C, H, W], or to several tensors. Its random draws are seeded by the key."""


@dataclass(frozen=True)
class ImageSplits(Splits):
    """Splits of images that are read on demand.

    Validation is held out from the training images: those whose indices have the smallest hashes. Test is the published
    validation split, which the search never sees.

    Attributes:
        train: The training split as published.
        test: The validation split as published.
        held_out: Number of training images held out for validation.
        train_transform: Recipe -> transform of training images.
        eval_transform: Transform of evaluation images.
        augment: Changes training batches.
    """

    train: ImageSource
    test: ImageSource
    held_out: int
    train_transform: Callable[[Any], Transform]
    eval_transform: Transform
    augment: Augment

    @cached_property
    def fingerprint(self) -> str:
        """Hex digits of the images' names and classes, and of their files' sizes and times; no image is read."""
        digest = hashlib.sha256()
        for source in (self.train, self.test):
            for line in (sorted(source.classes.items()), *source.listing):
                digest.update(f"{line}\n".encode())
        return digest.hexdigest()[:12]

    @property
    def classes(self) -> int:
        """Number of classes of the training images."""
        return len(self.train.classes)

    @property
    def num_examples(self) -> int:
        return len(self.train.images) - self.held_out

    def training_batches(
        self, recipe: Any, seed: int, start: DataPosition, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Yield batches of shuffled, transformed images; the position is the number of micro-batches."""
        first = sum(start)
        images = _TransformDataset(self.train.images, self.train_transform(recipe))
        generator = Generator(device)
        purpose = ("augmentation",) if rank_info.world_size == 1 else ("augmentation", rank_info.rank)
        keys = (keys[rank_info.shard] for keys in self._training_keys(recipe, seed, first))
        for number, batch in enumerate(_load_batches(images, keys, recipe, device), first):
            generator.manual_seed(derived_seed(seed, *purpose, number))
            yield self.augment(batch, recipe, generator), (number + 1,)

    def evaluation_batches(
        self, part: Part, recipe: Any, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """Yield batches in the order of the hashes (validation) or of the files (test)."""
        images = self.test.images
        indices = torch.arange(len(images))
        if part == "validation":
            images, indices = self.train.images, self._by_hash[: self.held_out]
        if 0 < recipe.measured < len(indices):
            indices = indices[even_indices(len(indices), recipe.measured)]
        chunks = indices.split(recipe.micro_batch)
        parts = [chunk[rank_info.shard].tolist() for chunk in chunks if len(chunk) > rank_info.rank]
        keys = [[(index, derived_seed(0, "measured", index)) for index in chunk] for chunk in parts]
        return _load_batches(_TransformDataset(images, self.eval_transform), iter(keys), recipe, device)

    @cached_property
    def _by_hash(self) -> Tensor:
        """Indices of all training images, sorted by hash."""
        hashes = b"".join(hashlib.sha256(str(index).encode()).digest()[:8] for index in range(len(self.train.images)))
        return torch.from_numpy(np.frombuffer(hashes, dtype=np.uint64).argsort(kind="stable"))

    def _training_keys(self, recipe: Any, seed: int, start: int) -> Iterator[list[Key]]:
        size, per_epoch = recipe.micro_batch, recipe.micro_batches(self.num_examples)
        train_indices = self._by_hash[self.held_out :]
        first = start % per_epoch
        for epoch in count(start // per_epoch):
            chunks = train_indices[shuffled_order(self.num_examples, seed, epoch)].split(size)
            for chunk in chunks[first:per_epoch]:
                yield [(index, derived_seed(seed, "image", epoch, index)) for index in chunk.tolist()]
            first = 0


class _TransformDataset(Dataset[tuple[Any, int]]):
    """A data set of images by key: a key always gives the same image, in every process and after any other key."""

    def __init__(self, images: Any, transform: Transform) -> None:
        self.images, self.transform = images, transform

    def __getitem__(self, key: Key) -> tuple[Any, int]:
        index, seed = key
        random.seed(seed)
        np.random.seed(seed)
        torch.default_generator.manual_seed(seed)
        image, label = self.images[index]
        return self.transform(image), label


def _load_batches(
    images: _TransformDataset, keys: Iterator[list[Key]], recipe: Any, device: torch.device
) -> Iterator[Batch]:
    loader: DataLoader[tuple[Any, int]] = DataLoader(
        images,
        batch_sampler=keys,
        num_workers=recipe.loaders,
        pin_memory=device.type == "cuda",
    )
    for inputs, labels in loader:
        yield to_device((inputs if isinstance(inputs, Tensor) else tuple(inputs), labels), device)
