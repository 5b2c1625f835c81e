"""The settings of a training run."""

from typing import Any

import pytest
import torch

from search_spaces.errors import UserError
from tasks.digits import DigitsRecipe
from tasks.recipe import Recipe


def test_the_learning_rate_rises_in_a_line_and_falls_in_a_cosine() -> None:
    recipe = Recipe(steps=100, batch=1, lr=1.0, warmup=0.1)
    rates = [recipe.learning_rate(step, 100) for step in range(100)]
    assert rates[:3] == pytest.approx([1 / 11, 2 / 11, 3 / 11])
    assert rates[10] == max(rates) == 1.0
    assert rates[55] == pytest.approx(0.5)  # half of the way down
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0 < rates[-1] < 0.001


def test_the_learning_rate_may_fall_in_a_line_to_its_floor() -> None:
    recipe = Recipe(steps=100, batch=1, lr=2.0, warmup=0.2, schedule="linear", floor=0.5)
    assert recipe.learning_rate(20, 100) == 2.0
    assert recipe.learning_rate(60, 100) == pytest.approx(1.5)
    assert recipe.learning_rate(99, 100) == pytest.approx(1 + 1 / 80)


def test_without_a_warmup_the_first_step_has_the_largest_learning_rate() -> None:
    assert Recipe(steps=10, batch=1, lr=0.3, warmup=0.0).learning_rate(0, 10) == 0.3


def test_epochs_are_counted_in_whole_batches() -> None:
    recipe = Recipe(epochs=3, batch=32, lr=1.0)
    assert recipe.total_steps(100) == 9
    assert recipe.total_steps(10) == 3  # fewer examples than a batch has are one batch
    assert Recipe(epochs=3, batch=32, accumulate=2, lr=1.0).total_steps(100) == 9


@pytest.mark.parametrize("examples", [10, 300, 512, 1000, 5000])
def test_a_training_is_as_long_on_several_devices_and_in_several_parts(examples: int) -> None:
    whole = Recipe(epochs=10, batch=512, lr=1.0)
    cut = [Recipe(epochs=10, batch=512, accumulate=4, lr=1.0).shared_by(devices) for devices in (1, 2, 4)]
    assert {recipe.total_steps(examples) for recipe in cut} == {whole.total_steps(examples)}
    assert whole.micro_batches(examples) == max(1, examples // 512)
    if examples >= 512:
        assert {recipe.micro_batches(examples) / recipe.accumulate for recipe in cut} == {examples // 512}


@pytest.mark.parametrize(
    ("batch", "accumulate", "devices", "parts"),
    [(30, 3, 2, 3), (30, 3, 3, 1), (60, 4, 3, 2), (36, 3, 2, 2), (12, 12, 4, 3), (30, 1, 5, 1)],
)
def test_a_device_of_several_takes_no_more_at_once_than_one_alone(
    batch: int, accumulate: int, devices: int, parts: int
) -> None:
    alone = Recipe(steps=1, batch=batch, accumulate=accumulate, lr=1.0)
    shared = alone.shared_by(devices)
    assert shared.accumulate == parts
    assert shared.micro_batch % devices == 0
    assert shared.micro_batch // devices <= alone.micro_batch


def test_reports_are_spread_over_the_training_and_leave_the_end_out() -> None:
    recipe = Recipe(steps=100, batch=1, lr=1.0, reports=4)
    assert recipe.report_steps(100) == {25, 50, 75}
    assert recipe.report_steps(2) == {1}


def test_a_batch_that_grows_is_one_devices() -> None:
    growing = Recipe(steps=100, batch=64, accumulate=8, batch_ramp=0.6, lr=1.0)
    assert growing.shared_by(1) == growing
    with pytest.raises(UserError, match=r"batch_ramp must be 0 on several devices, got 0\.6 on 2"):
        growing.shared_by(2)


def test_a_recipe_shows_as_what_it_changes() -> None:
    assert str(DigitsRecipe(epochs=2, batch=8, lr=0.1, shift=0.2)) == "epochs 2, batch 8, lr 0.1, shift 0.2"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, r"a recipe has epochs, steps or hours, got epochs=0, steps=0 and hours=0\.0\. Give one of them"),
        ({"epochs": 1, "steps": 1}, r"got epochs=1, steps=1 and hours=0\.0"),
        ({"steps": 1, "hours": 0.5}, r"got epochs=0, steps=1 and hours=0\.5"),
        ({"steps": 1, "accumulate": 3}, "accumulate must divide the batch, got 3 and 8"),
        (
            {"epochs": 1, "accumulate": 2, "batch_ramp": 0.5},
            r"batch_ramp must be 0 with epochs, .* got 0\.5\. Set steps",
        ),
        ({"steps": 1, "batch_ramp": 0.5}, r"batch_ramp needs micro-batches to grow by, got 0\.5 with accumulate=1"),
        ({"hours": 1e300}, r"hours must be at most 8,766, which is a year, got 1e\+300"),
        ({"hours": -1.0}, r"hours must be at least 0, got -1\.0"),
        ({"steps": 1, "accumulate": 2, "batch_ramp": 1.5}, r"batch_ramp must be at least 0 and at most 1, got 1\.5"),
    ],
)
def test_a_recipe_that_contradicts_itself_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        Recipe(batch=8, lr=0.1, **wrong)


@pytest.mark.parametrize(("ramp", "accumulate"), [(0.0, 6), (0.3, 6), (0.6, 4), (0.77, 9), (1.0, 5)])
def test_a_batch_grows_in_a_line_by_micro_batches(ramp: float, accumulate: int) -> None:
    recipe = Recipe(steps=200, batch=2 * accumulate, accumulate=accumulate, batch_ramp=ramp, lr=1.0)
    for step in range(250):
        line = step / 200 * accumulate / ramp if ramp else accumulate  # micro-batches, of which one more is begun
        whole = sum(1 for below in range(1, accumulate + 1) if below <= line + 1e-9)
        assert recipe.micro_batches_of(step, 200) == min(whole + 1, accumulate)


def test_the_first_beta_is_cycled_as_torchs_one_cycle_policy_does() -> None:
    recipe = Recipe(steps=200, batch=1, lr=2.0, warmup=0.3, schedule="linear", beta_cycle=(0.95, 0.85))
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=2.0)
    policy = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 2.0, total_steps=200, pct_start=0.3, anneal_strategy="linear"
    )
    for step in range(200):
        published = optimizer.param_groups[0]["betas"][0]
        assert recipe.first_beta(step, 200) == pytest.approx(published, abs=0.003)  # it begins at lr / 25
        optimizer.step()
        policy.step() if step < 199 else None
    plain = Recipe(steps=200, batch=1, lr=2.0)
    assert {plain.first_beta(step, 200) for step in range(200)} == {0.9}
    floored = Recipe(steps=200, batch=1, lr=2.0, floor=1.0, beta_cycle=(0.95, 0.85))
    assert floored.first_beta(150, 200) == pytest.approx(0.85)


def test_a_cycle_has_two_ends() -> None:
    with pytest.raises(UserError, match=r"beta_cycle must be two values like 0\.95:0\.85, or none"):
        Recipe(steps=2, batch=1, lr=1.0, beta_cycle=(0.9,))
