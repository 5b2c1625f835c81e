"""Labels that do not fit the scores are named before a training."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import Kind
from tasks.data.splits import TensorSplits
from tasks.load import task_class

MOONS = task_class(f"{Path(__file__).parents[1]}/moons.py:Moons")


def moons(part: str, change: Callable[[Tensor], Tensor]) -> MOONS:  # type: ignore[valid-type]
    """Moons with other labels in a part."""

    class Labelled(MOONS):  # type: ignore[misc, valid-type]
        def load(self) -> TensorSplits:
            splits = super().load()
            parts = {name: getattr(splits, name) for name in ("train", "validation", "test")}
            inputs, labels = parts[part]
            return TensorSplits(**{**parts, part: (inputs, change(labels))})

    return Labelled()


FAULTS: dict[str, tuple[Callable[[Tensor], Tensor], Kind, dict[str, object]]] = {
    "too large": (lambda labels: labels + 1, "bad-data", {"value": (1, 2), "most": 1}),
    "negative": (lambda labels: labels - 1, "bad-data", {"value": (-1, 0), "most": 1}),
    "ignored by torch": (lambda labels: labels * 0 - 100, "bad-data", {"value": (-100, -100)}),
    "floats": (lambda labels: labels.float(), "wrong-type", {}),
    "a column": (lambda labels: labels[:, None], "wrong-type", {}),
    "a column of floats": (lambda labels: labels[:, None].float(), "wrong-type", {}),
    "other integers": (lambda labels: labels.int(), "wrong-type", {}),
    "truth": (lambda labels: labels.bool(), "wrong-type", {}),
    "too many shares": (lambda labels: torch.rand(len(labels), 3), "wrong-type", {}),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_labels_that_do_not_fit_are_named(part: str, fault: str) -> None:
    change, kind, fields = FAULTS[fault]
    task = moons(part, change)
    with raises(kind, task="moons", option=part, **fields):
        task.check_data(task.presets["smoke"])


@pytest.mark.parametrize("change", [lambda x: x, lambda x: x.to(torch.uint8), lambda x: torch.eye(2)[x]])
def test_labels_that_fit_pass(change: Callable[[Tensor], Tensor]) -> None:
    task = moons("train", change)
    task.check_data(task.presets["smoke"])


def test_other_losses_and_networks_are_not_judged() -> None:
    class OwnLoss(MOONS):  # type: ignore[misc, valid-type]
        def loss(self, outputs: Tensor, targets: Tensor, recipe: object) -> Tensor:
            return (outputs[:, 0] - targets).square().mean()

        def load(self) -> TensorSplits:
            return moons("train", lambda labels: labels.float()).load()

    class Fails(MOONS):  # type: ignore[misc, valid-type]
        def build(self, architecture: Architecture) -> nn.Module:
            raise KeyError(architecture.depth)

    for task in (OwnLoss(), Fails()):
        task.check_data(task.presets["smoke"])
