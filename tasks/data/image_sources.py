"""Sources of images: folders, tar files and Hugging Face data sets, read by timm."""

import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from PIL import Image

from search_spaces.support.errors import Kind, UserError, cause_fields
from search_spaces.support.files import check_regular_file

NAMES = {"train": ("train", "training"), "validation": ("validation", "val", "valid")}
"""Split -> names that it may have."""


@dataclass(frozen=True)
class ImageSource:
    """One split of a data set.

    Attributes:
        images: Index -> PIL image and label.
        classes: Name -> label.
        listing: Identifies the data set. For files: names of the images or shards, with each file's `file_stamp`. For
            the Hugging Face Hub: the data set's fingerprint and the labels.
    """

    images: Any
    classes: dict[str, int]
    listing: Iterable[object]


@dataclass(frozen=True)
class ReaderImages:
    """The images of a timm reader. timm's own data set replaces an unreadable image by the next one; this one raises.

    Attributes:
        reader: timm's reader: index -> open file and label, with the files' names.
    """

    reader: Any

    def __len__(self) -> int:
        return len(self.reader)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        """Return an image and its label. Raises OSError with the image's name if it cannot be read."""
        file, label = self.reader[index]
        try:
            return Image.open(file).convert("RGB"), label
        except OSError as error:
            raise OSError(f"image {self.reader.filename(index)!r} cannot be read: {error}") from error


def image_source(data: Path, split: str) -> ImageSource:
    """Return the "train" or "validation" split of a folder, or of "hfds/NAME".

    Raises:
        UserError: The split is missing or cannot be read.
    """
    if data.parts[:1] == ("hfds",):
        return _hugging_face(data, split)
    places = [data / f"{name}{ending}" for name in NAMES[split] for ending in ("", ".tar")]
    place = next((place for place in places if place.exists()), None)
    if place is None:
        names = ", ".join(place.name for place in places)
        message = f"a folder of images must contain one of {names}, got {str(data)!r}."
        raise UserError("missing-data", message, path=str(data), split=split)
    try:
        return _tar(place) if place.suffix == ".tar" else _folder(place)
    except UserError:
        raise
    except (RuntimeError, ValueError, OSError) as error:
        message = f"{str(place)!r} must contain a folder of images for each class: {error}"
        raise UserError("bad-data", message, path=str(place), cause=type(error).__name__) from error


def file_stamp(path: Path) -> str:
    """Return a file's size in bytes and modification time, to detect changes.

    Raises:
        UserError: The path is not a file, but a pipe or a device.
    """
    stat = check_regular_file(path).stat()
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _reader(name: str, **options: Any) -> Any:
    from timm.data import create_dataset  # takes three seconds

    return create_dataset(name, **options).reader


def _folder(place: Path) -> ImageSource:
    reader = _reader("", root=str(place), search_split=False)
    paths = map(Path, reader.filenames(absolute=True))
    listing = [f"{name} {file_stamp(path)}" for name, path in zip(reader.filenames(), paths, strict=True)]
    return ImageSource(ReaderImages(reader), reader.class_to_idx, listing)


def _tar(place: Path) -> ImageSource:
    with tarfile.open(check_regular_file(place)) as tar:
        for member in tar:
            check_member(member, place)
    # Without the cache, since processes that share an open file would move each other's file position.
    reader = _reader("", root=str(place), cache_tarfiles=False)
    return ImageSource(ReaderImages(reader), reader.class_name_to_idx, [file_stamp(place), *reader.filenames()])


def check_member(member: tarfile.TarInfo, tar_path: Path) -> None:
    """Check that a member of the tar file at `tar_path` is a plain file or folder. Nothing is ever extracted to disk.

    Raises:
        UserError: It is a link, a device, a sparse file, a file of negative size, or outside.
    """
    outside = member.name.startswith("/") or ".." in Path(member.name).parts
    leads_back = member.size < 0  # tarfile would read the same headers forever
    if outside or leads_back or member.issparse() or not (member.isreg() or member.isdir()):
        raise UserError(
            "bad-data",
            f"a tar file of images must contain only files and folders, got {member.name!r} in {str(tar_path)!r}: "
            "a link, a device, a sparse file, a negative size, or a path outside. Pack it again.",
            path=str(tar_path),
            value=member.name,
        )


def _kind(error: ImportError | OSError | ValueError) -> Kind:
    """Return the error's kind for a Hub data set: `datasets` not installed, no such split, or no connection."""
    if isinstance(error, ImportError):
        return "needs-extra"
    return "unavailable" if isinstance(error, OSError) else "missing-data"


def _hugging_face(name: Path, split: str) -> ImageSource:
    try:
        reader = _reader(name.as_posix(), split=split)
    except (ImportError, OSError, ValueError) as error:
        message = f"{str(name)!r} has no readable split {split!r}: {error}"
        fields = {**cause_fields(error), "option": "--data", "value": str(name), "split": split}
        raise UserError(_kind(error), message, **fields) from error
    # The fingerprint covers the Hub's revision or the files' times, and all later transforms.
    return ImageSource(
        ReaderImages(reader), reader.class_to_idx, chain([reader.dataset._fingerprint], reader.iter_targets())
    )
