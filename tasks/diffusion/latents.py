"""Folders of latents in fast-DiT's format: features/N.npy [views, C, H, W], labels/N.npy [1], for N = 0, 1, 2 ...

A picture may have several views (itself and its mirror image); training draws one each time.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from search_spaces.support.cache import cache_arrays
from search_spaces.support.errors import UserError, cause_fields
from search_spaces.support.files import check_regular_file, kind_of_read_error
from search_spaces.support.progress import status_if_slow
from search_spaces.support.rank import ALONE, RankInfo
from tasks.data.batches import Batch
from tasks.data.image_sources import ImageSource, file_stamp
from tasks.data.image_splits import ImageSplits
from tasks.data.splits import Augment, Part, even_indices
from tasks.diffusion.noise import STEPS, add_noise

FEATURES, LABELS = "features", "labels"
"""Suffixes of the folders' names: fast-DiT's are imagenet256_features and imagenet256_labels."""

_MOST = 2**24
"""Maximum bytes of a file."""

Latent = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class LatentFiles:
    """Latents of pictures with all their views, and labels.

    Attributes:
        files: One file per picture.
        labels: [pictures].
    """

    files: list[Path]
    labels: np.ndarray[Any, np.dtype[np.int64]]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Latent, int]:
        """Return a picture's views and label. Raises UserError with the file's name if the file is invalid."""
        latent = _array(self.files[index])
        if latent.ndim != 4 or latent.dtype.kind != "f" or not len(latent):
            raise UserError(
                "bad-data",
                f"latents must be floats [views, channels, height, width], got {latent.dtype} {list(latent.shape)} "
                f"in {str(self.files[index])!r}.",
                path=str(self.files[index]),
                dtype=str(latent.dtype),
                shape=latent.shape,
            )
        return np.asarray(latent, dtype=np.float32), int(self.labels[index])

    def only(self, indices: Tensor) -> "LatentFiles":
        """Return the pictures at these indices."""
        return LatentFiles([self.files[index] for index in indices.tolist()], self.labels[indices.numpy()])


class LatentSplits(ImageSplits):
    """Splits of latents that are read on demand, with fixed noise for evaluation."""

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the latents."""
        _, channels, height, breadth = self.train.images[0][0].shape
        return channels, height, breadth

    def evaluation_batches(
        self, part: Part, recipe: Any, device: torch.device, rank_info: RankInfo = ALONE
    ) -> Iterator[Batch]:
        """Yield each picture once, with its class and with its own fixed time and noise."""
        start_index = 0
        for (start, noise, times), classes in super().evaluation_batches(part, recipe, device, rank_info):
            of_rank = torch.arange(start_index, start_index + len(start), device=device)
            picture = of_rank * rank_info.world_size + rank_info.rank
            start_index += len(start)
            yield (add_noise(start, noise, times), times, classes), {"noise": noise, "picture": picture}


def any_view(views: Latent) -> Tensor:
    """Draw one of a picture's views [views, C, H, W], for training."""
    return torch.from_numpy(views[int(torch.randint(len(views), ()))])


def with_fixed_noise(views: Latent) -> tuple[Tensor, Tensor, Tensor]:
    """Return a picture [C, H, W], noise and a time, for evaluation."""
    start = torch.from_numpy(views[0])
    return start, torch.randn(start.shape), torch.randint(STEPS, ())


def latent_splits(data: Path, noisy: Callable[[int], Augment], other_files: Iterable[Path]) -> LatentSplits:
    """Return the splits of a folder; validation and test each hold out a twentieth, at most 10,000 pictures.

    `noisy` maps the number of classes to the training augmentation. Evaluation also depends on `other_files`, so they
    are part of the fingerprint.

    Raises:
        UserError: There are no latents, or some lack a label.
    """
    read = _read(data)
    held_out = min(10_000, -(-len(read) // 20))
    test = even_indices(len(read), held_out)
    train_indices = torch.ones(len(read), dtype=torch.bool).index_fill_(0, test, False).nonzero().flatten()
    classes = {str(label): label for label in range(int(read.labels.max()) + 1)}
    listing = [f"{file.name} {file_stamp(file)}" for file in (*read.files, *other_files)]
    train = ImageSource(read.only(train_indices), classes, chain(listing, map(str, read.labels.tolist())))
    source = ImageSource(read.only(test), classes, ())
    return LatentSplits(train, source, held_out, lambda _: any_view, with_fixed_noise, noisy(len(classes)))


def _read(data: Path) -> LatentFiles:
    folders = sorted(folder for folder in data.glob(f"*{FEATURES}") if folder.is_dir())
    if len(folders) != 1:
        raise UserError(
            "missing-data" if not folders else "conflict",
            f"latents must be in one folder {FEATURES}/ or NAME_{FEATURES}/ of {str(data)!r}, got {len(folders)}. "
            f"Create them from images: nas encode IMAGES {data} --vae FOLDER",
            path=str(data),
            choices=tuple(map(str, folders)),
        )
    labels = folders[0].with_name(folders[0].name.removesuffix(FEATURES) + LABELS)
    files = sorted(folders[0].glob("*.npy"), key=_number)
    if len(files) < 3:
        raise UserError(
            "missing-data",
            f"latents of at least 3 pictures are needed, some for evaluation, got {len(files)} in {str(folders[0])!r}.",
            path=str(folders[0]),
            pictures=len(files),
            least=3,
        )
    listing = "\n".join(f"{file.name} {file_stamp(_labels_file(labels, file))}" for file in files)
    name = f"latent-labels-{hashlib.sha256(f'{labels.resolve()} {listing}'.encode()).hexdigest()[:12]}.safetensors"
    return LatentFiles(files, cache_arrays(name, lambda: {"labels": _labels(labels, files)})["labels"])


def _number(file: Path) -> int:
    if not file.stem.isdecimal():
        raise UserError(
            "bad-data", f"files of latents must be numbered (0.npy, 1.npy ...), got {str(file)!r}.", path=str(file)
        )
    return int(file.stem)


def _labels_file(labels: Path, file: Path) -> Path:
    if not (labels / file.name).is_file():
        raise UserError(
            "missing-data",
            f"every picture must have a label in {str(labels)!r}, got none for {file.name!r}.",
            path=str(labels),
            value=file.name,
        )
    return labels / file.name


def _labels(labels: Path, files: list[Path]) -> np.ndarray[Any, np.dtype[np.int64]]:
    with status_if_slow(f"reading the labels of {len(files)} pictures ..."):
        arrays = [_array(labels / file.name).ravel() for file in files]
    for file, label in zip(files, arrays, strict=True):
        if label.shape != (1,) or label.dtype.kind not in "iu" or label[0] < 0:
            raise UserError(
                "bad-data",
                f"a label must be one integer of at least 0, got {label!r:.60} in {str(labels / file.name)!r}.",
                path=str(labels / file.name),
                dtype=str(label.dtype),
                shape=label.shape,
            )
    return np.concatenate(arrays).astype(np.int64)


def _array(file: Path) -> np.ndarray[Any, Any]:
    try:
        array: np.ndarray[Any, Any] = np.load(check_regular_file(file, _MOST), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        message = f"{str(file)!r} must be a NumPy array without pickled objects: {error}"
        raise UserError(kind_of_read_error(error), message, **{**cause_fields(error), "path": str(file)}) from error
    return array
