"""Cost columns: every line is what its label says, and the formulas are those of the papers."""

import csv
import io
import sys
from functools import cache

import pytest

from nas.cli import main
from nas.commands.costs import records
from nas.readings import holds
from nas.readings.costs import COSTS, Cost, flops, memory, time, tokens
from results.published import lines_of


@cache
def costs(what: str) -> list[Cost]:
    return list(COSTS[what]())


@pytest.mark.parametrize("what", COSTS)
def test_a_cost_is_what_its_label_says(what: str) -> None:
    assert costs(what)
    assert not [cost for cost in costs(what) if not holds(cost.label, cost.matches)]


def test_what_stands_beside_a_measured_cost_neither_matches_nor_differs() -> None:
    assert {one["matches"] for one in records("memory", None) if one["label"] == "beside"} == {None}
    assert {one["matches"] for what in COSTS for one in records(what, None) if one["label"] == "stated"} == {"yes"}


def named(costs: list[Cost], table: str, model: str, number: int = 0) -> Cost:
    return [cost for cost in costs if (cost.table, cost.model) == (table, model)][number]


def test_the_transformers_flops_are_its_formulas() -> None:
    """A forward pass of one token: 2 a weight but the embeddings', and both products of attention."""
    found = named(list(flops()), "4", "Transformer", 1).here
    weights, attention = 24 * (4 * 1024 * 1024 + 2 * 1024 * 4096), 24 * 2 * 512 * 1024
    assert found == pytest.approx(3 * 6e9 * 2 * (weights + attention))
    with_words = named(list(flops()), "4", "Transformer", 0).here
    assert with_words - found == pytest.approx(3 * 6e9 * 2 * 50257 * 1024)


def test_tokens_are_twenty_a_parameter_or_steps_of_rows() -> None:
    found = list(tokens())
    norms = 13 * 384
    assert named(found, "8", "Transformer 49M").here == pytest.approx(
        20 * (6 * (4 * 384 * 384 + 2 * 384 * 1536) + norms) / 1e6
    )
    assert named(found, "2", "LLaMA-1B").here == pytest.approx(100_000 * 512 * 256 / 1e6)


def test_every_printed_memory_of_what_is_read_stands_beside_a_count() -> None:
    printed = {(paper, line["table"], line["model"]) for paper in ("leaner", "ancre") for line in lines_of(paper)
               if line["memory_gb"]}  # fmt: skip
    assert printed - {(cost.paper, cost.table, cost.model) for cost in memory()} == {("leaner", "4", "DaViT-B, leaner")}
    assert named(list(memory()), "4", "ViT-B, original").here == pytest.approx(16 * 86_567_656 / 1e9)
    assert named(list(memory()), "6", "LLaMA-60M, without ANCRe").here == pytest.approx(8 * 58_073_600 / 1e9)


def test_times_are_relations_to_the_plain_network() -> None:
    found = list(time())
    assert named(found, "1", "2-DCA").printed == pytest.approx(8.30 / 5.45)
    assert named(found, "4", "RMT over transformer").printed == pytest.approx(3.30 / 1.86)
    assert all(cost.label == "beside" for cost in found)
    maps = 8 * (4 * 512 * 512 + 3 * 512 * 1376) + 32_000 * 512 + 8 * 2 * 256 * 512  # of LLaMA-60M, at one position
    skips, weighted = 8 * 2 * 512, (8 + 2 * sum(range(1, 9))) * 512  # ANCRe's go on top, and two are one product
    assert named(found, "6", "LLaMA-60M, ANCRe over none").here == pytest.approx(
        (maps + (skips + weighted) / 2) / (maps + skips / 2), rel=1e-9
    )
    assert all(1 < cost.here < 1.1 for cost in found if cost.paper != "rmt")


def test_the_command_prints_a_line_a_cost_and_fails_where_one_broke(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["nas", "reproduce", "tokens", "--paper", "rmt", "--format", "csv"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [line["model"] for line in lines] == [cost.model for cost in costs("tokens") if cost.paper == "rmt"]
    monkeypatch.setattr("nas.readings.costs._label_of_tokens", lambda model: "stated")
    monkeypatch.setattr(sys, "argv", ["nas", "reproduce", "tokens"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert "BROKEN" in capsys.readouterr().out


@pytest.mark.parametrize("format", ["table", "csv", "markdown"])
def test_a_paper_without_such_a_column_is_told_which_have_one(
    format: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["nas", "reproduce", "tokens", "--paper", "leaner", "--format", format])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "has nothing of --paper leaner. Choose from: rmt, ancre." in capsys.readouterr().err
