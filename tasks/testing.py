"""The contract of a task, as checks that anybody can run on their own: `check_task(MyTask())`.

A check that fails raises an AssertionError which says what was expected.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from search_spaces.architecture import Architecture
from tasks.base import Fitted, Task

Point = tuple[int, Mapping[str, float]]


def check_task(task: Task, architecture: Architecture | None = None) -> None:
    """Run every check of the contract on a task.

    `architecture` is what the smoke preset trains, where the task's base would take long.
    """
    chosen = architecture or task.base
    for check in CONTRACT:
        check(task, chosen)


def check_it_says_what_it_is(task: Task, architecture: Architecture) -> None:
    """Name, version, metrics and presets are there, and presets show as one line."""
    assert task.name, "name must not be empty"
    assert isinstance(task.version, int), f"version must be an integer, got {task.version!r}"
    assert task.version >= 1, f"version must be at least 1, got {task.version}"
    names = [metric.name for metric in task.metrics]
    assert names, "metrics must name at least one"
    assert len(set(names)) == len(names), f"metrics must have different names, got {names}"
    assert {metric.direction for metric in task.metrics} <= {"max", "min"}, "a metric's direction is max or min"
    assert {"smoke", "proxy"} <= set(task.presets), f"presets must have smoke and proxy, got {sorted(task.presets)}"
    for name, preset in task.presets.items():
        assert "\n" not in str(preset), f"preset {name!r} must show as one line"
    assert set(task.bases) <= set(task.presets), f"bases must be of presets, got {sorted(task.bases)}"


def check_it_builds_without_memory(task: Task, architecture: Architecture) -> None:
    """On the meta device the network can be built and can read the example: costs are counted there."""
    for base in (architecture, *task.bases.values()):
        with torch.device("meta"):
            network, inputs = task.build(base), task.example()
        tensors = [*network.parameters(), *network.buffers(), *inputs]
        assert all(tensor.is_meta for tensor in tensors), "build and example must use the default device"
        with torch.no_grad():
            network.eval()(*inputs)


def check_the_closed_form_counts_every_parameter(task: Task, architecture: Architecture) -> None:
    """Where the task has a closed form, its parameters are the network's."""
    for base in (architecture, replace(architecture, depth=architecture.depth + 1)):
        count = task.closed_form(base)
        with torch.device("meta"):
            params = sum(parameter.numel() for parameter in task.build(base).parameters())
        assert count is None or count.params == params, f"{base}: closed form {count}, network {params} parameters"


def check_training_is_a_pure_function(task: Task, architecture: Architecture) -> None:
    """The same seed gives the same numbers whatever was drawn before, and draws outside do not notice."""
    torch.manual_seed(1)
    first, curve = _fit(task, architecture, seed=0)
    random.seed(2)
    np.random.seed(2)
    torch.manual_seed(2)
    before = random.getstate(), torch.get_rng_state()
    second, again = _fit(task, architecture, seed=0)
    assert first == second, f"two trainings with one seed must give the same, got {first} and {second}"
    assert curve == again, "two trainings with one seed must report the same"
    assert random.getstate() == before[0], "training must leave the generator of random as it was"
    assert torch.equal(torch.get_rng_state(), before[1]), "training must leave the generator of torch as it was"
    _check_fitted(task, first, curve)


def check_what_report_raises_ends_the_training(task: Task, architecture: Architecture) -> None:
    """A search that has seen enough raises from `report`."""

    class Enough(Exception):
        pass

    def report(step: int, metrics: Mapping[str, float]) -> None:
        raise Enough

    try:
        fitted = task.fit(architecture, "smoke", 0, None, report)
    except Enough:
        return
    _, curve = _fit(task, architecture, seed=0)
    assert not curve, f"what report raises must end the training, got {fitted}"


CONTRACT: tuple[Callable[[Task, Architecture], None], ...] = (
    check_it_says_what_it_is,
    check_it_builds_without_memory,
    check_the_closed_form_counts_every_parameter,
    check_training_is_a_pure_function,
    check_what_report_raises_ends_the_training,
)
"""Every check, each of a task and of an architecture to train."""


def _fit(task: Task, architecture: Architecture, seed: int) -> tuple[Fitted, list[Point]]:
    curve: list[Point] = []
    with TemporaryDirectory() as folder:
        fitted = task.fit(
            architecture, "smoke", seed, Path(folder), lambda step, metrics: curve.append((step, dict(metrics)))
        )
        left = [path.name for path in Path(folder).iterdir()]
    assert not left, f"a finished training must leave no files behind, got {left}"
    return fitted, curve


def _check_fitted(task: Task, fitted: Fitted, curve: list[Point]) -> None:
    names = {metric.name for metric in task.metrics}
    assert fitted.steps >= 1, f"steps must be counted, got {fitted.steps}"
    assert fitted.data, "the data must have a fingerprint"
    parts = {"validation": fitted.validation, "test": fitted.test}
    for part, values in parts.items():
        assert part == "test" or names <= set(values), f"{part} must have {sorted(names)}, got {sorted(values)}"
        assert all(np.isfinite(value) for value in values.values()), f"{part} must be finite, got {values}"
    for step, metrics in curve:
        assert 1 <= step <= fitted.steps, f"steps are reported from 1 to {fitted.steps}, got {step}"
        assert names <= set(metrics), f"a report must have {sorted(names)}, got {sorted(metrics)}"
    assert [step for step, _ in curve] == sorted({step for step, _ in curve}), "steps must be reported in order"
