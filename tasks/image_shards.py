"""Images in webdataset shards: tar files that are read from front to back, through timm.

Shapes: C = channels, H and W = height and width of an image.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch
from timm.data import create_dataset
from torch import Generator
from torch.utils.data import DataLoader

from search_spaces.errors import UserError
from search_spaces.files import regular
from tasks.batches import Batch
from tasks.image_sources import state_of
from tasks.images import Transform
from tasks.processes import ALONE, Share
from tasks.splits import Augment, DataPosition, Part, Splits, derived_seed

LISTING = "_info.json"
"""What such a folder has: for each split its shards, and how many images are in each."""


_NAME = re.compile(r"[\w.-][\w./-]*")
_MOST_LISTING = 2**26
"""Bytes."""


@dataclass(frozen=True)
class ImageShard:
    """One tar file, how many images are in it, and `state_of` the file."""

    name: str
    images: int
    state: str


@dataclass(frozen=True)
class ShardSplits(Splits):
    """Images that are read in the order of shuffled shards, and shuffled among those read next to one another.

    Validation is held out from the training shards: those whose names have the smallest hashes, until they have a
    twentieth of the images, or 10,000. Test is the published validation split.

    Other than everywhere else, the numbers depend on how many processes read, and a continued training reads its
    epoch again up to where it stood.

    Attributes:
        folder: Where the shards and their listing are.
        train: The training shards as published.
        test: The validation shards as published.
        classes: How many classes the images are in; shards do not say.
        changed: The recipe to what changes a training image.
        plain: What becomes of an image that is measured.
        augment: Changes training batches.

    Raises:
        UserError: There is one shard to train on, or the package webdataset is missing.
    """

    folder: Path
    train: tuple[ImageShard, ...]
    test: tuple[ImageShard, ...]
    classes: int
    changed: Callable[[Any], Transform]
    plain: Transform
    augment: Augment

    def __post_init__(self) -> None:
        if find_spec("webdataset") is None:
            raise UserError("webdataset shards are read by the package webdataset: pip install webdataset.")
        if not self._parted[1]:
            raise UserError(f"one of at least two training shards is held out for validation, got {len(self.train)}.")

    @property
    def fingerprint(self) -> str:
        """Of the shards' names, and of their files' sizes and times."""
        return hashlib.sha256(repr((self.train, self.test)).encode()).hexdigest()[:12]

    @property
    def examples(self) -> int:
        """How many images there are to train on."""
        return _total(self._parted[1])

    @cached_property
    def _parted(self) -> tuple[tuple[ImageShard, ...], tuple[ImageShard, ...]]:
        """The training shards that are held out, and the others."""
        wanted = min(10_000, _total(self.train) / 20)
        by_hash = sorted(self.train, key=lambda shard: hashlib.sha256(shard.name.encode()).digest())
        enough = next(n for n in range(1, len(by_hash) + 1) if _total(by_hash[:n]) >= wanted)
        return tuple(by_hash[:enough]), tuple(by_hash[enough:])

    def training(
        self, recipe: Any, seed: int, start: DataPosition, device: torch.device, share: Share = ALONE
    ) -> Iterator[tuple[Batch, DataPosition]]:
        """Batches of shuffled and changed images; the position is the number of micro-batches.

        Of several processes timm gives each other shards in each epoch.
        """
        size, per_epoch, number = recipe.micro_batch // share.of, recipe.micro_batches(self.examples), sum(start)
        images = self._images(self._parted[1], self.changed(recipe), size, derived_seed(seed, "shards"))
        loaders = min(max(1, recipe.loaders), max(1, len(self._parted[1]) // share.of))
        purpose = ("augmentation",) if share.of == 1 else ("augmentation", share.rank)
        generator = Generator(device)
        for epoch in count(number // per_epoch):
            images.set_epoch(epoch)
            draws = Generator().manual_seed(derived_seed(seed, "images", epoch))
            loader = DataLoader(images, size, drop_last=True, num_workers=loaders, generator=draws)
            for inputs, labels in islice(loader, number % per_epoch, per_epoch):
                generator.manual_seed(derived_seed(seed, *purpose, number))
                number += 1
                yield self.augment((inputs.to(device), labels.to(device)), recipe, generator), (number,)

    def measured(self, part: Part, recipe: Any, device: torch.device, share: Share = ALONE) -> Iterator[Batch]:
        """Batches in the order of the shards, of which each process reads its own."""
        shards, left = _first(self._parted[0] if part == "validation" else self.test, recipe.measured, share)
        if not shards:
            return
        images = self._images(shards, self.plain)
        reader = images.reader
        reader.dist_rank, reader.dist_num_replicas, reader.global_num_workers = (
            0,
            1,
            1,
        )  # timm would deal them out again
        for inputs, labels in DataLoader(images, recipe.micro_batch):
            yield inputs[:left].to(device), labels[:left].to(device)
            left -= len(inputs)
            if left <= 0:
                return

    def _images(self, shards: tuple[ImageShard, ...], transform: Transform, batch: int = 0, seed: int = 0) -> Any:
        """A timm data set of these shards, shuffled for batches of that size, or as they are."""
        images = create_dataset(
            "wds/",
            root=str(self.folder),
            split="::".join(shard.name for shard in shards),
            num_samples=_total(shards),
            is_training=batch > 0,
            batch_size=max(1, batch),
            seed=seed,
        )
        images.transform = transform
        return images


def shards(folder: Path, splits: tuple[str, ...]) -> tuple[ImageShard, ...]:
    """The shards of the first of these splits that the folder's listing has.

    Raises:
        UserError: It has none of them, or it or a shard cannot be read.
    """
    try:
        listed: Mapping[str, Any] = json.loads(regular(folder / LISTING, _MOST_LISTING).read_text())["splits"]
        found = next(listed[split] for split in splits if split in listed)
        names: list[str] = list(map(_file_name, found["filenames"]))
        return tuple(map(ImageShard, names, found["shard_lengths"], [state_of(folder / name) for name in names]))
    except UserError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError, StopIteration) as error:
        raise UserError(
            f"{str(folder / LISTING)!r} must list the filenames and shard_lengths of splits.{splits[0]}, "
            f"as timm's webdataset reader has it: {type(error).__name__} {error}"
        ) from error


def _file_name(name: str) -> str:
    """A shard's name as it is listed: of a file below the folder, and nothing that webdataset reads as a command."""
    if not _NAME.fullmatch(name) or ".." in name.split("/"):
        raise UserError(f"a shard is a file below its folder, of letters, digits, . _ - and /, got {name!r:.80}.")
    return name


def _first(shards: tuple[ImageShard, ...], limit: int, share: Share) -> tuple[tuple[ImageShard, ...], int]:
    """A process's own of the shards that hold the first images, 0 being all, and how many of these are in them."""
    left, own, images = limit or _total(shards), [], 0
    for number, shard in enumerate(shards):
        if left > 0 and number % share.of == share.rank:
            own.append(shard)
            images += min(left, shard.images)
        left -= shard.images
    return tuple(own), images


def _total(shards: tuple[ImageShard, ...] | list[ImageShard]) -> int:
    return sum(shard.images for shard in shards)
