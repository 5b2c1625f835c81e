"""lra-pathfinder: whether two marked ends are on one contour, pixel by pixel."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import final

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from search_spaces.support.cache import Arrays, cache_arrays
from search_spaces.support.errors import UserError
from search_spaces.support.files import check_regular_file
from tasks.data.splits import TensorSplits
from tasks.lra import contours, stamps
from tasks.lra.lra_presets import PATHFINDER, PathfinderRecipe
from tasks.lra.release import ReleaseFiles
from tasks.lra.task import GeneratedTask, splits_of

_LAYOUT = ReleaseFiles("lra-pathfinder", "pathfinder32/curv_contour_length_14", ("metadata", "imgs"))
_SEED = 0
"""Seed of the images and of the split."""


@final
class LRAPathfinder(GeneratedTask):
    """Connectivity in images of 32 x 32 pixels with contours of 14 dashes, split at random into 80 / 10 / 10 %.

    With `--data` the images are the release's; otherwise they are generated (tasks.lra.contours has the differences).
    A pixel's id is its brightness, and black pixels are padding, as in Nyströmformer's pipeline.
    """

    name = "lra-pathfinder"
    version = 2  # version 1 had far too many short contours
    context = 1024
    classes = 2
    presets = PATHFINDER

    def generate(self, recipe: PathfinderRecipe) -> TensorSplits:
        """Generate the recipe's images, once per machine."""
        return _generate(recipe.examples, recipe.single_dashes)

    def read(self, data: Path) -> TensorSplits:
        """Read the images that the release's metadata lists, without empty files, as the official pipeline does."""
        folder = _LAYOUT.find(data)
        images, answers = [], []
        for metadata in sorted((folder / "metadata").glob("*.npy"), key=lambda path: (len(path.name), path.name)):
            for path, answer in _read_listing(folder, metadata):
                if path.stat().st_size:
                    images.append(_pixels(path))
                    answers.append(answer)
        if not images:
            raise UserError(
                "missing-data",
                f"{str(folder / 'metadata')!r} must contain lists of images such as 0.npy. Unpack the release again.",
                path=str(folder / "metadata"),
            )
        return _split(torch.from_numpy(np.stack(images)), torch.tensor(answers))


def _read_listing(folder: Path, metadata: Path) -> list[tuple[Path, int]]:
    """Read image paths and answers from an .npy file that is text, with lines "imgs/0 sample_0.png 0 ANSWER ..."."""
    entries = []
    for line in check_regular_file(metadata).read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split(" ")
        if len(words) < 4 or words[3] not in ("0", "1"):
            raise UserError(
                "bad-data",
                f"{metadata} must have lines like 'imgs/0 sample_0.png 0 1', got {line[:60]!r}.",
                path=str(metadata),
            )
        path = folder / words[0] / words[1]
        if not path.is_file():
            raise UserError(
                "missing-data",
                f"{str(path)!r}, which {metadata.name} lists, is missing. Unpack the release again.",
                path=str(path),
            )
        entries.append((path, int(words[3])))
    return entries


def _pixels(path: Path) -> stamps.Array:
    """Return the bytes of a gray image, [32, 32]."""
    side = stamps.SIDE
    try:
        with Image.open(check_regular_file(path)) as image:
            size = image.size
            pixels = np.asarray(image) if size == (side, side) else None  # a huge image is not decoded
    except (Image.DecompressionBombError, UnidentifiedImageError, OSError):
        raise UserError(
            "bad-file", f"{str(path)!r} is not an image. Unpack the release again.", path=str(path)
        ) from None
    if pixels is None or pixels.shape != (side, side) or pixels.dtype != np.uint8:
        form = " x ".join(map(str, size if pixels is None else pixels.shape))
        raise UserError(
            "bad-data", f"an image must be {side} x {side} grey bytes, got {form} in {str(path)!r}.", path=str(path)
        )
    return pixels


@lru_cache(maxsize=2)
def _generate(examples: int, single_dashes: bool) -> TensorSplits:
    arguments = f"{LRAPathfinder.version} {examples} {_SEED} {single_dashes}"
    digest = hashlib.sha256(arguments.encode()).hexdigest()[:16]
    arrays = cache_arrays(f"pathfinder-{digest}.images", lambda: _arrays(examples, single_dashes))
    return _split(torch.from_numpy(arrays["images"]), torch.from_numpy(arrays["answers"]).long())


def _arrays(examples: int, single_dashes: bool) -> Arrays:
    images, answers = contours.generate(examples, _SEED, single_dashes=single_dashes)
    return {"images": images, "answers": answers}


def _split(images: Tensor, answers: Tensor) -> TensorSplits:
    """Split images [E, 32, 32] at random: eight tenths for training, one for validation and one for test."""
    order = torch.from_numpy(np.random.RandomState(_SEED).permutation(len(images)))  # a frozen NumPy generator
    ids, answers = images.flatten(1)[order], answers[order]
    cuts = [len(ids) * tenths // 10 for tenths in (8, 9)]
    return splits_of(*zip(ids.tensor_split(cuts), answers.tensor_split(cuts), strict=True))
