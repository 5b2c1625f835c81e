"""Recipes: schedules, steps and batches."""

from typing import Any

import pytest
import torch

from expect import raises
from grouped import grouped
from search_spaces.support.errors import Kind
from tasks.recipes.recipe import Recipe
from tasks.vision.digits import DigitsRecipe


def test_the_learning_rate_has_a_linear_warmup_and_a_cosine_decay() -> None:
    recipe = Recipe(steps=100, batch=1, lr=1.0, warmup=0.1)
    rates = [recipe.learning_rate(step, 100) for step in range(100)]
    assert rates[:3] == pytest.approx([1 / 11, 2 / 11, 3 / 11])
    assert rates[10] == max(rates) == 1.0
    assert rates[55] == pytest.approx(0.5)  # halfway down
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0 < rates[-1] < 0.001


def test_a_linear_schedule_ends_at_its_floor() -> None:
    recipe = Recipe(steps=100, batch=1, lr=2.0, warmup=0.2, schedule="linear", floor=0.5)
    assert recipe.learning_rate(20, 100) == 2.0
    assert recipe.learning_rate(60, 100) == pytest.approx(1.5)
    assert recipe.learning_rate(99, 100) == pytest.approx(1 + 1 / 80)


def test_without_a_warmup_the_first_step_has_the_largest_learning_rate() -> None:
    assert Recipe(steps=10, batch=1, lr=0.3, warmup=0.0).learning_rate(0, 10) == 0.3


def test_epochs_are_counted_in_whole_batches() -> None:
    recipe = Recipe(epochs=3, batch=32, lr=1.0)
    assert recipe.total_steps(100) == 9
    assert recipe.total_steps(10) == 3  # fewer examples than a batch make one batch
    assert Recipe(epochs=3, batch=32, accumulate=2, lr=1.0).total_steps(100) == 9


def test_a_training_is_as_long_on_several_devices_and_in_micro_batches() -> None:
    with grouped() as case:
        for examples in (10, 300, 512, 1000, 5000):
            with case(f"{examples} examples"):
                whole = Recipe(epochs=10, batch=512, lr=1.0)
                recipes = [Recipe(epochs=10, batch=512, accumulate=4, lr=1.0).for_devices(n) for n in (1, 2, 4)]
                assert {recipe.total_steps(examples) for recipe in recipes} == {whole.total_steps(examples)}
                assert whole.micro_batches(examples) == max(1, examples // 512)
                if examples >= 512:
                    assert {r.micro_batches(examples) / r.accumulate for r in recipes} == {examples // 512}


def test_each_device_has_at_most_the_micro_batch_of_one_device() -> None:
    with grouped() as case:
        for batch, accumulate, devices, parts in (
            (30, 3, 2, 3),
            (30, 3, 3, 1),
            (60, 4, 3, 2),
            (36, 3, 2, 2),
            (12, 12, 4, 3),
            (30, 1, 5, 1),
        ):
            with case(f"batch {batch}, accumulate {accumulate}, {devices} devices"):
                alone = Recipe(steps=1, batch=batch, accumulate=accumulate, lr=1.0)
                per_device = alone.for_devices(devices)
                assert per_device.accumulate == parts
                assert per_device.micro_batch % devices == 0
                assert per_device.micro_batch // devices <= alone.micro_batch
        with case("a batch that devices cannot share"), raises("mismatch", option="batch", value=30, devices=4):
            Recipe(steps=1, batch=30, lr=1.0).for_devices(4)


def test_reports_are_evenly_spaced_without_the_last_step() -> None:
    recipe = Recipe(steps=100, batch=1, lr=1.0, reports=4)
    assert recipe.report_steps(100) == {25, 50, 75}
    assert recipe.report_steps(2) == {1}


def test_a_growing_batch_needs_one_device() -> None:
    growing = Recipe(steps=100, batch=64, accumulate=8, batch_ramp=0.6, lr=1.0)
    assert growing.for_devices(1) == growing
    with raises("conflict", option="batch_ramp", value=0.6, devices=2):
        growing.for_devices(2)


def test_a_recipe_prints_its_changed_settings() -> None:
    assert str(DigitsRecipe(epochs=2, batch=8, lr=0.1, shift=0.2)) == "epochs 2, batch 8, lr 0.1, shift 0.2"


def test_contradictory_recipes_are_refused() -> None:
    refusals: list[tuple[dict[str, Any], Kind, dict[str, object]]] = [
        ({}, "missing-value", {"epochs": 0, "steps": 0, "hours": 0.0}),
        ({"epochs": 1, "steps": 1}, "conflict", {"epochs": 1, "steps": 1, "hours": 0.0}),
        ({"steps": 1, "hours": 0.5}, "conflict", {"epochs": 0, "steps": 1, "hours": 0.5}),
        ({"steps": 1, "accumulate": 3}, "mismatch", {"option": "accumulate", "value": 3, "batch": 8}),
        (
            {"epochs": 1, "accumulate": 2, "batch_ramp": 0.5},
            "conflict",
            {"option": "batch_ramp", "value": 0.5, "epochs": 1},
        ),
        (
            {"steps": 1, "batch_ramp": 0.5},
            "missing-value",
            {"option": "accumulate", "value": 1, "needed_by": "batch_ramp", "batch_ramp": 0.5},
        ),
        ({"hours": 1e300}, "out-of-range", {"option": "hours", "value": 1e300, "most": 8766}),
        ({"hours": -1.0}, "out-of-range", {"option": "hours", "value": -1.0, "least": 0}),
        ({"steps": 1, "accumulate": 2, "batch_ramp": 1.5}, "out-of-range", {"option": "batch_ramp", "value": 1.5}),
    ]
    with grouped() as case:
        for wrong, kind, fields in refusals:
            with case(str(wrong)), raises(kind, **fields):
                Recipe(batch=8, lr=0.1, **wrong)


def test_a_batch_grows_linearly_by_micro_batches() -> None:
    with grouped() as case:
        for ramp, accumulate in ((0.0, 6), (0.3, 6), (0.6, 4), (0.77, 9), (1.0, 5)):
            with case(f"ramp {ramp}, accumulate {accumulate}"):
                recipe = Recipe(steps=200, batch=2 * accumulate, accumulate=accumulate, batch_ramp=ramp, lr=1.0)
                for step in range(250):
                    # One more micro-batch is started.
                    line = step / 200 * accumulate / ramp if ramp else accumulate
                    whole = sum(1 for below in range(1, accumulate + 1) if below <= line + 1e-9)
                    assert recipe.micro_batches_at(step, 200) == min(whole + 1, accumulate)


def test_the_first_beta_follows_torchs_one_cycle_policy() -> None:
    recipe = Recipe(steps=200, batch=1, lr=2.0, warmup=0.3, schedule="linear", beta_cycle=(0.95, 0.85))
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=2.0)
    policy = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 2.0, total_steps=200, pct_start=0.3, anneal_strategy="linear"
    )
    for step in range(200):
        beta = optimizer.param_groups[0]["betas"][0]
        assert recipe.first_beta(step, 200) == pytest.approx(beta, abs=0.003)  # torch starts at lr / 25
        optimizer.step()
        policy.step() if step < 199 else None
    plain = Recipe(steps=200, batch=1, lr=2.0)
    assert {plain.first_beta(step, 200) for step in range(200)} == {0.9}
    with_floor = Recipe(steps=200, batch=1, lr=2.0, floor=1.0, beta_cycle=(0.95, 0.85))
    assert with_floor.first_beta(150, 200) == pytest.approx(0.85)


def test_a_beta_cycle_needs_two_values() -> None:
    with raises("wrong-type", option="beta_cycle", value=(0.9,)):
        Recipe(steps=2, batch=1, lr=1.0, beta_cycle=(0.9,))
