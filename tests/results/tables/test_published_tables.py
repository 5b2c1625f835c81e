"""The papers' tables as data: one vocabulary, unique names and possible numbers."""

import re
from pathlib import Path

import pytest

from expect import raises
from results.records.published import lines_of, papers

README = Path(__file__).parents[3] / "results" / "tables" / "published" / "README.md"
COLUMNS = [
    name
    for line in README.read_text().splitlines()
    if line.startswith("| `") and ".csv" not in line
    for name in re.findall("`([^`]+)`", line.split("|")[1])
]
WORDS = {"model", "data", "device", "note"}
STAGE_FIELDS = {"depth", "heads", "hidden"}


def test_there_are_the_four_papers() -> None:
    assert papers() == ["ancre", "dca", "leaner", "rmt"]


@pytest.mark.parametrize("paper", papers())
def test_rows_have_the_documented_columns_and_a_name_of_their_own(paper: str) -> None:
    assert all(list(line) == COLUMNS for line in lines_of(paper))
    names = [(line["table"], line["model"], line["data"]) for line in lines_of(paper)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("paper", papers())
def test_cells_hold_words_or_possible_numbers(paper: str) -> None:
    for line in lines_of(paper):
        assert re.fullmatch(r"\d+(\.\d+)*", line["table"]), line
        for column in set(COLUMNS) - WORDS - {"table"}:
            for number in line[column].split("/") if column in STAGE_FIELDS else [line[column]]:
                assert not number or float(number) > 0, line
                assert not number or not column.endswith("_percent") or float(number) < 100, line
        assert line["model"], line
        assert any(line[column] for column in COLUMNS[3:]), line
        assert len({line[column].count("/") for column in STAGE_FIELDS if line[column]}) <= 1, line


def test_unknown_paper_is_refused() -> None:
    with raises("unknown-name", option="paper", value="dcaa", nearest="dca"):
        lines_of("dcaa")
