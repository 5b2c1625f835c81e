import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas.counting import Miscount, cheap_counts, count, count_macs
from search_spaces.architecture import Architecture
from search_spaces.count import Count
from search_spaces.errors import UserError
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


@pytest.mark.parametrize(
    ("a", "b", "macs"),
    [
        ((4, 5), (5, 6), 4 * 5 * 6),
        ((4, 5), (2, 3, 5, 6), 2 * 3 * 4 * 5 * 6),
        ((2, 4, 5), (5,), 2 * 4 * 5),
        ((5,), (5,), 5),
    ],
)
def test_matrix_products_are_counted_with_every_batch(a: tuple[int, ...], b: tuple[int, ...], macs: int) -> None:
    assert count_macs(Multiply(), (torch.empty(a), torch.empty(b)))[0] == macs
    assert macs == math.prod((torch.empty(a) @ torch.empty(b)).shape) * a[-1]


def test_norms_hold_no_macs() -> None:
    model = nn.Sequential(nn.LayerNorm(8), nn.RMSNorm(8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    assert count_macs(model, (torch.zeros(2, 8),))[0] == 2 * 8 * 3


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Conv1d(4, 6, 3, padding=1), (2, 4, 9)),
        (nn.Conv2d(4, 8, 3, stride=2, padding=(1, 0), groups=2), (1, 4, 9, 8)),
        (nn.Conv2d(4, 4, (5, 1), padding="same", groups=4), (1, 4, 9, 8)),
        (nn.Conv3d(2, 3, 2, dilation=2), (1, 2, 5, 6, 7)),
    ],
)
def test_convolutions_on_meta_are_counted_as_on_the_cpu(module: nn.Module, shape: tuple[int, ...]) -> None:
    positions = math.prod(module(torch.zeros(shape)).shape) // module.out_channels
    macs = positions * module.weight.numel()
    model = nn.Sequential(module, nn.Linear(module(torch.zeros(shape)).shape[-1], 3))
    linear = 3 * math.prod(module(torch.zeros(shape)).shape)
    assert count_macs(model.to("meta"), (torch.zeros(shape, device="meta"),))[0] == macs + linear


class Kronecker(nn.Module):
    def forward(self, a: Tensor) -> Tensor:
        return torch.linalg.inv(a)


def test_an_operator_that_nobody_counts_is_an_error_that_names_it() -> None:
    with pytest.raises(Miscount, match="linalg"):
        count_macs(Kronecker(), (torch.eye(3),))


def test_counting_leaves_the_model_in_its_mode() -> None:
    model = nn.Linear(2, 2).train()
    count_macs(model, (torch.zeros(1, 2),))
    assert model.training


class Wrong(Toy):
    """A task whose arithmetic is off by one."""

    def closed_form(self, architecture: Architecture) -> Count:
        return Count(count(Toy(), architecture).params + 1, count(Toy(), architecture).macs)


def test_a_closed_form_that_disagrees_is_an_error() -> None:
    with pytest.raises(Miscount, match="disagree"):
        count(Wrong(), Wrong.base)


class Worded(Toy):
    """A task whose arithmetic gives words."""

    def closed_form(self, architecture: Architecture) -> Count:
        return "many"  # type: ignore[return-value]


@pytest.mark.parametrize("counted", [count, cheap_counts])
def test_a_closed_form_that_is_none_is_a_line(counted: Callable[[Toy, Architecture], object]) -> None:
    with pytest.raises(UserError, match="closed_form of task 'toy' must return a Count or None, got 'many'"):
        counted(Worded(), Worded.base)


class Uncounted(Toy):
    """A task whose arithmetic nobody has worked out."""

    def closed_form(self, architecture: Architecture) -> None:
        return None


@pytest.mark.parametrize("task", [Toy, Uncounted])
def test_a_budget_is_held_against_the_closed_form_or_else_the_counter(task: type[Toy]) -> None:
    costs = count(task(), Toy.base)
    assert cheap_counts(task(), Toy.base) == {"params": costs.params, "macs": costs.macs, "flops": costs.flops}
    assert costs.macs == 4 * 2 * 8 * 32


def test_costs_say_what_is_embedding_what_training_takes_and_what_the_wiring_adds() -> None:
    task = load_task("digits-vit")
    costs = count(task, Architecture(depth=3, width=24, heads=5, head_dim=8, hidden=20))
    tokens = 17
    assert costs.embedding_params == 4 * 24 + 24 + 24 + tokens * 24
    assert costs.non_embedding_params == costs.params - costs.embedding_params
    assert costs.train_flops == 3 * costs.flops == 6 * costs.macs
    assert costs.elementwise_flops == 6 * tokens * 24  # an addition of 24 features a layer and token


def test_what_nobody_has_worked_out_is_not_zero() -> None:
    assert count(Uncounted(), Toy.base).elementwise_flops is None
