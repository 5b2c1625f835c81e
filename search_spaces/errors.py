"""What users are told in one line, without a traceback: mistakes that they can mend, and notices."""

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class UserError(ValueError):
    """What somebody asked for cannot be done. The message is the rule, the value got and the remedy."""


class Notice(UserWarning):
    """A warning for whoever uses the project: something was passed over or done otherwise, and the work goes on."""


def show_notices() -> None:
    """From now on, this process prints notices as one line each; other warnings as before."""
    show = warnings.showwarning

    def line(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
        if issubclass(category, Notice):
            print(f"nas: {message}", file=sys.stderr)
        else:
            show(message, category, *place, **rest)

    warnings.showwarning = line


def unknown(kind: str, got: str, known: Iterable[str]) -> UserError:
    """A name that does not exist, with the nearest one that does."""
    names = sorted(known)
    near = get_close_matches(got, names, n=1, cutoff=0.5)
    remedy = f"Did you mean {near[0]!r}?" if near else f"Choose from: {', '.join(names)}."
    return UserError(f"unknown {kind} {got!r}. {remedy}")
