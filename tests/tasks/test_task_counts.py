"""Costs of installed tasks' networks, counted three ways, and by layer and operator."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor, nn

from grouped import grouped
from nas.costs.breakdown import by_layer, by_operator
from nas.costs.count import count, meta_device
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.base import Task
from tasks.data.batches import positional
from tasks.load import load_task, task_class
from tasks.registry import TASKS
from tasks.training.supervised import SupervisedTask

COLUMNS = ("params", "macs", "flops")


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting must not load data."""

    def read(self: SupervisedTask) -> None:
        raise AssertionError(f"{self.name} reads its data to be counted")

    monkeypatch.setattr(SupervisedTask, "splits", property(read))


def of(name: str, topology: str, depth: int = 1) -> tuple[Task, Architecture]:
    """A task and its base at another depth and topology."""
    if name.startswith("goal-"):
        pytest.importorskip("gymnasium_robotics")
    task = load_task(name)
    return task, replace(task.base, depth=depth, topology=topology)


def family_of(name: str) -> Any:
    """The classes that build and count a task's networks."""
    kind = task_class(name)
    return kind.build, kind.closed_form, kind.example


FIRST = (
    "c4-dca-lm",
    "cifar10-vit",
    "digit-ranks-vit",
    "digits-dit",
    "digits-vit",
    "glue",
    "goal-ant-maze",
    "lra-listops",
    "mnist1d-vit",
    "pile-mlm",
)
"""One task per family."""


def test_a_task_of_each_family_is_counted_with_every_kind_of_block() -> None:
    assert {family_of(name) for name in FIRST} == {family_of(name) for name in TASKS.names()}


Agree = Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]
Table = Callable[[Task, Architecture], list[dict[str, Any]]]


# tests/search_spaces/models covers every topology with every model.
@pytest.mark.parametrize("name", TASKS.names())
def test_closed_form_and_counters_agree_on_a_task(name: str, agree: Agree) -> None:
    check_counts(*of(name, "resnet"), agree)


@pytest.mark.parametrize("name", FIRST)
def test_costs_agree_for_every_kind_of_block(name: str, agree: Agree) -> None:
    check_all_counts(name, agree)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*TASKS.names()} - {*FIRST}))
def test_costs_agree_for_every_kind_of_block_of_other_tasks(name: str, agree: Agree) -> None:
    check_all_counts(name, agree)


def check_all_counts(name: str, agree: Agree) -> None:
    """Assert that costs agree for equal and different blocks, and in tables."""
    with grouped() as case:
        with case("equal blocks, hyper"):
            check_counts(*of(name, "hyper"), agree)
        for topology in ("dca(k=1)/hyper", "resnet"):
            with case(f"unequal blocks, {topology}"):
                task, architecture = of(name, topology, depth=2)
                sizes = {"hidden": (architecture.hidden, 24)}
                if architecture.heads:
                    sizes |= {"heads": (architecture.heads, 3), "head_dim": (architecture.head_dim, 6)}
                check_counts(task, architecture.with_fields(sizes), agree)
        with case("columns of the tables"):
            columns_sum_to_costs(*of(name, "resnet"))


def check_counts(task: Task, architecture: Architecture, agree: Agree) -> None:
    """Assert that closed form and both counters agree on a task's network."""
    with meta_device():
        model, example = task.build(architecture), task.example()
    agree(model, positional(model, example), task.closed_form(architecture))


def columns_sum_to_costs(
    task: Task, architecture: Architecture, tables: Iterable[Table] = (by_layer, by_operator)
) -> None:
    """Assert that costs by layer and by operator sum to the network's."""
    costs = count(task, architecture)
    for table in tables:
        records = table(task, architecture)
        for column in COLUMNS:
            assert min(record[column] for record in records) >= 0
            assert sum(record[column] for record in records) == getattr(costs, column)


def test_costs_by_layer_sum_to_the_whole_for_every_topology() -> None:
    every_topology_sums_to_its_costs(by_layer)


@pytest.mark.slow
def test_costs_by_operator_sum_to_the_whole_for_every_topology() -> None:
    every_topology_sums_to_its_costs(by_operator)


def every_topology_sums_to_its_costs(table: Table) -> None:
    """Assert that a table's columns sum to the network's costs with every topology."""
    with grouped() as case:
        for topology in TOPOLOGIES.names():
            with case(topology):
                columns_sum_to_costs(*of("digits-vit", topology), [table])
