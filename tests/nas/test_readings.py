"""Printed parameters against counted ones: every reading is what its label says, and no count moves unseen."""

import csv
import io
import sys
from dataclasses import replace

import pytest

from nas.cli import main
from nas.readings import LABELS, Reading, holds, is_printed, readings, row_of, unread
from nas.readings.networks import params
from results.published import lines_of, papers
from search_spaces.errors import UserError

READ = [(paper, reading) for paper in papers() for reading in readings(paper)]
PARAMS = {paper: {row_of(line): line["params_millions"] for line in lines_of(paper)} for paper in papers()}


@pytest.mark.parametrize("reading", [reading for _, reading in READ], ids=lambda reading: f"{reading.model}")
def test_a_reading_counts_what_it_did(reading: Reading) -> None:
    assert params(reading) == reading.params


@pytest.mark.parametrize(("paper", "reading"), READ, ids=str)
def test_stated_and_fitted_readings_give_what_is_printed_and_others_do_not(paper: str, reading: Reading) -> None:
    matches = is_printed(reading.params, PARAMS[paper][reading.row], reading.rounding)
    assert reading.label == "nominal" or matches == (reading.label != "differs")


@pytest.mark.parametrize(("paper", "reading"), READ, ids=str)
def test_a_reading_says_what_it_is_in_words_that_are_known(paper: str, reading: Reading) -> None:
    assert reading.label in LABELS
    assert reading.counts in ("all", "matrices")
    assert reading.rounding in ("nearest", "down")
    assert reading.reading


@pytest.mark.parametrize(("paper", "reading"), READ, ids=str)
def test_what_was_stated_is_rounded_and_counted_in_full(paper: str, reading: Reading) -> None:
    """Another rounding, or leaving parameters out, is a choice made to fit."""
    assert reading.label != "stated" or (reading.rounding == "nearest" and reading.counts == "all")


def test_every_printed_count_is_read() -> None:
    assert not {paper: missing for paper in papers() if (missing := unread(paper))}


@pytest.mark.parametrize(("paper", "reading"), READ, ids=str)
def test_a_nominal_size_is_of_a_model_that_is_called_so(paper: str, reading: Reading) -> None:
    printed = PARAMS[paper][reading.row]
    called = f"{int(printed) // 1000}B" if int(float(printed)) >= 1000 else f"{printed}M"
    assert reading.label != "nominal" or f"-{called}," in reading.model


@pytest.mark.parametrize(
    ("params", "text", "rounding", "same"),
    [
        (49_653_040, "49.65", "nearest", True),
        (49_737_008, "49.73", "nearest", False),
        (49_737_008, "49.73", "down", True),
        (353_986, "0.3540", "nearest", True),
        (353_949, "0.3540", "nearest", False),
        (86_500_000, "87", "nearest", True),
        (1_339_082_752, "1000", "nearest", False),
        (58_960_000, "59.0", "nearest", True),
        (58_940_000, "59.0", "nearest", False),
    ],
)
def test_a_count_is_held_to_every_digit_that_is_printed(params: int, text: str, rounding: str, same: bool) -> None:
    assert is_printed(params, text, rounding) is same


def test_a_reading_holds_unless_it_misses_or_matches_unforeseen() -> None:
    assert [holds("stated", True), holds("fitted", True), holds("differs", False)] == [True] * 3
    assert [holds("stated", False), holds("fitted", False), holds("differs", True)] == [False] * 3


def test_a_nominal_size_is_held_to_nothing() -> None:
    assert holds("nominal", True)
    assert holds("nominal", False)


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["nas", "reproduce", "params", *words])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_the_command_prints_every_reading(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--paper", "rmt", "--format", "csv") == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [int(line["params"]) for line in lines] == [reading.params for reading in readings("rmt")]
    assert {line["label"]: line["matches"] for line in lines} == {"stated": "yes", "fitted": "yes", "differs": "no"}


def test_the_command_rounds_as_a_reading_does_and_counts_the_labels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    down = next(reading for reading in readings("leaner") if reading.rounding == "down")
    monkeypatch.setattr("nas.commands.reproduce.readings", lambda paper: (down,))
    assert run(monkeypatch, "--paper", "leaner") == 0
    out = capsys.readouterr().out
    assert "BROKEN" not in out
    assert "\n1 fitted\n" in out
    assert "stated" not in out.rpartition("\n\n")[2]


def test_the_command_fails_where_a_stated_row_no_longer_matches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (first, *_) = (reading for reading in readings("rmt") if reading.label == "stated")
    wrong = replace(first, architecture="depth=23")
    monkeypatch.setattr("nas.commands.reproduce.readings", lambda paper: (wrong,))
    monkeypatch.setattr("nas.commands.reproduce.unread", lambda paper: ["table 10 Highway transformer (OpenWebText)"])
    assert run(monkeypatch, "--paper", "rmt") == 1
    out = capsys.readouterr().out
    assert "BROKEN" in out
    assert "built by nothing here: table 10 Highway transformer" in out


def test_every_reading_is_of_a_row_with_printed_parameters() -> None:
    for paper in papers():
        assert all(PARAMS[paper][reading.row] for reading in readings(paper))


def test_an_unknown_paper_is_a_mistake() -> None:
    with pytest.raises(UserError, match="unknown paper"):
        readings("dac")
