"""Recipes tuned for each side of a comparison, and which differences are significant."""

import statistics
from typing import Any

import numpy as np
import pytest

import nas
from expect import raises, warns
from grouped import grouped
from nas.analysis.compare import differences_to_first
from nas.analysis.tune import TUNING_RANGE, best_recipes, recipes_to_try
from nas.cli import printers
from nas.workers.resources import Resources
from search_spaces.support.errors import Kind
from tasks.base import Metric
from tasks.vision.digits import DigitsViT
from toy_rows import LITTLE, a_row
from toy_searches import TOYS

ACCURACY = Metric("accuracy", "share", "max")


def test_recipes_to_try_are_the_own_one_and_others_within_range() -> None:
    task = DigitsViT()
    recipes = recipes_to_try(task, "smoke", (("epochs", 3),), ["lr", "weight_decay"], 9)
    assert len(recipes) == len(set(recipes)) == 9
    assert recipes[0] == (("epochs", 3),)
    recipe = task.presets["smoke"]
    for name in ("lr", "weight_decay"):
        factors = [dict(settings)[name] / getattr(recipe, name) for settings in recipes[1:]]
        assert all(1 / TUNING_RANGE <= factor <= TUNING_RANGE for factor in factors)
        assert min(factors) < TUNING_RANGE**-0.5
        assert max(factors) > TUNING_RANGE**0.5
    assert all(dict(settings)["epochs"] == 3 for settings in recipes)
    assert recipes_to_try(task, "smoke", (("epochs", 3),), ["lr", "weight_decay"], 9) == recipes


def test_tuning_of_unsuitable_settings_is_an_error() -> None:
    mistakes: list[tuple[str, Kind, dict[str, Any]]] = [
        ("rate", "unknown-name", {"option": "setting", "value": "rate"}),
        ("schedule", "wrong-type", {"option": "--tune", "setting": "schedule", "value": "cosine"}),
        ("epochs", "wrong-type", {"option": "--tune", "setting": "epochs"}),
        ("label_smoothing", "wrong-type", {"option": "--tune", "setting": "label_smoothing", "value": 0.0}),
    ]
    with grouped() as case:
        for name, kind, fields in mistakes:
            with case(name), raises(kind, **fields):
                recipes_to_try(DigitsViT(), "smoke", (), [name], 4)


def rows_of(scores: list[float | None], rates: np.ndarray) -> list[Any]:
    return [
        a_row(
            metrics={} if score is None else {"accuracy": score},
            status="failed" if score is None else "complete",
            recipe={"lr": float(rate)},
        )
        for score, rate in zip(scores, rates, strict=True)
    ]


def test_best_recipe_has_the_best_metric() -> None:
    rates = np.array([0.003, 0.01, 0.03, 0.1])
    recipes = [(("lr", float(rate)),) for rate in rates]
    rows = rows_of([0.858, 0.922, None, 0.739], rates)
    assert best_recipes([LITTLE], recipes, rows, ["lr"], ACCURACY) == [recipes[1]]
    assert best_recipes([LITTLE], recipes, rows, ["lr"], Metric("accuracy", "share", "min")) == [recipes[3]]


def test_each_architecture_is_tuned_by_its_own_trainings() -> None:
    rates = np.array([0.001, 0.01, 0.1])
    recipes = [(("lr", float(rate)),) for rate in rates]
    rows = [*rows_of([0.1, 0.5, 0.9], rates), *rows_of([0.9, 0.5, 0.1], rates), *rows_of([None] * 3, rates)]
    architectures = [LITTLE, LITTLE.with_fields({"depth": 2}), LITTLE.with_fields({"depth": 3})]
    with warns("failed", option="--tune", architecture=str(architectures[2])):
        best = best_recipes(architectures, recipes, rows, ["lr"], ACCURACY)
    assert best == [recipes[2], recipes[0], recipes[0]]


def training_rows(values: list[list[float]]) -> tuple[list[Any], list[Any]]:
    shapes = [LITTLE.with_fields({"depth": 1 + i}) for i in range(len(values))]
    rows = [
        a_row(architecture=shape, seed=seed, metrics={"accuracy": value}, test={"accuracy": value})
        for shape, accuracies in zip(shapes, values, strict=True)
        for seed, value in enumerate(accuracies)
    ]
    return shapes, rows


def test_differences_are_paired_by_seed_with_joint_intervals() -> None:
    base = [0.2, 0.5, 0.8, 0.4]
    shapes, rows = training_rows([base, [v + d for v, d in zip(base, (0.1, 0.11, 0.09, 0.1), strict=True)], base[::-1]])
    first, better, equal = differences_to_first(shapes, rows, "test_accuracy", "max")
    assert set(first) == set(better)
    assert not any(first.values())
    differences = [0.1, 0.11, 0.09, 0.1]
    reach = 4.1765 * statistics.stdev(differences) / 2  # Student's t of 3 degrees of freedom at 1 - 0.05 / 2 / 2
    assert better["difference"] == pytest.approx(0.1)
    assert (better["low"], better["high"]) == pytest.approx((0.1 - reach, 0.1 + reach), abs=1e-5)
    assert better["verdict"] == "better"
    assert differences_to_first(shapes, rows, "accuracy", "min")[1]["verdict"] == "worse"
    assert equal["difference"] == pytest.approx(0)
    assert equal["verdict"] == "not distinguishable"


def test_one_seed_or_failed_trainings_give_no_interval() -> None:
    shapes, rows = training_rows([[0.1], [0.2]])
    assert differences_to_first(shapes, rows, "accuracy", "max")[1] == {
        "difference": pytest.approx(0.1),
        **dict.fromkeys(("low", "high", "verdict")),
    }
    assert not any(differences_to_first(shapes, rows[:1], "accuracy", "max")[1].values())


def test_comparison_tunes_first_with_a_seed_of_its_own(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = {
        "arch": ["depth=1", "depth=2"], "preset": "smoke", "seeds": 2, "tune": "penalty", "tune_trials": 3,
        "settings": "penalty=0.1", "resources": Resources(1), "storage": f"sqlite:///{tmp_path}/studies.db",
    }  # fmt: skip
    comparison = nas.compare(f"{TOYS}:Toy", **arguments)
    assert [row.seed for row in comparison.tuning_rows] == [2] * 6
    assert [(row.architecture.depth, row.seed) for row in comparison.training_rows] == [(1, 0), (2, 0), (1, 1), (2, 1)]
    by_depth = {row.architecture.depth: row.recipe["penalty"] for row in comparison.training_rows}
    assert [record["recipe_penalty"] for record in comparison.records] == [by_depth[1], by_depth[2]]
    assert all(penalty < 0.1 for penalty in by_depth.values())  # the less penalty, the better
    assert {"difference", "low", "high", "verdict"} <= set(comparison.records[1])
    assert len(comparison.rows()) == 10
    assert "recipe_penalty 0.1 " in capsys.readouterr().err
    printers.print_comparison(comparison)
    output = capsys.readouterr().out
    assert comparison.records[1]["verdict"] in output
    assert "difference" in output
    with raises("missing-value", option="--seeds", needed_by="--tune", value=0):
        nas.compare(f"{TOYS}:Toy", **{**arguments, "seeds": 0})
    with raises("out-of-range", option="--tune-trials", value=1, least=2):
        nas.compare(f"{TOYS}:Toy", **{**arguments, "tune_trials": 1})
    with raises("missing-value", option="--tune", needed_by="--tune-trials", trials=3):
        nas.compare(f"{TOYS}:Toy", **{**arguments, "tune": ()})
