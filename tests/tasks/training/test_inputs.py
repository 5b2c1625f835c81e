"""Data of other types or axes than the network's example."""

from pathlib import Path
from typing import Any

import pytest
import torch

from expect import raises
from tasks.load import task_class
from tasks.training.inputs import check_inputs

MOONS = task_class(f"{Path(__file__).parents[1]}/moons.py:Moons")
IMAGE, TEXT = torch.zeros(1, 3, 8, 8), torch.zeros(1, 9, dtype=torch.long)


def with_example(example: Any) -> Any:
    class Shown(MOONS):  # type: ignore[misc, valid-type]
        def example(self) -> Any:
            if isinstance(example, Exception):
                raise example
            return example

    return Shown()


@pytest.mark.parametrize(
    ("example", "inputs"),
    [
        (IMAGE, torch.zeros(5, 8, 8, 3)),
        (IMAGE, torch.zeros(5, 3, 8, 8, dtype=torch.uint8)),
        (IMAGE, torch.zeros(5, 3, 8, 8, dtype=torch.float64)),
        (IMAGE, torch.zeros(5, 8, 8)),
        (IMAGE, (torch.zeros(5, 3, 8, 8), torch.zeros(5))),
        (TEXT, torch.zeros(5, 9)),
        ({"x": IMAGE, "ids": TEXT}, {"x": torch.zeros(5, 3, 8, 8)}),
    ],
)
def test_inputs_unlike_the_example_are_named(example: Any, inputs: Any) -> None:
    with raises("mismatch", task="moons", option="inputs"):
        check_inputs(with_example(example), inputs)


@pytest.mark.parametrize(
    ("example", "inputs"),
    [
        (IMAGE, torch.zeros(5, 3, 8, 8)),
        ((IMAGE,), torch.zeros(5, 3, 8, 8)),
        (TEXT, torch.zeros(5, 4, dtype=torch.long)),  # a shorter text
        ({"x": IMAGE, "ids": TEXT}, {"ids": torch.zeros(5, 9, dtype=torch.long), "x": torch.zeros(5, 3, 8, 8)}),
        (KeyError("x"), torch.zeros(1)),  # the training has that reason
    ],
)
def test_inputs_like_the_example_pass(example: Any, inputs: Any) -> None:
    check_inputs(with_example(example), inputs)
