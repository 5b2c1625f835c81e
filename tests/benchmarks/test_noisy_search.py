"""The benchmark of searches under noise: output and computed quantities."""

import json
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks import form, noisy_search
from benchmarks.landscapes import Landscape
from benchmarks.noisy_search import SearchReport, calibration_error, observed_front, ours, trainings
from nas.budget.bounds import Feasible
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import SearchSpace

BASE = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=16)
SPACE = SearchSpace("tiny", BASE, {"depth": tuple(range(1, 9)), "heads": (1, 2, 4), "topology": ("none", "resnet")})
EVERY = SPACE.architectures
LANDSCAPE = Landscape(
    Feasible(SPACE, tuple(SPACE)),
    {a: a.depth * a.heads for a in EVERY},
    {a: 1 / a.depth + 0.1 / a.heads + 0.2 * (a.topology == "none") for a in EVERY},
    noise=0.0,
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_search, "TRIALS", 20)
    monkeypatch.setattr(noisy_search, "CONFIRMING", 5)


def test_last_trainings_reevaluate_and_peers_repeat_no_architecture() -> None:
    observations, seconds = trainings(LANDSCAPE, "random", 0.1, 0, 5)
    assert len(observations) == 20
    assert len({each.architecture for each in observations[:15]}) == 15
    assert {each.architecture for each in observations[15:]} <= {each.architecture for each in observations[:15]}
    assert seconds > 0
    for inner in ("random", "benchmarks.noisy_search:SurrogateWithoutRepeats"):
        alone, _ = trainings(LANDSCAPE, inner, 0.1, 0, 0)
        assert len({each.architecture for each in alone}) == 20


def test_search_without_noise_reports_the_truth() -> None:
    for search in (ours, observed_front("random")):
        report = search(LANDSCAPE, 0.0, 0)
        assert 0 < LANDSCAPE.hypervolume(report.front) <= 1
        assert report.front <= set(EVERY)
    noisy = ours(LANDSCAPE, 0.2, 0)
    assert noisy.chances.keys() >= noisy.front


def test_botorch_searches_the_same_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botorch.acquisition.multi_objective.logei._load_attempted", True)  # it would compile C++ first
    monkeypatch.setattr(noisy_search, "TRIALS", 10)  # two beyond those at random
    searches: list[list[Architecture]] = []

    def recording(*arguments: Any) -> Any:
        observations, seconds = trainings(*arguments)
        searches.append([each.architecture for each in observations])
        return observations, seconds

    monkeypatch.setattr(noisy_search, "trainings", recording)
    report = noisy_search.botorch(LANDSCAPE, 0.05, 0)
    assert report.front <= set(EVERY)
    assert not report.chances
    assert LANDSCAPE.hypervolume(report.front) > 0.9
    (architectures,) = searches
    assert len(set(architectures)) == 10
    assert report.front <= set(architectures)


def test_calibration_error_compares_probabilities_with_outcomes() -> None:
    best, worse, worst = sorted(EVERY, key=lambda a: (LANDSCAPE.loss[a], LANDSCAPE.flops[a]))[::20][:3]
    flat = replace(LANDSCAPE, flops=dict.fromkeys(EVERY, 1))
    right = SearchReport(set(), {best: 1.0, worse: 0.0, worst: 0.0}, {}, 0.0)
    wrong = SearchReport(set(), {best: 0.3, worse: 0.3, worst: 0.0}, {}, 0.0)
    assert calibration_error(flat, [right]) == pytest.approx(0)
    assert calibration_error(flat, [wrong]) == pytest.approx(0.4 / 3)
    assert calibration_error(flat, [right, wrong]) == pytest.approx(0.4 / 6)
    assert calibration_error(flat, [SearchReport(set(), {best: np.nan}, {}, 0.0)]) is None


def test_quick_run_prints_one_json_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(noisy_search, "landscapes", lambda budgets, losses: {("tiny", "all"): LANDSCAPE})
    monkeypatch.setattr(sys, "argv", ["noisy_search", "--quick", "--json"])
    form.main("noisy_search", noisy_search.figures)
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert {"hypervolume_half", "calibration_error_twice", "proposal_ms", "hypervolume_without_tiny_all"} <= set(
        figures
    )
    assert figures["calibration_error_without"]["value"] < 0.2
    assert 0 < figures["hypervolume_half"]["value"] <= 1
