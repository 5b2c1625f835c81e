"""The README of results lists every column and word of conditions."""

from collections.abc import Callable
from pathlib import Path

from results.query.condition import FUNCTIONS, KEYWORDS
from results.records.columns import PREFIXES
from results.records.row import Row

README = Path(__file__).parents[2] / "results" / "README.md"


def test_readme_lists_every_column_in_order(make_row: Callable[..., Row]) -> None:
    names = [line.split("`")[1] for line in README.read_text().splitlines() if line.startswith("| `")]
    assert [name for name in names if not name.endswith("_")] == list(make_row().columns())
    assert {name for name in names if name.endswith("_")} <= set(PREFIXES)


def test_readme_names_every_function_and_keyword_of_conditions() -> None:
    words = set(README.read_text().replace("`", " ").replace(",", " ").replace(".", " ").split())
    assert {*FUNCTIONS, *KEYWORDS} - {"null", "true", "false"} <= words
