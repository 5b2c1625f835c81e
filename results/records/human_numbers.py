"""Numbers as people write them: 50k, 1.5M; and how large a file may be."""

from pathlib import Path

from search_spaces.support.errors import UserError

SIZES = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
"""What a letter behind a number multiplies it by."""

MAX_FILE = 2**30
"""Bytes that are read of a file, unpacked, whatever its form."""


def check_size(path: Path, size: int) -> None:
    """Raise UserError where so many bytes are more than is read of a file."""
    if size > MAX_FILE:
        message = f"of a file {MAX_FILE >> 20} MiB are read at most, and {str(path)!r} has {size >> 20}."
        raise UserError("too-large", message, path=str(path), size=size, most=MAX_FILE)


def short(number: int) -> str:
    """Three digits and a letter: 371k, 1.27M."""
    for letter in "TGMk":
        if number >= SIZES[letter]:
            return f"{float(f'{number / SIZES[letter]:.3g}'):g}{letter}"
    return str(number)
