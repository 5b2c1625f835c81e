"""Losses and metrics of classification."""

import math
from pathlib import Path

import pytest
import torch

from expect import raises
from tasks.load import load_task
from tasks.recipes.recipe import Recipe
from tasks.training.supervised import means_and_errors

LOGITS = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.0]])
LABELS = torch.tensor([0, 1, 2])


@pytest.fixture(scope="module")
def task():  # type: ignore[no-untyped-def]  # a Moons, of a module imported by its path
    return load_task(f"{Path(__file__).parents[1]}/moons.py:Moons")


def surprise(example: int, label: int) -> float:
    scores = [math.exp(score) for score in LOGITS[example].tolist()]
    return -math.log(scores[label] / sum(scores))


def test_accuracy_and_loss_of_each_example(task) -> None:  # type: ignore[no-untyped-def]
    measurements = task.measure(LOGITS, LABELS)
    assert measurements["accuracy"].tolist() == [1, 1, 0]
    assert measurements["loss"].tolist() == pytest.approx([surprise(i, label) for i, label in enumerate([0, 1, 2])])


def test_a_mean_has_its_standard_error() -> None:
    metrics = means_and_errors(
        {"accuracy": torch.tensor([1.0] * 90 + [0.0] * 10), "loss": torch.tensor([1.0, 2.0, 3.0, 4.0])}
    )
    assert metrics["accuracy"] == pytest.approx(0.9)
    assert metrics["accuracy_se"] == pytest.approx(math.sqrt(0.9 * 0.1 / 100))
    assert metrics["loss"] == 2.5
    assert metrics["loss_se"] == pytest.approx(math.sqrt(1.25 / 4))


def test_label_smoothing_mixes_in_all_classes(task) -> None:  # type: ignore[no-untyped-def]
    loss = task.loss(LOGITS, LABELS, Recipe(steps=1, batch=1, lr=1.0, label_smoothing=0.3))
    expected = [
        0.7 * surprise(i, label) + 0.3 * sum(surprise(i, c) for c in range(3)) / 3 for i, label in enumerate([0, 1, 2])
    ]
    assert loss.item() == pytest.approx(sum(expected) / 3)


def test_a_label_may_be_shares_of_classes(task) -> None:  # type: ignore[no-untyped-def]
    shares = torch.tensor([[0.25, 0.75, 0.0]] * 3)
    loss = task.loss(LOGITS, shares, Recipe(steps=1, batch=1, lr=1.0))
    expected = [0.25 * surprise(i, 0) + 0.75 * surprise(i, 1) for i in range(3)]
    assert loss.item() == pytest.approx(sum(expected) / 3)


def test_labels_beyond_the_scores_are_named(task) -> None:  # type: ignore[no-untyped-def]
    with raises("bad-data", value=(0, 3), most=2):
        task.loss(LOGITS, torch.tensor([0, 3, 1]), Recipe(steps=1, batch=1, lr=1.0))
