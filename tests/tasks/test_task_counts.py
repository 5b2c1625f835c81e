"""What installed tasks' networks cost, counted three ways, and where in the network it is."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from torch import Tensor, nn

from nas.breakdown import by_layer, by_operator
from nas.counting import count, meta_device
from search_spaces.architecture import Architecture
from search_spaces.count import Count
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.base import Task
from tasks.batches import positional
from tasks.load import load_task
from tasks.registry import TASKS
from tasks.supervised import SupervisedTask

COLUMNS = ("params", "macs", "flops")


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever counts a network must not ask for the examples that it is trained on."""

    def read(self: SupervisedTask) -> None:
        raise AssertionError(f"{self.name} reads its data to be counted")

    monkeypatch.setattr(SupervisedTask, "splits", property(read))


def of(name: str, topology: str, depth: int = 1) -> tuple[Task, Architecture]:
    """A task and its base at another depth, wired so: width and length are its own."""
    if name.startswith("goal-"):
        pytest.importorskip("gymnasium_robotics")
    task = load_task(name)
    return task, replace(task.base, depth=depth, topology=topology)


# Every topology is walked on every model in tests/search_spaces/models.
@pytest.mark.parametrize("topology", ["resnet", "hyper"])
@pytest.mark.parametrize("name", TASKS.names())
def test_closed_form_and_both_counters_agree_on_a_task(
    name: str, topology: str, agree: Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]
) -> None:
    task, architecture = of(name, topology)
    with meta_device():
        model, example = task.build(architecture), task.example()
    agree(model, positional(model, example), task.closed_form(architecture))


@pytest.mark.parametrize("topology", ["dca(k=1)/hyper", "resnet"])
@pytest.mark.parametrize("name", TASKS.names())
def test_blocks_that_differ_are_counted_each_with_its_own_numbers(
    name: str, topology: str, agree: Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]
) -> None:
    task, architecture = of(name, topology, depth=2)
    own = {"hidden": (architecture.hidden, 24)}
    if architecture.heads:
        own |= {"heads": (architecture.heads, 3), "head_dim": (architecture.head_dim, 6)}
    architecture = architecture.changed(own)
    with meta_device():
        model, example = task.build(architecture), task.example()
    agree(model, positional(model, example), task.closed_form(architecture))


@pytest.mark.parametrize(
    ("name", "topology"),
    [*((name, "resnet") for name in TASKS.names()), *(("digits-vit", topology) for topology in TOPOLOGIES.names())],
)
def test_the_tables_columns_sum_to_the_networks_costs(name: str, topology: str) -> None:
    task, architecture = of(name, topology)
    costs = count(task, architecture)
    for records in (by_layer(task, architecture), by_operator(task, architecture)):
        for column in COLUMNS:
            assert min(record[column] for record in records) >= 0
            assert sum(record[column] for record in records) == getattr(costs, column)
