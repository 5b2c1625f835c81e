"""Where images come from: folders, tar files and Hugging Face data sets, through timm."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timm.data import create_dataset

from search_spaces.mistake import Mistake

NAMES = {"train": ("train", "training"), "validation": ("validation", "val", "valid")}
"""What splits are called."""


@dataclass(frozen=True)
class Source:
    """One split of a data set.

    Attributes:
        images: Index -> PIL image and label.
        classes: Name -> label.
        listing: What tells it from another: the images' names, or their labels where they have none.
    """

    images: Any
    classes: dict[str, int]
    listing: Iterable[object]


def source(data: Path, split: str) -> Source:
    """The "train" or "validation" split of a folder, or of "hfds/NAME".

    Raises:
        Mistake: It is not there.
    """
    if data.parts[:1] == ("hfds",):
        return _hugging_face(data, split)
    places = [data / f"{name}{ending}" for name in NAMES[split] for ending in ("", ".tar")]
    place = next((place for place in places if place.exists()), None)
    if place is None:
        wanted = ", ".join(place.name for place in places)
        raise Mistake(f"a folder of images must hold one of {wanted}, got {str(data)!r}. Give it with --data FOLDER.")
    try:
        return _tar(place) if place.suffix == ".tar" else _folder(place)
    except (RuntimeError, ValueError, OSError) as error:
        raise Mistake(f"{str(place)!r} must hold a folder of images for each class: {error}") from error


def _folder(place: Path) -> Source:
    images = create_dataset("", root=str(place), search_split=False)
    reader = images.reader
    return Source(images, reader.class_to_idx, reader.filenames())


def _tar(place: Path) -> Source:
    # Processes that read the same open file would move each other's place in it.
    images = create_dataset("", root=str(place), cache_tarfiles=False)
    reader = images.reader
    return Source(images, reader.class_name_to_idx, reader.filenames())


def _hugging_face(name: Path, split: str) -> Source:
    try:
        images = create_dataset(name.as_posix(), split=split)
    except (ImportError, OSError, ValueError) as error:
        raise Mistake(f"{str(name)!r} has no split {split!r} that can be read: {error}") from error
    reader = images.reader
    return Source(images, reader.class_to_idx, reader.iter_targets())
