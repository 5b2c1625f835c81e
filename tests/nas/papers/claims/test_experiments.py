"""Experiments: names of claims, exact values from closed forms, and the command's output."""

import csv
import io
import json
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
import torch
from torch import nn

from command_line import Command
from expect import raises
from grouped import grouped
from nas.papers.claims import Experiment, dilution, shortcuts
from nas.papers.claims.dilution import DCAInitialization, final_log10_loss
from nas.papers.claims.heads import HeadConditioning
from nas.papers.claims.row_experiments import BetterClaim, paired_differences
from nas.papers.claims.scaling import Scaling
from nas.papers.claims.shortcuts import LinearNet, Shortcuts, losses
from nas.papers.claims.table_experiments import TABLE_EXPERIMENTS
from nas.papers.claims.training_experiments import ARCHITECTURE_PAIRS, SEEDS
from nas.papers.claims.variance import Variance, _ratios
from results.records import jsonl
from results.records.published import papers
from results.records.sources import table_paths
from tasks.vision.digits import DigitsViT

QUICK: list[Experiment] = [Shortcuts(seeds=3), Scaling(), *TABLE_EXPERIMENTS]
ALL = [*QUICK, DCAInitialization(), Variance(), HeadConditioning()]


def test_claims_have_a_paper_and_distinct_names() -> None:
    for experiment in ALL:
        assert experiment.paper in papers()
        names = [claim.name for claim in experiment.claims]
        assert len(set(names)) == len(names), names
        assert all(claim.low < claim.high for claim in experiment.claims), names


def test_experiments_measure_every_claim_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortcuts, "_STEPS", 10)
    with grouped() as case:
        for experiment in QUICK:
            with case(f"{experiment.paper} {type(experiment).__name__}"):
                values = experiment.values()
                assert values.keys() == {claim.name for claim in experiment.claims}
                assert all(all(value == value for value in samples) for samples in values.values())


def test_two_layer_linear_network_takes_the_steps_of_its_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    draws = [torch.randn(2, 10, 10, generator=generator, dtype=torch.float64) for _ in range(3)]
    target, first, second = draws[0] / 10**0.5, draws[1] * 0.01, draws[2] * 0.01
    for _ in range(200):
        error = second @ (first + torch.eye(10)) - target
        first, second = first - 0.1 * second.mT @ error, second - 0.1 * error @ (first + torch.eye(10)).mT
    error = second @ (first + torch.eye(10)) - target
    assert losses(LinearNet(2, ((0, 1),)), 2) == pytest.approx(
        (error.square().sum((1, 2)) / 2).clamp_min(1e-28), rel=1e-6
    )


def test_variance_ratio_of_a_linear_map_is_that_of_its_weights() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(300, 100, bias=False)
    nn.init.normal_(layer.weight, std=0.1)
    forward, backward = _ratios(layer, (200, 300))
    assert forward == pytest.approx(300 * 0.01, rel=0.05)
    assert backward == pytest.approx(100 * 0.01, rel=0.05)


def test_low_rank_network_learns_and_is_reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dilution, "_STEPS", 40)
    slow, quick = (final_log10_loss("grn-v1", False, rate, 0) for rate in (1e-6, 3e-3))
    assert quick < slow - 1
    assert final_log10_loss("grn-v1", False, 3e-3, 0) == quick


def test_rows_are_paired_by_seed_and_signed_by_direction() -> None:
    experiment = next(candidate for candidate in TABLE_EXPERIMENTS if candidate.paper == "leaner")
    (better,) = experiment.pairs
    ((values),) = experiment.values().values()
    assert len(values) == 5
    opposite = BetterClaim(claim=better.claim, first=better.second, second=better.first, metric=better.metric)
    rows, _ = jsonl.read(table_paths()[experiment.table])
    assert paired_differences(rows, opposite) == pytest.approx([-value for value in values])
    lower = BetterClaim(claim=better.claim, first=better.first, second=better.second, metric="loss")
    by_seed = {(row.seed, row.architecture.depth): row.metrics["loss"] for row in rows}
    assert paired_differences(rows, lower) == pytest.approx([by_seed[seed, 2] - by_seed[seed, 1] for seed in range(5)])
    with raises("missing-rows", claim=better.claim.name):
        paired_differences(
            rows, BetterClaim(claim=better.claim, first={"depth": 9}, second={"depth": 1}, metric="loss")
        )


def test_command_prints_a_line_a_claim(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setattr("nas.cli.papers.claims.cheap_experiments", lambda: iter(QUICK))
    lines = list(
        csv.DictReader(io.StringIO(command("reproduce", "claims", "--paper", "rmt", "--format", "csv").stdout))
    )
    expected = chain.from_iterable(experiment.claims for experiment in QUICK if experiment.paper == "rmt")
    assert [line["claim"] for line in lines] == [claim.name for claim in expected]
    table = command("reproduce", "claims", "--paper", "rmt")
    assert table.returncode == 0
    assert "not distinguishable" in table.stdout


def test_preset_must_be_one_of_the_claims(command: Command) -> None:
    command("reproduce", "params", "--preset", "smoke").assert_error("conflict", option="--preset")
    command("reproduce", "claims", "--preset", "paper").assert_error("unknown-name", option="preset", value="paper")
    command("reproduce", "claims", "--study", "s").assert_error("missing-value", option="--preset")


def test_claims_train_once(monkeypatch: pytest.MonkeyPatch, command: Command, tmp_path: Path) -> None:
    monkeypatch.setitem(SEEDS, "smoke", 1)
    monkeypatch.setitem(DigitsViT.presets, "smoke", replace(DigitsViT.presets["smoke"], epochs=1, batch=512))
    words = ("reproduce", "claims", "--paper", "ancre", "--preset", "smoke", "--storage", f"sqlite:///{tmp_path}/s.db")
    first, second = (command(*words, "--workers", "1", "--format", "json") for _ in range(2))
    assert first.returncode == second.returncode == 0
    assert first.stdout == second.stdout
    assert "not distinguishable" in {line["verdict"] for line in json.loads(first.stdout)}


def test_every_paper_has_a_trained_claim() -> None:
    assert {pair.paper for pair in ARCHITECTURE_PAIRS} == set(papers())
