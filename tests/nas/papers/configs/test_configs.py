"""Printed parameters, compared with counted ones: every reading is what its label says."""

import csv
import io
from dataclasses import replace

import pytest

from command_line import Command
from expect import raises
from grouped import grouped
from nas.papers.configs import (
    LABELS,
    PaperConfig,
    is_label_true,
    is_printed,
    models_without_config,
    paper_configs,
    row_of,
)
from nas.papers.configs.formulas import value_of
from nas.papers.configs.paper_networks import architecture_of, params
from results.records.published import lines_of, papers
from search_spaces.architecture.architecture import Architecture
from tasks.load import task_class
from tasks.registry import TASKS

WITH_FORM = ("c4-dca-lm", "c4-lm", "lm1b-lm", "openwebtext-lm", "tinystories-lm")
"""Tasks of readings whose closed form has all parameters."""

READ = [(paper, reading) for paper in papers() for reading in paper_configs(paper)]
PARAMS = {paper: {row_of(line): line["params_millions"] for line in lines_of(paper)} for paper in papers()}


@pytest.mark.slow
def test_built_readings_have_the_parameters_of_their_table() -> None:
    with grouped() as case:
        for paper, reading in READ:
            with case(f"{paper} {reading.row}"):
                assert params(reading) == reading.params


def test_readings_have_the_parameters_of_their_table() -> None:
    """Build one network of each kind; count the others by the closed form of their task, if it has one."""
    kinds = set[object]()
    with grouped() as case:
        for paper, reading in READ:
            kind = reading.network, reading.counts, bool(reading.formula)
            is_new, has_form = kind not in kinds, reading.network in WITH_FORM and reading.counts == "all"
            kinds.add(kind)
            with case(f"{paper} {reading.row}"):
                number = params(reading) if is_new else closed_form(reading)
                assert number == (reading.params if is_new or has_form else None)
    assert len(kinds) > 25


def closed_form(reading: PaperConfig) -> int | None:
    """All parameters by the closed form, or None if there is none."""
    if reading.network not in TASKS.names() or reading.counts != "all":
        return None
    architecture = architecture_of(reading)
    form = task_class(reading.network)().closed_form(architecture)
    return form and form.params + (value_of(reading.formula, vars_of(architecture)) if reading.formula else 0)


def vars_of(architecture: Architecture) -> dict[str, int]:
    return {name: getattr(architecture, name) for name in ("depth", "width", "heads", "head_dim", "hidden")}


def test_stated_and_fitted_readings_agree_with_print_and_others_do_not() -> None:
    with grouped() as case:
        for paper, reading in READ:
            with case(f"{paper} {reading.row}"):
                matches = is_printed(reading.params, PARAMS[paper][reading.row], reading.rounding)
                assert reading.label == "nominal" or matches == (reading.label != "differs")


def test_readings_use_known_words() -> None:
    for paper, reading in READ:
        assert reading.label in LABELS, (paper, reading)
        assert reading.counts in ("all", "matrices"), (paper, reading)
        assert reading.rounding in ("nearest", "down"), (paper, reading)
        assert reading.rationale, (paper, reading)


def test_stated_readings_are_rounded_and_counted_in_full() -> None:
    """Another rounding, or leaving parameters out, is a choice made to fit."""
    choices = [reading for _, reading in READ if reading.label == "stated"]
    assert [reading for reading in choices if (reading.rounding, reading.counts) != ("nearest", "all")] == []


def test_every_printed_count_has_a_reading() -> None:
    assert not {paper: missing for paper in papers() if (missing := models_without_config(paper))}


def test_nominal_sizes_are_in_the_names_of_their_models() -> None:
    for paper, reading in READ:
        text = PARAMS[paper][reading.row]
        size = f"{int(text) // 1000}B" if int(float(text)) >= 1000 else f"{text}M"
        assert reading.label != "nominal" or f"-{size}," in reading.model, (paper, reading)


def test_count_must_agree_in_every_printed_digit() -> None:
    counts = [
        (49_653_040, "49.65", "nearest", True),
        (49_737_008, "49.73", "nearest", False),
        (49_737_008, "49.73", "down", True),
        (353_986, "0.3540", "nearest", True),
        (353_949, "0.3540", "nearest", False),
        (86_500_000, "87", "nearest", True),
        (1_339_082_752, "1000", "nearest", False),
        (58_960_000, "59.0", "nearest", True),
        (58_940_000, "59.0", "nearest", False),
    ]
    for number, text, rounding, same in counts:
        assert is_printed(number, text, rounding) is same, (number, text)


def test_reading_holds_if_its_match_fits_its_label() -> None:
    assert [is_label_true("stated", True), is_label_true("fitted", True), is_label_true("differs", False)] == [True] * 3
    assert [is_label_true("stated", False), is_label_true("fitted", False), is_label_true("differs", True)] == [
        False
    ] * 3
    assert [is_label_true("nominal", True), is_label_true("nominal", False)] == [True] * 2  # a name is no count


def test_command_prints_every_reading(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    some = [next(reading for reading in paper_configs("rmt") if reading.label == label) for label in LABELS[:3]]
    monkeypatch.setattr("nas.cli.papers.reproduce.paper_configs", lambda paper: some)
    result = command("reproduce", "params", "--paper", "rmt", "--format", "csv")
    assert result.returncode == 0
    lines = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [int(line["params"]) for line in lines] == [reading.params for reading in some]
    assert {line["label"]: line["matches"] for line in lines} == {"stated": "yes", "fitted": "yes", "differs": "no"}


def test_command_rounds_as_a_reading_does_and_counts_the_labels(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = next(reading for reading in paper_configs("leaner") if reading.rounding == "down")
    monkeypatch.setattr("nas.cli.papers.reproduce.paper_configs", lambda paper: (down,))
    result = command("reproduce", "params", "--paper", "leaner")
    assert result.returncode == 0
    assert "BROKEN" not in result.stdout
    assert "\n1 fitted\n" in result.stdout
    assert "stated" not in result.stdout.rpartition("\n\n")[2]


def test_command_fails_if_a_stated_row_does_not_match(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (first, *_) = (reading for reading in paper_configs("rmt") if reading.label == "stated")
    wrong = replace(first, architecture="depth=23")
    monkeypatch.setattr("nas.cli.papers.reproduce.paper_configs", lambda paper: (wrong,))
    monkeypatch.setattr(
        "nas.cli.papers.reproduce.models_without_config", lambda paper: ["table 10 Highway transformer (OpenWebText)"]
    )
    result = command("reproduce", "params", "--paper", "rmt")
    assert result.returncode == 1
    assert "BROKEN" in result.stdout
    assert "table 10 Highway transformer" in result.stdout


def test_every_reading_is_of_a_row_with_printed_parameters() -> None:
    for paper in papers():
        assert all(PARAMS[paper][reading.row] for reading in paper_configs(paper))


def test_unknown_paper_is_an_error() -> None:
    with raises("unknown-name", option="paper", value="dac", nearest="dca"):
        paper_configs("dac")
