"""Saved states of trainings."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from expect import warns
from search_spaces.architecture.architecture import Architecture
from tasks.base import Diverged
from tasks.data.splits import TensorSplits
from tasks.recipes.recipe import Recipe
from tasks.run import CONTINUE, STOP, Decision, Run
from tasks.training.classification import ClassificationTask

SHAPE = Architecture(depth=1, width=8, hidden=8)
RECIPE = Recipe(steps=30, batch=16, lr=0.01)


class Sides(ClassificationTask):
    """Which side of a line is a point on? Metrics are NumPy numbers."""

    name = "sides"
    version = 1
    base = SHAPE
    presets = {"smoke": RECIPE, "proxy": RECIPE}  # noqa: RUF012

    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.hidden = hidden
        self.passes = 0

    def load(self) -> TensorSplits:
        points = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
        parts = (points[:40], points[40:50], points[50:])
        return TensorSplits(*((part, (part[:, 0] > 0).long()) for part in parts))

    def build(self, architecture: Architecture) -> nn.Module:
        """Points [B, 2] to class scores [B, 2]."""
        return nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.2), nn.Linear(8, self.hidden), nn.Linear(self.hidden, 2))

    def example(self) -> Tensor:
        return torch.zeros(1, 2)

    def loss(self, outputs: Tensor, targets: Tensor, recipe: Recipe) -> Tensor:
        """Cross-entropy; counts its calls."""
        self.passes += 1
        return F.cross_entropy(outputs, targets)

    def summary(self, measurements: Mapping[str, Tensor]) -> Mapping[str, float]:
        """The means as NumPy numbers."""
        return {name: np.float64(value) for name, value in super().summary(measurements).items()}


def run(folder: Path | None, decision: Decision = CONTINUE) -> Run:
    return Run(architecture=SHAPE, recipe=RECIPE, seed=0, folder=folder, report=lambda *_: decision)


def test_numpy_metrics_are_saved_and_read_back(tmp_path: Path) -> None:
    whole = Sides().fit(run(None))
    partial = Sides().fit(run(tmp_path, STOP))
    task = Sides()
    assert task.fit(run(tmp_path)) == whole
    assert task.passes == whole.steps - partial.steps


def test_a_checkpoint_of_another_network_is_quarantined_and_training_restarts(tmp_path: Path) -> None:
    Sides().fit(run(tmp_path, STOP))
    task = Sides(hidden=9)  # build has changed
    (checkpoint,) = tmp_path.iterdir()
    with warns("bad-file", path=str(checkpoint)):
        result = task.fit(run(tmp_path))
    assert result == Sides(hidden=9).fit(run(None))
    assert task.passes == result.steps
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("checkpoint_each_step")
def test_a_diverging_training_saves_only_finite_states_and_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[dict[str, Tensor]] = []
    save = torch.save

    def record_state(content: dict[str, dict[str, dict[str, dict[str, Tensor]]]], path: Path) -> None:
        states.append({name: tensor.clone() for name, tensor in content["state"]["training"]["network"].items()})
        save(content, path)

    monkeypatch.setattr(torch, "save", record_state)
    with pytest.raises(Diverged):
        Sides().fit(replace(run(tmp_path), recipe=replace(RECIPE, lr=1e30)))
    assert states
    assert all(tensor.isfinite().all() for state in states for tensor in state.values())
    assert not list(tmp_path.iterdir())
