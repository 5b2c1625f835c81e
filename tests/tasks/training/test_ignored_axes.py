"""Axes that a task's network ignores."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import SearchSpace
from tasks.base import Task
from tasks.load import load_task, task_class
from tasks.training import ignored_axes
from tasks.training.ignored_axes import check_axes_are_used

MOONS = task_class(f"{Path(__file__).parents[1]}/moons.py:Moons")
BASE = Architecture(depth=2, width=8, hidden=8)
AXES = {"depth": (1, 2), "hidden": (8, 16), "topology": ("resnet", "dca", "none")}


class Attends(MOONS):  # type: ignore[misc, valid-type]
    """A task with attention of equal parameters for all heads, and a last layer of zeros."""

    name = "attends"
    base = Architecture(depth=2, width=8, hidden=8, heads=2, head_dim=4)

    def build(self, architecture: Architecture) -> nn.Module:
        return Attention(architecture.heads)

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, 3, 8),)


class Attention(nn.Module):
    """Points [B, N, 8] to scores [B, 2]."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(8, heads, batch_first=True), nn.Linear(8, 2)
        nn.init.zeros_(self.head.weight)

    def forward(self, x: Tensor) -> Tensor:
        mixed: Tensor = self.attention(x, x, x)[0]
        return self.head(mixed.mean(dim=1))  # type: ignore[no-any-return]


def fixed(kind: type[Task], **fields: object) -> Task:
    """A task whose network has these fields whatever the architecture."""

    class Fixed(kind):  # type: ignore[misc, valid-type]
        def build(self, architecture: Architecture) -> nn.Module:
            return super().build(replace(architecture, **fields))  # type: ignore[no-any-return]

    return Fixed()


def space(base: Architecture = BASE, **axes: tuple[object, ...]) -> SearchSpace:
    return SearchSpace("s", base, axes or AXES)  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", AXES)
def test_an_ignored_axis_is_named(axis: str) -> None:
    check_axes_are_used(MOONS(), space())
    first = getattr(BASE, axis)
    values = (first, *(value for value in AXES[axis] if value != first))
    with raises("bad-plugin", task="moons", option=axis, value=values):
        check_axes_are_used(fixed(MOONS, **{axis: AXES[axis][0]}), space())


def test_networks_of_equal_parameters_may_differ_in_outputs() -> None:
    heads = space(Attends.base, heads=(1, 2, 4))
    check_axes_are_used(Attends(), heads)
    check_axes_are_used(MOONS(), space(topology=("resnet", "none")))
    with raises("bad-plugin", option="heads", value=(2, 1, 4)):
        check_axes_are_used(fixed(Attends, heads=2), heads)


def test_modules_of_other_classes_are_another_network() -> None:
    class Twin(nn.Identity):
        """Computes the same as an identity."""

    class TwoNames(MOONS):  # type: ignore[misc, valid-type]
        def build(self, architecture: Architecture) -> nn.Module:
            return nn.Sequential({"resnet": nn.Identity, "dca": Twin}[architecture.topology](), nn.Linear(2, 2))

    check_axes_are_used(TwoNames(), space(topology=("resnet", "dca")))
    with raises("bad-plugin", option="topology"):
        check_axes_are_used(fixed(TwoNames, topology="resnet"), space(topology=("resnet", "dca")))


def test_an_axis_of_a_block_is_named() -> None:
    class EqualBlocks(MOONS):  # type: ignore[misc, valid-type]
        def build(self, architecture: Architecture) -> nn.Module:
            return super().build(replace(architecture, blocks=""))  # type: ignore[no-any-return]

    with raises("bad-plugin", option="hidden:2"):
        check_axes_are_used(EqualBlocks(), space(**{"hidden:1": (8, 16), "hidden:2": (8, 16)}))


class Reader(nn.Module):
    """Tokens [B, N], and perhaps a mask of ones, to scores [B, 2]."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.embedding, self.attention = nn.Embedding(5, 8), Attention(heads)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        x: Tensor = self.attention(self.embedding(tokens))
        return x


class Reads(Attends):
    """A task whose example is equal tokens: attention over them is their mean, for any number of heads."""

    name = "reads"

    def build(self, architecture: Architecture) -> nn.Module:
        return Reader(architecture.heads)

    def example(self) -> tuple[Tensor, ...]:
        return (torch.zeros(1, 3, dtype=torch.long),)


def test_equal_tokens_tell_nothing_and_different_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = space(Attends.base, heads=(1, 2, 4))
    check_axes_are_used(Reads(), heads)
    check_axes_are_used(fixed(Reads, heads=2), heads)
    for example in ((torch.arange(3)[None],), (torch.arange(3)[None], torch.ones(1, 3, dtype=torch.long))):
        monkeypatch.setattr(Reads, "example", lambda self, example=example: example)
        check_axes_are_used(Reads(), heads)
        with raises("bad-plugin", option="heads"):
            check_axes_are_used(fixed(Reads, heads=2), heads)


def test_large_networks_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    heads, task = space(Attends.base, heads=(1, 2, 4)), fixed(Attends, heads=2)
    monkeypatch.setattr("tasks.training.ignored_axes._MAX_PARAMS", 100)
    check_axes_are_used(task, heads)


def test_the_base_and_one_axis_of_each_field_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[tuple[Architecture, str]] = []

    class Counts(MOONS):  # type: ignore[misc, valid-type]
        def build(self, architecture: Architecture) -> nn.Module:
            built.append((architecture, torch.get_default_device().type))
            return super().build(replace(architecture, hidden=8, blocks=""))  # type: ignore[no-any-return]

    axes = {f"hidden:{number}": (8, 16) for number in (1, 2, 3)}
    base = replace(BASE, depth=3)
    with raises("bad-plugin", option="hidden:3"):
        check_axes_are_used(Counts(), space(base, **axes))
    assert len(built) == len({*built}) == 4  # the base and one neighbour, each on the meta device and on the CPU


def test_networks_are_compared_under_a_status_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(ignored_axes, "status_if_slow", lambda message: lines.append(message) or nullcontext())
    check_axes_are_used(MOONS(), space())
    assert lines == ["comparing networks of space s ..."]


def test_other_axes_and_networks_that_fail_are_not_named() -> None:
    class Fails(MOONS):  # type: ignore[misc, valid-type]
        def build(self, architecture: Architecture) -> nn.Module:
            raise KeyError(architecture.depth)

    check_axes_are_used(Fails(), space())
    check_axes_are_used(MOONS(), space(**{"recipe.lr": (0.1, 0.2), "depth": (2,)}))


def test_random_numbers_stay_as_they_are() -> None:
    state = torch.get_rng_state()
    check_axes_are_used(Attends(), space(Attends.base, heads=(1, 2)))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["digits-vit", "mnist1d-vit"])
def test_installed_tasks_use_their_axes(name: str) -> None:
    task = load_task(name)
    shape = replace(task.base, depth=2)
    axes = {"depth": (1, 2), "heads": (shape.heads, shape.heads + 1), "topology": ("resnet", "none")}
    check_axes_are_used(task, space(shape, **axes))
