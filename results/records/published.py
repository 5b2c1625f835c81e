"""What papers print: the rows of their tables as text, every digit as it stands there (units: README beside them)."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from search_spaces.support.errors import unknown

Line = Mapping[str, str]
"""Column -> what is printed; nothing where the paper prints nothing."""

_FOLDER = files("results").joinpath("tables", "published")


def papers() -> list[str]:
    """Every paper whose tables are here, in alphabetical order."""
    return sorted(file.name.removesuffix(".csv") for file in _FOLDER.iterdir() if file.name.endswith(".csv"))


@cache
def lines_of(paper: str) -> tuple[Line, ...]:
    """The rows of a paper's tables, in its order. Raises UserError for a paper that is not here."""
    if paper not in papers():
        raise unknown("paper", paper, papers())
    return tuple(csv.DictReader(_FOLDER.joinpath(f"{paper}.csv").read_text(encoding="utf-8").splitlines()))
