"""The benchmark of searches under noise: its form, and that what it measures is what it says."""

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
    {one: one.depth * one.heads for one in EVERY},
    {one: 1 / one.depth + 0.1 / one.heads + 0.2 * (one.topology == "none") for one in EVERY},
    noise=0.0,
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_search, "TRIALS", 20)
    monkeypatch.setattr(noisy_search, "CONFIRMING", 5)


def test_last_trainings_confirm_and_peers_train_nothing_twice() -> None:
    trained, seconds = trainings(LANDSCAPE, "random", 0.1, 0, 5)
    assert len(trained) == 20
    assert len({one.architecture for one in trained[:15]}) == 15
    assert {one.architecture for one in trained[15:]} <= {one.architecture for one in trained[:15]}
    assert seconds > 0
    for inner in ("random", "benchmarks.noisy_search:Once"):
        alone, _ = trainings(LANDSCAPE, inner, 0.1, 0, 0)
        assert len({one.architecture for one in alone}) == 20


def test_search_without_noise_reports_the_truth() -> None:
    for search in (ours, observed_front("random")):
        found = search(LANDSCAPE, 0.0, 0)
        assert 0 < LANDSCAPE.hypervolume(found.front) <= 1
        assert found.front <= set(EVERY)
    noisy = ours(LANDSCAPE, 0.2, 0)
    assert noisy.chances.keys() >= noisy.front


def test_botorch_searches_the_same_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botorch.acquisition.multi_objective.logei._load_attempted", True)  # it would compile C++ first
    monkeypatch.setattr(noisy_search, "TRIALS", 10)  # two beyond those at random
    searches: list[list[Architecture]] = []

    def recording(*arguments: Any) -> Any:
        trained, seconds = trainings(*arguments)
        searches.append([one.architecture for one in trained])
        return trained, seconds

    monkeypatch.setattr(noisy_search, "trainings", recording)
    found = noisy_search.botorch(LANDSCAPE, 0.05, 0)
    assert found.front <= set(EVERY)
    assert not found.chances
    assert LANDSCAPE.hypervolume(found.front) > 0.9
    (trained,) = searches
    assert len(set(trained)) == 10
    assert found.front <= set(trained)


def test_calibration_error_is_the_distance_of_chances_from_outcomes() -> None:
    best, worse, worst = sorted(EVERY, key=lambda one: (LANDSCAPE.loss[one], LANDSCAPE.flops[one]))[::20][:3]
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
