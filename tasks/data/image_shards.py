"""Images in webdataset shards: tar files that hold each image beside its class.

The positions of all images are indexed once and cached, which gives random access as in folders.
"""

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from search_spaces.support.cache import Arrays, cache_arrays
from search_spaces.support.errors import UserError
from search_spaces.support.files import check_regular_file
from search_spaces.support.progress import status_if_slow
from tasks.data.image_sources import ImageSource, check_member, file_stamp

LISTING = "_info.json"
"""The folder's listing: for each split its shards, and the number of images in each."""

IMAGES = ("jpg", "jpeg", "png", "webp")
"""Image extensions, in order of preference. An example's class is in its file with the extension `cls`."""

_INDEX_VERSION = 1
"""Version of the index; raise it when the arrays change."""

_PARTS = re.compile(r"((?:.*/)?[^./]+)\.([^/]*)")
"""A file name, split at its first dot into the example's name and the extension, as webdataset does."""

_SHARD_NAME = re.compile(r"[\w.-][\w./-]*")
_MOST_LISTING, _MOST_CLASS = 2**26, 32
"""Maximum sizes in bytes."""


@dataclass(frozen=True)
class ImageShard:
    """One tar file below the folder, its number of images, and its `file_stamp`."""

    name: str
    images: int
    state: str


class ImageSpan(NamedTuple):
    """An image's position in its shard, in bytes, and its class."""

    start: int
    size: int
    label: int


@dataclass(frozen=True)
class ShardImages:
    """The images of some shards, by index.

    Attributes:
        folder: Folder of the shards.
        shards: The shards.
        spans: For all images: `shard`, the shard's index, and the fields of `ImageSpan`, [images] each.
    """

    folder: Path
    shards: tuple[ImageShard, ...]
    spans: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.spans["label"])

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        """Return an image and its class. Raises OSError if it cannot be read, or its shard has changed."""
        shard, start, size, label = (int(self.spans[name][index]) for name in ("shard", *ImageSpan._fields))
        path = self.folder / self.shards[shard].name
        try:
            return Image.open(io.BytesIO(_bytes(path, self.shards[shard], start, size))).convert("RGB"), label
        except OSError as error:
            raise OSError(f"the image at byte {start:,} of {str(path)!r} cannot be read: {error}") from error


def shard_source(folder: Path, splits: tuple[str, ...], classes: int) -> ImageSource:
    """Return the images of the first of these splits that is in a folder's listing.

    Raises:
        UserError: The listing has none of the splits, or a shard cannot be read or does not match the listing.
    """
    shards = read_listing(folder, splits)
    digest = hashlib.sha256(f"{_INDEX_VERSION} {classes} {folder.resolve()} {shards}".encode()).hexdigest()

    def make() -> Arrays:
        with status_if_slow(f"indexing the images of {len(shards):,} shards ..."):
            spans = [_index_shard(folder, shard, classes) for shard in shards]
        columns = np.array([span for images in spans for span in images], dtype=np.int64).reshape(
            -1, len(ImageSpan._fields)
        )
        numbers = np.repeat(np.arange(len(shards)), [len(images) for images in spans])
        return {"shard": numbers, **dict(zip(ImageSpan._fields, np.ascontiguousarray(columns.T), strict=True))}

    spans = cache_arrays(f"shards/{digest}.safetensors", make)
    return ImageSource(ShardImages(folder, shards, spans), {str(label): label for label in range(classes)}, shards)


def read_listing(folder: Path, splits: tuple[str, ...]) -> tuple[ImageShard, ...]:
    """Return the shards of the first of these splits that is in the folder's listing.

    Raises:
        UserError: The listing has none of the splits, or it or a shard cannot be read.
    """
    try:
        lists: Mapping[str, Any] = json.loads(check_regular_file(folder / LISTING, _MOST_LISTING).read_text())["splits"]
        entry = next(lists[split] for split in splits if split in lists)
        names: list[str] = list(map(_file_name, entry["filenames"]))
        lengths = _lengths(names, entry["shard_lengths"])
        return tuple(ImageShard(name, n, file_stamp(folder / name)) for name, n in zip(names, lengths, strict=True))
    except UserError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError, StopIteration) as error:
        raise UserError(
            "bad-file",
            f"{str(folder / LISTING)!r} must list the filenames and shard_lengths of splits.{splits[0]}, "
            f"as timm's webdataset reader expects: {type(error).__name__} {error}",
            path=str(folder / LISTING),
            split=splits[0],
            cause=type(error).__name__,
        ) from error


def _file_name(name: str) -> str:
    """Return a listed shard name, checked to be a file below the folder."""
    if not _SHARD_NAME.fullmatch(name) or ".." in name.split("/"):
        message = f"a shard must be a path below its folder, of letters, digits, . _ - and /, got {name!r:.80}."
        raise UserError("bad-data", message, option="filenames", value=name)
    return name


def _lengths(names: list[str], lengths: list[int]) -> list[int]:
    """Return each shard's number of images. Raises ValueError if one is missing or a shard is listed twice."""
    positive = [length for length in lengths if type(length) is int and length > 0]
    if not 0 < len(names) == len({*names}) == len(positive) == len(lengths):
        raise ValueError("each shard must be listed once, with a positive number of images")
    return positive


def _bytes(path: Path, shard: ImageShard, start: int, size: int) -> bytes:
    """Read a part of a shard. Raises OSError if it cannot be read, or the shard changed since it was indexed."""
    with path.open("rb") as file:  # not kept open: there may be more shards than file descriptors
        file.seek(start)
        content = file.read(size)
    if file_stamp(path) != shard.state:  # checked last, so that the bytes read are those of the indexed file
        raise OSError("the shard has changed since it was indexed")
    return content


def _index_shard(folder: Path, shard: ImageShard, classes: int) -> list[ImageSpan]:
    """Index the images of a shard, in order. Raises UserError if the shard does not match the listing."""
    path = folder / shard.name
    try:
        with tarfile.open(path, "r:") as tar:
            examples = list(_examples(tar, path, classes))
    except UserError:
        raise
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        message = f"{str(path)!r} cannot be read as an uncompressed tar file: {error}"
        raise UserError("bad-file", message, path=str(path)) from error
    if file_stamp(path) != shard.state:
        message = f"{str(path)!r} has changed while it was indexed. Start again."
        raise UserError("in-use", message, path=str(path))
    if len(examples) != shard.images:
        raise UserError(
            "bad-data",
            f"{str(path)!r} must contain {shard.images} images with classes (.cls) as in {LISTING}, "
            f"got {len(examples)}.",
            path=str(path),
            images=len(examples),
            expected=shard.images,
        )
    return examples


def _examples(tar: tarfile.TarFile, path: Path, classes: int) -> Iterator[ImageSpan]:
    """Yield the image and class of each example. An example's files are adjacent, in any order, and share a name."""
    for _, files in groupby(_named_files(tar, path), key=lambda file: file[0]):
        files_by_ending: dict[str, tarfile.TarInfo] = {}
        for _, ending, member in files:
            if ending in files_by_ending:
                raise UserError(
                    "bad-data",
                    f"a shard must have each file of an example once, got {member.name!r} twice in {str(path)!r}.",
                    path=str(path),
                    value=member.name,
                )
            files_by_ending[ending] = member
        image = next((files_by_ending[ending] for ending in IMAGES if ending in files_by_ending), None)
        if image is not None and "cls" in files_by_ending:
            yield ImageSpan(image.offset_data, image.size, _label(tar, files_by_ending["cls"], path, classes))


def _named_files(tar: tarfile.TarFile, path: Path) -> Iterator[tuple[str, str, tarfile.TarInfo]]:
    """Yield the files of a shard, each with its example's name and its extension."""
    for member in tar:
        check_member(member, path)
        parts = _PARTS.fullmatch(member.name)
        if parts is not None and member.isreg():
            yield parts[1], parts[2].lower(), member


def _label(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path, classes: int) -> int:
    file = tar.extractfile(member) if member.size <= _MOST_CLASS else None
    text = file.read() if file is not None else b"..."
    label = int(text) if text.strip().isdigit() else -1
    if not 0 <= label < classes:
        raise UserError(
            "bad-data",
            f"{member.name!r} in {str(path)!r} must contain a class from 0 to {classes - 1}, got {text!r:.40}.",
            path=str(path),
            option=member.name,
            value=text.decode(errors="replace"),
        )
    return label
