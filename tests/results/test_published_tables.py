"""The papers' tables as data: one vocabulary, one name a row, and numbers that can be what they say."""

import re
from pathlib import Path

import pytest

from results.published import lines_of, papers
from search_spaces.errors import UserError

README = Path(__file__).parents[2] / "results" / "tables" / "published" / "README.md"
COLUMNS = [
    name
    for line in README.read_text().splitlines()
    if line.startswith("| `") and ".csv" not in line
    for name in re.findall("`([^`]+)`", line.split("|")[1])
]
WORDS = {"model", "data", "device", "note"}
STAGED = {"depth", "heads", "hidden"}


def test_there_are_the_four_papers() -> None:
    assert papers() == ["ancre", "dca", "leaner", "rmt"]


@pytest.mark.parametrize("paper", papers())
def test_columns_are_those_that_are_explained_in_order(paper: str) -> None:
    assert all(list(line) == COLUMNS for line in lines_of(paper))


@pytest.mark.parametrize("paper", papers())
def test_table_model_and_data_name_one_row(paper: str) -> None:
    names = [(line["table"], line["model"], line["data"]) for line in lines_of(paper)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("paper", papers())
def test_cells_are_numbers_where_they_are_no_words(paper: str) -> None:
    for line in lines_of(paper):
        assert re.fullmatch(r"\d+(\.\d+)*", line["table"]), line
        for column in set(COLUMNS) - WORDS - {"table"}:
            for number in line[column].split("/") if column in STAGED else [line[column]]:
                assert not number or float(number) > 0, line
                assert not number or not column.endswith("_percent") or float(number) < 100, line


@pytest.mark.parametrize("paper", papers())
def test_every_row_says_something_of_its_model(paper: str) -> None:
    for line in lines_of(paper):
        assert line["model"]
        assert any(line[column] for column in COLUMNS[3:]), line


@pytest.mark.parametrize("paper", papers())
def test_stages_agree_in_number(paper: str) -> None:
    for line in lines_of(paper):
        assert len({line[column].count("/") for column in STAGED if line[column]}) <= 1, line


def test_an_unknown_paper_is_a_mistake() -> None:
    with pytest.raises(UserError, match=r"unknown paper 'dcaa'\. Did you mean 'dca'"):
        lines_of("dcaa")
