"""Batches of tensors, tuples or mappings, from data to network and back."""

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
    map_tensors,
    num_examples,
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
from tasks.training.supervised import SupervisedTask, means_and_errors

X, Y = torch.arange(6.0).view(3, 2), torch.arange(3)
FORMS: dict[str, Inputs] = {"tensor": X, "tuple": (X, Y), "mapping": {"x": X, "y": Y}}
WIDTH, TIMES = 8, 4


class Denoiser(nn.Module):
    """Predicts the noise in points [B, 2] from their time [B, T]."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        layers = [ModulatedNetwork() for _ in range(architecture.depth)]
        self.embedding = nn.Linear(2, WIDTH)
        self.stack = build_stack(architecture, layers, Norm("layer", 1e-6), num_embeddings=1)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, noised: Tensor, time: Tensor) -> dict[str, Tensor]:
        return {"noise": self.head(self.stack(self.embedding(noised), condition=time))}


class ModulatedNetwork(nn.Module):
    """A dense layer with a condition."""

    def __init__(self) -> None:
        super().__init__()
        self.site = Site(("x",), WIDTH, starts_block=True, takes_condition=True)
        self.map, self.scale = nn.Linear(WIDTH, WIDTH), nn.Linear(TIMES, WIDTH)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        return torch.tanh(self.map(x)) * self.scale(condition)


class Denoising(SupervisedTask):
    """A task whose inputs, targets and outputs are mappings."""

    name = "denoising"
    version = 1
    metrics = (Metric("squared_error", "squared units", "min"),)
    base = Architecture(depth=2, width=WIDTH, hidden=WIDTH, topology="grn-v3")
    presets = {  # noqa: RUF012
        "smoke": Recipe(steps=12, batch=16, lr=0.01, accumulate=2, reports=3),
        "proxy": Recipe(steps=80, batch=16, lr=0.03, reports=1),
    }

    def load(self) -> TensorSplits:
        return TensorSplits(*(noisy(number, seed) for seed, number in enumerate((200, 50, 30))), encode=dict)

    def build(self, architecture: Architecture) -> nn.Module:
        return Denoiser(architecture)

    def example(self) -> dict[str, Tensor]:
        return {"time": torch.zeros(1, TIMES), "noised": torch.zeros(1, 2)}

    def loss(self, outputs: Mapping[str, Tensor], targets: Mapping[str, Tensor], recipe: Recipe) -> Tensor:
        return (outputs["noise"] - targets["noise"]).square().mean()

    def measure(self, outputs: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {"squared_error": (outputs["noise"] - targets["noise"]).square().mean(dim=1)}

    def summary(self, measurements: Mapping[str, Tensor]) -> Mapping[str, float]:
        return means_and_errors(measurements)


def noisy(number: int, seed: int) -> Batch:
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
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(CONTRACT)
    assert all(line.endswith("... ok") for line in lines)  # no check was skipped


def test_a_task_of_mappings_learns_and_is_counted() -> None:
    task = Denoising()
    result = task.fit(Run(architecture=task.base, recipe=task.presets["proxy"], seed=0))
    assert result.metrics["squared_error"] < 0.8  # 1 without the time
    assert set(result.test) == {"squared_error", "squared_error_se"}
    linear = 2 * WIDTH + 2 * (WIDTH * WIDTH + TIMES * WIDTH) + 2 * WIDTH
    assert count(task, task.base).macs >= linear


def test_inputs_are_passed_by_position_or_name() -> None:
    def network(*args: Tensor, **keywords: Tensor) -> tuple[int, list[str]]:
        return len(args), list(keywords)

    assert [call(network, inputs) for inputs in FORMS.values()] == [(1, []), (2, []), (0, ["x", "y"])]


def test_named_inputs_are_ordered_by_the_signature() -> None:
    network, example = Denoiser(Denoising.base), Denoising().example()
    noisy, time = positional(network, example)
    assert noisy is example["noised"]
    assert time is example["time"]
    assert positional(network, X)[0] is X
    assert positional(network, (X, Y)) == (X, Y)


def test_every_tensor_of_a_form_is_changed() -> None:
    for inputs in FORMS.values():
        assert type(map_tensors(inputs, torch.clone)) is type(inputs)
        assert num_examples(inputs) == 3
        assert num_examples(select(inputs, slice(1, None, 2))) == 1
        assert tensors(select(inputs, torch.tensor([2, 0])))[0].tolist() == [[4.0, 5.0], [0.0, 1.0]]
        assert num_examples(repeat(inputs, 4)) == 12
        assert all(tensor.is_meta for tensor in tensors(to_device(inputs, torch.device("meta"))))
