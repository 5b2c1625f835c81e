"""Counts of MACs and parameters, and errors of counting."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from expect import raises
from nas.costs.count import Miscount, budget_counts, count, count_macs
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count
from tasks.load import load_task
from toy_tasks import Toy


class Attend(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)


class Multiply(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


def test_attention_is_counted_in_full_with_its_own_value_width() -> None:
    q, k, v = torch.empty(2, 3, 5, 7), torch.empty(2, 3, 11, 7), torch.empty(2, 3, 11, 13)
    assert count_macs(Attend(), (q, k, v))[0] == 2 * 3 * 5 * 11 * (7 + 13)


PRODUCTS: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((4, 5), (5, 6), 4 * 5 * 6),
    ((4, 5), (2, 3, 5, 6), 2 * 3 * 4 * 5 * 6),
    ((2, 4, 5), (5,), 2 * 4 * 5),
    ((5,), (5,), 5),
]
"""Two shapes, and the MACs of their product."""


def test_matrix_products_are_counted_with_every_batch() -> None:
    for a, b, macs in PRODUCTS:
        assert count_macs(Multiply(), (torch.empty(a), torch.empty(b)))[0] == macs, (a, b)
        assert macs == math.prod((torch.empty(a) @ torch.empty(b)).shape) * a[-1]


def test_norms_have_no_macs() -> None:
    model = nn.Sequential(nn.LayerNorm(8), nn.RMSNorm(8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    assert count_macs(model, (torch.zeros(2, 8),))[0] == 2 * 8 * 3


CONVOLUTIONS: list[tuple[Any, tuple[int, ...]]] = [
    (nn.Conv1d(4, 6, 3, padding=1), (2, 4, 9)),
    (nn.Conv2d(4, 8, 3, stride=2, padding=(1, 0), groups=2), (1, 4, 9, 8)),
    (nn.Conv2d(4, 4, (5, 1), padding="same", groups=4), (1, 4, 9, 8)),
    (nn.Conv3d(2, 3, 2, dilation=2), (1, 2, 5, 6, 7)),
]


def test_convolutions_on_meta_are_counted_as_on_the_cpu() -> None:
    for module, shape in CONVOLUTIONS:
        positions = math.prod(module(torch.zeros(shape)).shape) // module.out_channels
        macs = positions * module.weight.numel()
        model = nn.Sequential(module, nn.Linear(module(torch.zeros(shape)).shape[-1], 3))
        linear = 3 * math.prod(module(torch.zeros(shape)).shape)
        assert count_macs(model.to("meta"), (torch.zeros(shape, device="meta"),))[0] == macs + linear, module


class Inverse(nn.Module):
    def forward(self, a: Tensor) -> Tensor:
        return torch.linalg.inv(a)


def test_an_unknown_operator_is_an_error() -> None:
    with raises("unsupported", operators=("aten::linalg_inv",)) as error:
        count_macs(Inverse(), (torch.eye(3),))
    assert isinstance(error.value, Miscount)


def test_counting_leaves_the_model_in_its_mode() -> None:
    model = nn.Linear(2, 2).train()
    count_macs(model, (torch.zeros(1, 2),))
    assert model.training


class WrongForm(Toy):
    """A task whose closed form is off by these numbers."""

    def __init__(self, params: int, macs: int) -> None:
        super().__init__()
        self.error = Count(params, macs)

    def closed_form(self, architecture: Architecture) -> Count:
        return super().closed_form(architecture) + self.error


def test_a_closed_form_that_disagrees_with_the_counter_is_an_error() -> None:
    costs = count(Toy(), Toy.base)
    for off in ((1, 0), (0, 1)):
        closed_form = (costs.params + off[0], costs.macs + off[1])
        with raises("mismatch", closed_form=closed_form, counted=(costs.params, costs.macs)) as error:
            count(WrongForm(*off), WrongForm.base)
        assert isinstance(error.value, Miscount)


class TextForm(Toy):
    """A task whose closed form is a text."""

    def closed_form(self, architecture: Architecture) -> Count:
        return "many"  # type: ignore[return-value]


def test_a_closed_form_of_another_type_is_an_error() -> None:
    for counter in (count, budget_counts):
        with raises("bad-plugin", option="closed_form", task="toy"):
            counter(TextForm(), TextForm.base)


class WithoutClosedForm(Toy):
    """A task without a closed form."""

    def closed_form(self, architecture: Architecture) -> None:
        return None


def test_cheap_counts_equal_the_counter_with_and_without_a_closed_form() -> None:
    for task in (Toy(), WithoutClosedForm()):
        costs = count(task, Toy.base)
        assert budget_counts(task, Toy.base) == {"params": costs.params, "macs": costs.macs, "flops": costs.flops}
        assert costs.macs == 4 * 2 * 8 * 32


def test_embedding_training_and_elementwise_costs() -> None:
    task = load_task("digits-vit")
    costs = count(task, Architecture(depth=3, width=24, heads=5, head_dim=8, hidden=20))
    tokens = 17
    assert costs.embedding_params == 4 * 24 + 24 + 24 + tokens * 24
    assert costs.non_embedding_params == costs.params - costs.embedding_params
    assert costs.train_flops == 3 * costs.flops == 6 * costs.macs
    assert costs.elementwise_flops == 6 * tokens * 24  # 24 additions per layer and token


def test_elementwise_costs_without_a_closed_form_are_none() -> None:
    assert count(WithoutClosedForm(), Toy.base).elementwise_flops is None
