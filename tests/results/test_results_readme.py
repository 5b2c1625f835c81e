from collections.abc import Callable
from pathlib import Path

from results.condition import FUNCTIONS, KEYWORDS
from results.row import Row

README = Path(__file__).parents[2] / "results" / "README.md"


def test_every_column_of_a_row_is_explained_in_order(make_row: Callable[..., Row]) -> None:
    lines = [line for line in README.read_text().splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in lines][:-1] == list(make_row().columns())


def test_everything_a_condition_may_use_is_named() -> None:
    words = set(README.read_text().replace("`", " ").replace(",", " ").replace(".", " ").split())
    assert {*FUNCTIONS, *KEYWORDS} - {"null", "true", "false"} <= words
