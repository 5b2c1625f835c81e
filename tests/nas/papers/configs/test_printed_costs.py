"""Cost columns: every line is what its label says, and the formulas are those of the papers."""

import csv
import io
from dataclasses import replace
from functools import cache, partial

import pytest

from command_line import Command
from nas.cli.papers.costs import records
from nas.papers.configs import is_label_true
from nas.papers.configs.printed_costs import COSTS, PrintedCost
from results.records.published import lines_of

COUNTS = dict(COSTS)
"""What counts the costs, also while tests have others in its place."""


@cache
def costs(what: str) -> list[PrintedCost]:
    return list(COUNTS[what]())


@pytest.fixture(autouse=True)
def counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs are counted once for all tests here."""
    for what in COUNTS:
        monkeypatch.setitem(COSTS, what, partial(costs, what))


def test_costs_agree_with_their_labels() -> None:
    for what in COSTS:
        assert costs(what)
        assert not [cost for cost in costs(what) if not is_label_true(cost.label, cost.matches)], what


def test_counts_beside_a_measured_cost_neither_match_nor_differ() -> None:
    every = [one for what in COSTS for one in records(what, None)]
    assert {one["matches"] for one in every if one["label"] == "beside"} == {None}
    assert {one["matches"] for one in every if one["label"] == "stated"} == {"yes"}


def named(costs: list[PrintedCost], table: str, model: str, number: int = 0) -> PrintedCost:
    return [cost for cost in costs if (cost.table, cost.model) == (table, model)][number]


def test_flops_of_the_transformer_agree_with_its_formula() -> None:
    """A forward pass of one token: 2 a weight but the embeddings', and both products of attention."""
    flops = named(costs("flops"), "4", "Transformer", 1).here
    weights, attention = 24 * (4 * 1024 * 1024 + 2 * 1024 * 4096), 24 * 2 * 512 * 1024
    assert flops == pytest.approx(3 * 6e9 * 2 * (weights + attention))
    with_words = named(costs("flops"), "4", "Transformer", 0).here
    assert with_words - flops == pytest.approx(3 * 6e9 * 2 * 50257 * 1024)


def test_tokens_are_twenty_a_parameter_or_steps_times_rows() -> None:
    tokens = costs("tokens")
    norms = 13 * 384
    assert named(tokens, "8", "Transformer 49M").here == pytest.approx(
        20 * (6 * (4 * 384 * 384 + 2 * 384 * 1536) + norms) / 1e6
    )
    assert named(tokens, "2", "LLaMA-1B").here == pytest.approx(100_000 * 512 * 256 / 1e6)


def test_every_printed_memory_has_a_count_beside_it() -> None:
    printed = {(paper, line["table"], line["model"]) for paper in ("leaner", "ancre") for line in lines_of(paper)
               if line["memory_gb"]}  # fmt: skip
    counted = {(cost.paper, cost.table, cost.model) for cost in costs("memory")}
    assert printed - counted == {("leaner", "4", "DaViT-B, leaner")}
    assert named(costs("memory"), "4", "ViT-B, original").here == pytest.approx(16 * 86_567_656 / 1e9)
    assert named(costs("memory"), "6", "LLaMA-60M, without ANCRe").here == pytest.approx(8 * 58_073_600 / 1e9)


def test_times_are_ratios_to_the_plain_network() -> None:
    times = costs("time")
    assert named(times, "1", "2-DCA").printed == pytest.approx(8.30 / 5.45)
    assert named(times, "4", "RMT over transformer").printed == pytest.approx(3.30 / 1.86)
    assert all(cost.label == "beside" for cost in times)
    maps = 8 * (4 * 512 * 512 + 3 * 512 * 1376) + 32_000 * 512 + 8 * 2 * 256 * 512  # of LLaMA-60M, at one position
    skips, weighted = 8 * 2 * 512, (8 + 2 * sum(range(1, 9))) * 512  # ANCRe's go on top, and two are one product
    assert named(times, "6", "LLaMA-60M, ANCRe over none").here == pytest.approx(
        (maps + (skips + weighted) / 2) / (maps + skips / 2), rel=1e-9
    )
    assert all(1 < cost.here < 1.1 for cost in times if cost.paper != "rmt")


def test_command_prints_a_line_a_cost_and_fails_where_one_broke(
    monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    done = command("reproduce", "tokens", "--paper", "rmt", "--format", "csv")
    assert done.returncode == 0
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [line["model"] for line in lines] == [cost.model for cost in costs("tokens") if cost.paper == "rmt"]
    broken = [replace(cost, label="stated") for cost in costs("tokens")]
    assert not all(cost.matches for cost in broken)
    monkeypatch.setitem(COSTS, "tokens", lambda: broken)
    done = command("reproduce", "tokens")
    assert done.returncode == 1
    assert "BROKEN" in done.stdout


def test_paper_without_such_a_column_is_told_which_have_one(command: Command) -> None:
    for format in ("table", "csv", "markdown"):
        done = command("reproduce", "tokens", "--paper", "leaner", "--format", format)
        done.assert_error("unsupported", option="--paper", value="leaner", choices=("rmt", "ancre"))
