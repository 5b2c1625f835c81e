from collections.abc import Callable
from pathlib import Path

from results.condition import FUNCTIONS, KEYWORDS
from results.row import PREFIXES, Row

README = Path(__file__).parents[2] / "results" / "README.md"


def test_every_column_of_a_row_is_explained_in_order(make_row: Callable[..., Row]) -> None:
    names = [line.split("`")[1] for line in README.read_text().splitlines() if line.startswith("| `")]
    assert [name for name in names if not name.endswith("_")] == list(make_row().columns())
    assert {name for name in names if name.endswith("_")} <= set(PREFIXES)


def test_everything_a_condition_may_use_is_named() -> None:
    words = set(README.read_text().replace("`", " ").replace(",", " ").replace(".", " ").split())
    assert {*FUNCTIONS, *KEYWORDS} - {"null", "true", "false"} <= words
