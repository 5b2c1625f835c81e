"""The reference lists every column, and the guide to queries every word of conditions."""

from collections.abc import Callable
from pathlib import Path

from results.query.condition import FUNCTIONS, KEYWORDS
from results.records.columns import PREFIXES
from results.records.row import Row

DOCS = Path(__file__).parents[2] / "docs"


def test_reference_lists_every_column_in_order(make_row: Callable[..., Row]) -> None:
    tables = (
        (DOCS / "reference" / "columns.md")
        .read_text()
        .partition("\n## Columns of every row")[2]
        .partition("\n## Columns of a profile")[0]
    )
    names = [line.split("`")[1] for line in tables.splitlines() if line.startswith("| `")]
    assert [name for name in names if not name.endswith("_")] == list(make_row().columns())
    assert {name for name in names if name.endswith("_")} <= set(PREFIXES)


def test_guide_names_every_function_and_keyword_of_conditions() -> None:
    words = set(
        (DOCS / "guides" / "queries.md").read_text().replace("`", " ").replace(",", " ").replace(".", " ").split()
    )
    assert {*FUNCTIONS, *KEYWORDS} - {"null", "true", "false"} <= words
