"""A mistake its user can mend: shown as one line, without a traceback."""

from collections.abc import Iterable
from difflib import get_close_matches


class Mistake(ValueError):
    """What somebody asked for cannot be done. The message is the rule, the value got and the remedy."""


def unknown(kind: str, got: str, known: Iterable[str]) -> Mistake:
    """A name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = get_close_matches(got, names, n=1, cutoff=0.5)
    remedy = f"Did you mean {near[0]!r}?" if near else f"Choose from: {', '.join(names)}."
    return Mistake(f"unknown {kind} {got!r}. {remedy}")
