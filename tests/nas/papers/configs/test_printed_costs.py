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
"""The functions that count costs, before tests replace them."""


@cache
def costs(quantity: str) -> list[PrintedCost]:
    return list(COUNTS[quantity]())


@pytest.fixture(autouse=True)
def cached_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the costs once for all tests."""
    for quantity in COUNTS:
        monkeypatch.setitem(COSTS, quantity, partial(costs, quantity))


def test_costs_agree_with_their_labels() -> None:
    for quantity in COSTS:
        assert costs(quantity)
        assert not [cost for cost in costs(quantity) if not is_label_true(cost.label, cost.matches)], quantity


def test_counts_beside_a_measurement_neither_match_nor_differ() -> None:
    all_records = [record for quantity in COSTS for record in records(quantity, None)]
    assert {record["matches"] for record in all_records if record["label"] == "beside"} == {None}
    assert {record["matches"] for record in all_records if record["label"] == "stated"} == {"yes"}


def cost_of(costs: list[PrintedCost], table: str, model: str, number: int = 0) -> PrintedCost:
    return [cost for cost in costs if (cost.table, cost.model) == (table, model)][number]


def test_flops_of_the_transformer_agree_with_its_formula() -> None:
    """A forward pass of one token: 2 per weight except embeddings, and both products of attention."""
    flops = cost_of(costs("flops"), "4", "Transformer", 1).count
    weights, attention = 24 * (4 * 1024 * 1024 + 2 * 1024 * 4096), 24 * 2 * 512 * 1024
    assert flops == pytest.approx(3 * 6e9 * 2 * (weights + attention))
    with_embeddings = cost_of(costs("flops"), "4", "Transformer", 0).count
    assert with_embeddings - flops == pytest.approx(3 * 6e9 * 2 * 50257 * 1024)


def test_tokens_are_twenty_a_parameter_or_steps_times_rows() -> None:
    tokens = costs("tokens")
    norms = 13 * 384
    assert cost_of(tokens, "8", "Transformer 49M").count == pytest.approx(
        20 * (6 * (4 * 384 * 384 + 2 * 384 * 1536) + norms) / 1e6
    )
    assert cost_of(tokens, "2", "LLaMA-1B").count == pytest.approx(100_000 * 512 * 256 / 1e6)


def test_every_printed_memory_has_a_count_beside_it() -> None:
    lines = {(paper, line["table"], line["model"]) for paper in ("leaner", "ancre") for line in lines_of(paper)
               if line["memory_gb"]}  # fmt: skip
    counts = {(cost.paper, cost.table, cost.model) for cost in costs("memory")}
    assert lines - counts == {("leaner", "4", "DaViT-B, leaner")}
    assert cost_of(costs("memory"), "4", "ViT-B, original").count == pytest.approx(16 * 86_567_656 / 1e9)
    assert cost_of(costs("memory"), "6", "LLaMA-60M, without ANCRe").count == pytest.approx(8 * 58_073_600 / 1e9)


def test_times_are_ratios_to_the_plain_network() -> None:
    times = costs("time")
    assert cost_of(times, "1", "2-DCA").printed == pytest.approx(8.30 / 5.45)
    assert cost_of(times, "4", "RMT over transformer").printed == pytest.approx(3.30 / 1.86)
    assert all(cost.label == "beside" for cost in times)
    maps = 8 * (4 * 512 * 512 + 3 * 512 * 1376) + 32_000 * 512 + 8 * 2 * 256 * 512  # LLaMA-60M at one position
    skips, sums = 8 * 2 * 512, (8 + 2 * sum(range(1, 9))) * 512  # ANCRe adds the sums; two are one product
    assert cost_of(times, "6", "LLaMA-60M, ANCRe over none").count == pytest.approx(
        (maps + (skips + sums) / 2) / (maps + skips / 2), rel=1e-9
    )
    assert all(1 < cost.count < 1.1 for cost in times if cost.paper != "rmt")


def test_command_prints_a_line_a_cost_and_fails_if_one_is_wrong(
    monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    result = command("reproduce", "tokens", "--paper", "rmt", "--format", "csv")
    assert result.returncode == 0
    lines = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [line["model"] for line in lines] == [cost.model for cost in costs("tokens") if cost.paper == "rmt"]
    wrong = [replace(cost, label="stated") for cost in costs("tokens")]
    assert not all(cost.matches for cost in wrong)
    monkeypatch.setitem(COSTS, "tokens", lambda: wrong)
    result = command("reproduce", "tokens")
    assert result.returncode == 1
    assert "BROKEN" in result.stdout


def test_error_names_the_papers_with_such_a_column(command: Command) -> None:
    for format in ("table", "csv", "markdown"):
        result = command("reproduce", "tokens", "--paper", "leaner", "--format", format)
        result.assert_error("unsupported", option="--paper", value="leaner", choices=("rmt", "ancre"))
