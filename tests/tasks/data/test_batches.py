"""Batches that are tensors, tuples or mappings, from the data to the network and back."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from nas.costs.count import count
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import build_stack
from search_spaces.topologies.base import Site
from tasks.base import Metric
from tasks.data.batches import (
    Batch,
    Inputs,
    call,
    examples,
    map_tensors,
    positional,
    repeat,
    select,
    tensors,
    to_device,
)
from tasks.data.splits import TensorSplits
from tasks.recipes.recipe import Recipe
from tasks.run import Run
from tasks.training.contract import CONTRACT, check_task
from tasks.training.supervised import SupervisedTask, means

X, Y = torch.arange(6.0).view(3, 2), torch.arange(3)
FORMS: dict[str, Inputs] = {"tensor": X, "tuple": (X, Y), "mapping": {"x": X, "y": Y}}
WIDTH, TIMES = 8, 4


class Denoiser(nn.Module):
    """Tells the noise in points [B, 2], given the time [B, T] by which they were noised."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        layers = [Modulated() for _ in range(architecture.depth)]
        self.embedding = nn.Linear(2, WIDTH)
        self.stack = build_stack(architecture, layers, Norm("layer", 1e-6), parts=1)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, noised: Tensor, time: Tensor) -> dict[str, Tensor]:
        return {"noise": self.head(self.stack(self.embedding(noised), condition=time))}


class Modulated(nn.Module):
    """A dense layer that takes a condition."""

    def __init__(self) -> None:
        super().__init__()
        self.site = Site(("x",), WIDTH, starts_block=True, takes_condition=True)
        self.map, self.scale = nn.Linear(WIDTH, WIDTH), nn.Linear(TIMES, WIDTH)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        return torch.tanh(self.map(x)) * self.scale(condition)


class Denoising(SupervisedTask):
    """Inputs, targets and outputs are mappings."""

    name = "denoising"
    version = 1
    metrics = (Metric("squared_error", "squared units", "min"),)
    base = Architecture(depth=2, width=WIDTH, hidden=WIDTH, topology="grn-v3")
    presets = {  # noqa: RUF012
        "smoke": Recipe(steps=12, batch=16, lr=0.01, accumulate=2, reports=3),
        "proxy": Recipe(steps=80, batch=16, lr=0.03, reports=1),
    }

    def load(self) -> TensorSplits:
        """Draw points, noise and times."""
        return TensorSplits(*(noised(number, seed) for seed, number in enumerate((200, 50, 30))), encode=dict)

    def build(self, architecture: Architecture) -> nn.Module:
        """The denoiser."""
        return Denoiser(architecture)

    def example(self) -> dict[str, Tensor]:
        """One point at the first time."""
        return {"time": torch.zeros(1, TIMES), "noised": torch.zeros(1, 2)}

    def loss(self, outputs: Mapping[str, Tensor], targets: Mapping[str, Tensor], recipe: Recipe) -> Tensor:
        """The squared error."""
        return (outputs["noise"] - targets["noise"]).square().mean()

    def measure(self, outputs: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """That of each example."""
        return {"squared_error": (outputs["noise"] - targets["noise"]).square().mean(dim=1)}

    def summary(self, measured: Mapping[str, Tensor]) -> Mapping[str, float]:
        """The mean."""
        return means(measured)


def noised(number: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    time = torch.randint(TIMES, (number,), generator=generator)
    points, noise = torch.ones(number, 2), torch.randn(number, 2, generator=generator)
    share = time[:, None] / TIMES
    return {
        "noised": (1 - share) * points + share * noise,
        "time": nn.functional.one_hot(time, TIMES).float(),
    }, {"noise": noise}


def test_a_task_of_mappings_keeps_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    check_task(Denoising())
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(CONTRACT)
    assert all(line.endswith("... ok") for line in said)  # and none had nothing to stop at


def test_a_task_of_mappings_learns_and_is_counted() -> None:
    task = Denoising()
    fitted = task.fit(Run(architecture=task.base, recipe=task.presets["proxy"], seed=0))
    assert fitted.metrics["squared_error"] < 0.8  # of 1, which those who know no time are left with
    assert set(fitted.test) == {"squared_error", "squared_error_se"}
    linear = 2 * WIDTH + 2 * (WIDTH * WIDTH + TIMES * WIDTH) + 2 * WIDTH
    assert count(task, task.base).macs >= linear


def test_inputs_are_passed_by_position_or_name() -> None:
    def network(*args: Tensor, **named: Tensor) -> tuple[int, list[str]]:
        return len(args), list(named)

    assert [call(network, inputs) for inputs in FORMS.values()] == [(1, []), (2, []), (0, ["x", "y"])]


def test_named_inputs_are_ordered_by_the_signature() -> None:
    network, example = Denoiser(Denoising.base), Denoising().example()
    noised, time = positional(network, example)
    assert noised is example["noised"]
    assert time is example["time"]
    assert positional(network, X)[0] is X
    assert positional(network, (X, Y)) == (X, Y)


def test_every_tensor_of_a_form_is_changed() -> None:
    for inputs in FORMS.values():
        assert type(map_tensors(inputs, torch.clone)) is type(inputs)
        assert examples(inputs) == 3
        assert examples(select(inputs, slice(1, None, 2))) == 1
        assert tensors(select(inputs, torch.tensor([2, 0])))[0].tolist() == [[4.0, 5.0], [0.0, 1.0]]
        assert examples(repeat(inputs, 4)) == 12
        assert all(tensor.is_meta for tensor in tensors(to_device(inputs, torch.device("meta"))))
