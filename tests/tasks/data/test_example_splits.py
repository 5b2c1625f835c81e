"""Splits of data sets that do not allow a training."""

import pytest
import torch

from expect import raises
from tasks.data.example_splits import ExampleSplits
from tasks.recipes.recipe import Recipe

EXAMPLES = [{"x": torch.zeros(2), "labels": torch.tensor(0)} for _ in range(10)]


@pytest.mark.parametrize("name", ["train", "validation", "test"])
def test_a_part_without_examples_is_named(name: str) -> None:
    parts = {"train": EXAMPLES, "validation": EXAMPLES, "test": EXAMPLES, name: []}
    with raises("bad-data", option=name, value=0):
        ExampleSplits(**parts)


def test_a_batch_beyond_the_examples_is_named() -> None:
    splits = ExampleSplits(EXAMPLES, EXAMPLES, EXAMPLES)
    splits.check_recipe(Recipe(steps=1, batch=10, lr=0.1))
    with raises("mismatch", option="batch", value=11, most=10):
        splits.check_recipe(Recipe(steps=1, batch=11, lr=0.1))
