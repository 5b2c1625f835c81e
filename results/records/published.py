"""Published tables of papers as text, with every digit as printed (units: the README beside them)."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from search_spaces.support.errors import unknown_name_error

Line = Mapping[str, str]
"""Column -> printed text; empty where the paper prints nothing."""

_FOLDER = files("results").joinpath("tables", "published")


def papers() -> list[str]:
    """Return the names of all papers with tables here, sorted."""
    return sorted(file.name.removesuffix(".csv") for file in _FOLDER.iterdir() if file.name.endswith(".csv"))


@cache
def lines_of(paper: str) -> tuple[Line, ...]:
    """Return the rows of a paper's tables, in its order. Raises UserError for an unknown paper."""
    if paper not in papers():
        raise unknown_name_error("paper", paper, papers())
    return tuple(csv.DictReader(_FOLDER.joinpath(f"{paper}.csv").read_text(encoding="utf-8").splitlines()))
