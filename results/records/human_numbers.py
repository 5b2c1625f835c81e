"""Human-readable numbers (50k, 1.5M), and the maximum file size."""

from pathlib import Path

from search_spaces.support.errors import UserError

SIZES = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
"""Multipliers of number suffixes."""

MAX_FILE = 2**30
"""Maximum size of an input file in bytes, uncompressed."""


def check_size(path: Path, size: int) -> None:
    """Raise UserError if a file is larger than MAX_FILE."""
    if size > MAX_FILE:
        message = f"{str(path)!r} has {size >> 20} MiB; the limit is {MAX_FILE >> 20} MiB."
        raise UserError("too-large", message, path=str(path), size=size, most=MAX_FILE)


def short(number: int) -> str:
    """Format a number with three digits and a suffix: 371k, 1.27M."""
    for letter in "TGMk":
        if number >= SIZES[letter]:
            return f"{float(f'{number / SIZES[letter]:.3g}'):g}{letter}"
    return str(number)
