"""Read the files that users give a trained network: images, tables of numbers, texts."""

import csv
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from search_spaces.support.errors import UserError
from search_spaces.support.files import check_regular_file
from tasks.input_formats import ImageInputs

_MAX_BYTES = 2**30


def read_image(path: Path, image: ImageInputs) -> Tensor:
    """Return an image as bytes [channels, height, width]; of another size, it is resized and cropped at the center.

    Raises:
        UserError: The file is no image or cannot be read.
    """
    try:
        with Image.open(check_regular_file(path, _MAX_BYTES)) as file:
            pixels = file.convert("L" if image.channels == 1 else "RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _unreadable(path, "an image", error) from error
    size = (image.width, image.height)
    if image.crop != 1 or pixels.size != size:
        factor = max(wanted / image.crop / given for wanted, given in zip(size, pixels.size, strict=True))
        scaled = [int(factor * given + 1e-6) for given in pixels.size]  # torchvision rounds down
        resized = pixels.resize((scaled[0], scaled[1]), Image.Resampling.BICUBIC)
        left, top = (round((given - wanted) / 2) for given, wanted in zip(scaled, size, strict=True))
        pixels = resized.crop((left, top, left + image.width, top + image.height))
    return torch.from_numpy(np.array(pixels)).view(image.height, image.width, -1).movedim(-1, 0)


def read_numbers(path: Path, features: int) -> Tensor:
    """Return the lines of a CSV file of numbers, [lines, features]; a first line of names is skipped.

    Raises:
        UserError: The file cannot be read, or a line has other cells.
    """
    lines = []
    try:
        with check_regular_file(path, _MAX_BYTES).open(newline="", encoding="utf-8") as file:
            for number, cells in enumerate(csv.reader(file), 1):
                numbers = _numbers(cells)
                if numbers is None and number == 1:
                    continue
                if numbers is None or len(numbers) != features:
                    got = f"{len(cells)} cells" if numbers is not None else f"{','.join(cells)!r:.40}"
                    message = f"{path}, line {number}, must have {features} numbers, got {got}."
                    raise UserError("bad-data", message, path=str(path), line=number, expected=features)
                lines.append(numbers)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, "a CSV file of numbers", error) from error
    if not lines:
        raise UserError("bad-data", f"{path} must have lines of {features} numbers, got none.", path=str(path))
    return torch.tensor(lines)


def read_text(path: Path) -> str:
    """Return a text file's text. Raises UserError if it cannot be read."""
    try:
        return check_regular_file(path, _MAX_BYTES).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, "a text file in UTF-8", error) from error


def _unreadable(path: Path, what: str, error: Exception) -> UserError:
    """Return the error for a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return UserError("missing-file", f"{path} does not exist. Give {what}.", path=str(path))
    reason = (getattr(error, "strerror", None) or f"{error}").splitlines()[0].rstrip(".")
    message = f"{path} must be {what}, got one that cannot be read ({reason:.120})."
    return UserError("bad-file", message, path=str(path), cause=type(error).__name__)


def _numbers(cells: list[str]) -> list[float] | None:
    try:
        return [float(cell) for cell in cells]
    except ValueError:
        return None
