"""Numbers as people write them: 50k, 1.5M."""

SIZES = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
"""What a letter behind a number multiplies it by."""


def short(number: int) -> str:
    """Three digits and a letter: 371k, 1.27M."""
    for letter in "TGMk":
        if number >= SIZES[letter]:
            return f"{float(f'{number / SIZES[letter]:.3g}'):g}{letter}"
    return str(number)
