"""What losses, measures and summaries must return."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from expect import raises
from search_spaces.architecture.architecture import Architecture
from tasks.base import Task
from tasks.load import task_class
from tasks.recipes.recipe import Recipe
from tasks.run import Run

MOONS = task_class(f"{Path(__file__).parents[1]}/moons.py:Moons")
SHAPE = Architecture(depth=1, width=8, hidden=8)
STEPS = Recipe(steps=2, batch=50, lr=0.01, reports=2)


def returns(method: str, change: Callable[[Any], Any]) -> Task:
    """Moons with a method that returns something else."""

    class Changed(MOONS):  # type: ignore[misc, valid-type]
        pass

    def changed(self: Any, *arguments: Any) -> Any:
        return change(getattr(MOONS, method)(self, *arguments))

    setattr(Changed, method, changed)
    return Changed()  # type: ignore[no-any-return]


def each(change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda values: {name: change(value) for name, value in values.items()}


FAULTS: list[tuple[str, Callable[[Any], Any], dict[str, object]]] = [
    ("loss", lambda loss: loss.item(), {"value": "float"}),
    ("loss", lambda loss: np.float32(loss.item()), {"value": "float32"}),
    ("loss", lambda loss: f"{loss}", {"value": "str"}),
    ("loss", lambda loss: None, {"value": "NoneType"}),
    ("loss", Tensor.detach, {}),
    ("loss", lambda loss: loss.expand(50), {}),
    ("measure", lambda measures: None, {"value": "NoneType"}),
    ("measure", each(Tensor.numpy), {}),
    ("measure", each(lambda values: values.numpy().mean()), {}),
    ("measure", each(Tensor.mean), {}),
    ("measure", each(str), {}),
    ("summary", lambda summary: None, {}),
    ("summary", each(str), {}),
    ("summary", each(lambda value: np.array([value, value])), {}),
]


@pytest.mark.parametrize(("method", "change", "fields"), FAULTS)
def test_results_of_other_types_are_named(method: str, change: Callable[[Any], Any], fields: dict[str, object]) -> None:
    with raises("bad-plugin", task="moons", option=method, **fields):
        returns(method, change).fit(Run(architecture=SHAPE, recipe=STEPS, seed=0))


@pytest.mark.parametrize("change", [each(np.float64), each(torch.tensor), each(np.array)])
def test_numbers_of_numpy_and_torch_are_converted(change: Callable[[Any], Any]) -> None:
    run = Run(architecture=SHAPE, recipe=STEPS, seed=0)
    result = returns("summary", change).fit(run)
    assert {type(value) for value in result.metrics.values()} == {float}
    assert result.metrics == pytest.approx(MOONS().fit(run).metrics)
