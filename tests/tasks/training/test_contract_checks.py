"""Faults that check_task finds, one per task."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn

from expect import breaks
from search_spaces.architecture.architecture import Architecture
from tasks.base import FitResult, Task
from tasks.data.splits import TensorSplits
from tasks.load import task_class
from tasks.recipes.recipe import Recipe
from tasks.run import Run
from tasks.training.contract import (
    check_axes,
    check_input_format,
    check_no_leakage,
    check_recipes,
    check_reproducibility,
    check_stop_and_resume,
    check_task,
)

MOONS = task_class(f"{Path(__file__).parents[1]}/moons.py:Moons")
TINY = Architecture(depth=1, width=8, hidden=8)
SMOKE = Recipe(steps=6, batch=50, lr=0.01, reports=3)


class Tiny(MOONS):  # type: ignore[misc, valid-type]
    """Moons in six steps."""

    presets = {"smoke": SMOKE, "proxy": SMOKE}  # noqa: RUF012


class KeepsNothing(Tiny):
    """Saves no checkpoint."""

    def fit(self, run: Run) -> FitResult:
        return super().fit(replace(run, folder=None))  # type: ignore[no-any-return]


class BeginsAnew(KeepsNothing):
    """Leaves a file that it never reads."""

    def fit(self, run: Run) -> FitResult:
        """As if there were no folder, and something in it until the end."""
        assert run.folder is not None
        note = run.folder / "note"
        note.write_text("no checkpoint")
        result = super().fit(run)
        if result.steps == SMOKE.steps:
            note.unlink()
        return result


class Deaf(Tiny):
    """Ignores its run."""

    def fit(self, run: Run) -> FitResult:
        metrics: Mapping[str, float] = {metric.name: 0.5 for metric in self.metrics}
        return FitResult(steps=7, metrics=metrics, test=metrics)


class OneSeed(Tiny):
    """Ignores only the seed."""

    def fit(self, run: Run) -> FitResult:
        return super().fit(replace(run, seed=0))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("task", "check"),
    [(KeepsNothing(), "stop-leaves-a-checkpoint"), (BeginsAnew(), "resumed-training-goes-on")],
    ids=["keeps nothing", "begins anew"],
)
def test_a_training_that_cannot_be_resumed_is_found(task: Task, check: str) -> None:
    with breaks(check):
        check_stop_and_resume(task, TINY)


def test_a_training_that_ignores_its_run_is_found() -> None:
    with breaks("training-depends-on-its-run"):
        check_reproducibility(Deaf(), TINY)


def test_a_training_that_ignores_only_the_seed_passes() -> None:
    check_reproducibility(OneSeed(), TINY)


def test_a_training_without_reports_passes_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    check_stop_and_resume(Tiny(), TINY)
    assert not capsys.readouterr().out
    check_stop_and_resume(Deaf(), TINY)
    assert capsys.readouterr().out


@pytest.mark.parametrize("split", ["validation", "test"])
def test_leaked_training_examples_are_found(split: str) -> None:
    class Leaking(Tiny):
        def load(self) -> TensorSplits:
            splits = super().load()
            assert isinstance(splits, TensorSplits)
            return replace(splits, **{split: splits.train})

    check_no_leakage(Tiny(), TINY)
    with breaks("examples-are-held-out", split=split):
        check_no_leakage(Leaking(), TINY)


class Leaves(Tiny):
    """Exits the program while loading data."""

    def load(self) -> object:
        raise SystemExit(0)


def test_a_task_that_ends_the_program_does_not_pass(capsys: pytest.CaptureFixture[str]) -> None:
    with breaks("program-goes-on"):
        check_task(Leaves(), TINY)
    assert not capsys.readouterr().out.endswith("ok\n")


class OneDepth(Tiny):
    """Ignores the depth."""

    def build(self, architecture: Architecture) -> nn.Module:
        return super().build(replace(architecture, depth=1))  # type: ignore[no-any-return]


class LargeBatch(Tiny):
    """Has a batch larger than its data."""

    presets = {"smoke": replace(SMOKE, batch=10**6), "proxy": SMOKE}  # noqa: RUF012


class LargeProxyBatch(Tiny):
    """Has a batch larger than its data in the other preset."""

    presets = {"smoke": SMOKE, "proxy": replace(SMOKE, batch=10**6)}  # noqa: RUF012


class WrongLabels(Tiny):
    """Has labels that the network has no scores for."""

    def load(self) -> TensorSplits:
        splits = super().load()
        assert isinstance(splits, TensorSplits)
        inputs, labels = splits.test
        return replace(splits, test=(inputs, labels + 1))


class OneTopology(Tiny):
    """Ignores the topology."""

    def build(self, architecture: Architecture) -> nn.Module:
        return super().build(replace(architecture, topology="resnet"))  # type: ignore[no-any-return]


class OneHeadOnly(Tiny):
    """Has heads in its base that it never uses."""

    base = replace(TINY, heads=2, head_dim=4)


class WrongPreprocessing(Tiny):
    """Preprocesses to other inputs than the network takes."""

    def preprocess(self, inputs: Tensor) -> Tensor:
        return inputs[:, :1]


@pytest.mark.parametrize(
    ("task", "check", "rule"),
    [
        (OneDepth(), check_axes, "depth-changes-the-network"),
        (LargeBatch(), check_recipes, "recipes-fit-the-data"),
        (LargeProxyBatch(), check_recipes, "recipes-fit-the-data"),
        (WrongLabels(), check_recipes, "recipes-fit-the-data"),
        (OneTopology(), check_axes, "topology-changes-the-network"),
        (WrongPreprocessing(), check_input_format, "preprocess-fits-the-network"),
    ],
)
def test_a_network_or_recipe_that_does_not_fit_is_found(
    task: Task, check: Callable[[Task, Architecture], None], rule: str
) -> None:
    check(Tiny(), TINY)
    with breaks(rule):
        check(task, TINY)


def test_heads_without_use_are_found() -> None:
    with breaks("heads-changes-the-network"):
        check_axes(OneHeadOnly(), OneHeadOnly.base)


@pytest.mark.parametrize("task", [Tiny, nn.Linear(1, 1), "moons.py:Moons"])
def test_only_instances_of_tasks_are_checked(task: Any) -> None:
    with breaks("task-is-a-task"):
        check_task(task)
