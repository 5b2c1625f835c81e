"""Shapes, dtypes and layouts by rule equal those that torch computes with values."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from grouped import grouped
from nas.costs.shapes import RULES, Shapes

aten = torch.ops.aten
X = torch.rand(2, 3, 4)
ROW = torch.rand(3, 1)
WHOLE = torch.arange(12).reshape(3, 4) % 5
DOUBLE = torch.rand(4, dtype=torch.float64)

CASES: list[tuple[Any, tuple[Any, ...]]] = [
    (aten.addmm.default, (torch.rand(5), torch.rand(3, 4), torch.rand(4, 5))),
    (aten.baddbmm.default, (torch.rand(2, 3, 5), X, torch.rand(2, 4, 5))),
    (aten.mm.default, (torch.rand(3, 4), torch.rand(4, 5))),
    (aten.bmm.default, (X, torch.rand(2, 4, 5))),
    (aten.native_layer_norm.default, (X, [4], None, None, 1e-5)),
    (aten.native_layer_norm.default, (X, [3, 4], None, None, 1e-5)),
    (aten.embedding.default, (torch.rand(5, 7), WHOLE)),
    (aten.addcmul.default, (X, ROW, DOUBLE)),
    (aten.where.self, (WHOLE > 2, X, ROW)),
    (aten.where.self, (torch.rand(5, 1, 1, 1) > 0.5, X, DOUBLE)),
    (aten.add_.Scalar, (X.clone(), 1.0)),
    (aten.div.Tensor, (X, ROW)),
    (aten.div.Tensor, (WHOLE, WHOLE + 1)),
    (aten.logsumexp.default, (X, [-1])),
    (aten.sum.dim_IntList, (torch.tensor(3.0), [-1])),
    (aten.exp.default, (X * 1j,)),
    (aten.div.Tensor, (X * 1j, X)),
    (aten.logsumexp.default, (X, [0, 2], True)),
    (aten.cat.default, ([X, X], -1)),
    (aten.cat.default, ([X, X[:1]],)),
    (aten.cat.default, ([torch.rand(0), X, X.bfloat16(), X.double()],)),
    (aten.repeat.default, (X, [5, 1, 2, 3])),
    (aten.ones_like.default, (X,)),
    (aten.zeros_like.default, (WHOLE,)),
    (aten.stack.default, ([X, X],)),
    (aten.stack.default, ([X, X.double(), X], -2)),
    (aten.eye.default, (4,)),
    (aten.eye.m, (4, 3)),
    (aten.randn.default, ([2, 5],)),
    (aten.floor_divide.default, (WHOLE, 2)),
    (aten.floor_divide.default, (X, 2)),
    (aten.arange.default, (7,)),
    (aten.arange.default, (6.5,)),
    (aten.arange.start, (2, 7)),
    (aten.arange.start_step, (1, 8, 3)),
    (aten.arange.start_step, (0, 1, 0.3)),
    (aten.mean.dim, (X, [1], True)),
    (aten.mean.dim, (X, [-1, 0])),
    (aten.mean.dim, (X, None)),
    (aten.sum.dim_IntList, (X, [2])),
    (aten.sum.dim_IntList, (WHOLE, [1])),
    (aten.sum.dim_IntList, (WHOLE > 2, [1], True)),
    (aten.amax.default, (WHOLE, [0])),
    (aten.amax.default, (X,)),
    *((compare, (WHOLE, 2)) for compare in (aten.ne.Scalar, aten.le.Scalar, aten.gt.Scalar, aten.lt.Scalar)),
    (aten.lt.Tensor, (X, ROW)),
    (aten.eq.Tensor, (X, DOUBLE)),
    (aten.masked_fill.Scalar, (X, torch.rand(2, 1, 1, 1) > 0.5, 0.0)),
    *((binary, (X, ROW)) for binary in (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor)),
    *((binary, (WHOLE, DOUBLE)) for binary in (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor)),
    *((binary, (X, torch.tensor(2.0, dtype=torch.float64))) for binary in (aten.add.Tensor, aten.mul.Tensor)),
    *((scalar, (WHOLE, 2)) for scalar in (aten.mul.Scalar, aten.pow.Tensor_Scalar, aten.remainder.Scalar)),
    *((scalar, (WHOLE, 1.5)) for scalar in (aten.mul.Scalar, aten.pow.Tensor_Scalar, aten.remainder.Scalar)),
    (aten.pow.Scalar, (2.0, X)),
    (aten.pow.Scalar, (2.0, WHOLE)),
    *((unary, (X,)) for unary in (aten.gelu.default, aten.silu.default, aten.relu.default, aten.neg.default)),
    (aten.neg.default, (WHOLE,)),
    (aten._softmax.default, (X, -1, False)),
    (aten._safe_softmax.default, (X, -1)),
    (aten.clamp.default, (WHOLE, 1, 3)),
    (aten.clamp.default, (WHOLE, 0.5)),
    (aten.logsumexp.default, (WHOLE, [-1])),
    (aten.clamp.default, (X, None, 0.5)),
    (aten.tril.default, (WHOLE, 1)),
    *((real, (x,)) for real in (aten.exp.default, aten.sin.default, aten.cos.default) for x in (X, WHOLE)),
    *((real, (x,)) for real in (aten.rsqrt.default, aten.sqrt.default) for x in (X, WHOLE + 1, DOUBLE)),
    *((real, (x,)) for real in (aten.tanh.default, aten.sigmoid.default) for x in (X, WHOLE, X.bfloat16())),
]


Layout = Callable[[Tensor], Tensor]


def _last_slowest(x: Tensor) -> Tensor:
    """The same tensor; its last dimension has the largest stride."""
    return x if x.dim() < 2 else x.movedim(-1, 0).contiguous().movedim(0, -1)


def _sparse(x: Tensor) -> Tensor:
    """The same tensor as every other number of a larger one."""
    return torch.stack([x, x], dim=-1)[..., 0]


def _first_row(x: Tensor) -> Tensor:
    """The first row for all rows, with stride 0."""
    return x if x.dim() < 2 else x[:1].expand(x.shape)


LAYOUTS = (Tensor.contiguous, _last_slowest, _sparse, _first_row)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda leaf: leaf.__name__)
def test_every_rule_gives_what_torch_gives(layout: Layout) -> None:
    with grouped() as case:
        for number, (operator, inputs) in enumerate(CASES):
            with case(f"{number} {operator.name()}"):
                inputs_in_layout = tree_map(lambda leaf: layout(leaf) if isinstance(leaf, Tensor) else leaf, inputs)
                check_rule(operator, inputs_in_layout if operator is not aten.add_.Scalar else inputs)


def test_layout_of_broadcast_operands_is_that_of_torch() -> None:
    draw = np.random.default_rng(0)
    for _ in range(200):
        shape = [int(size) for size in draw.integers(1, 4, size=draw.integers(1, 5))]
        check_rule(aten.add.Tensor, (random_layout(shape, draw), random_layout(shape, draw)))
        check_rule(aten.addcmul.default, tuple(random_layout(shape, draw) for _ in range(3)))


def random_layout(shape: list[int], draw: np.random.Generator) -> Tensor:
    """A random tensor of that shape, or one broadcast to it, in any order in memory."""
    sizes = [size if draw.random() < 0.8 else 1 for size in shape]
    order = [int(dim) for dim in draw.permutation(len(sizes))]
    x = torch.rand([sizes[dim] for dim in order]).permute([order.index(dim) for dim in range(len(sizes))])
    return x.expand(shape) if draw.random() < 0.5 else x


def check_rule(operator: Any, inputs: tuple[Any, ...]) -> None:
    """Compare shapes, dtypes and layouts with those of torch on values."""
    where = {} if any(isinstance(leaf, Tensor) for leaf in tree_leaves(inputs)) else {"device": torch.device("meta")}
    expected = operator(*inputs)
    with Shapes():
        result = operator(*tree_map(lambda leaf: on_meta(leaf) if isinstance(leaf, Tensor) else leaf, inputs), **where)
    assert [(leaf.shape, leaf.dtype) for leaf in tree_leaves(result)] == [
        (leaf.shape, leaf.dtype) for leaf in tree_leaves(expected)
    ]
    for leaf, other in zip(tree_leaves(result), tree_leaves(expected), strict=True):
        assert [step for step, size in zip(leaf.stride(), leaf.shape, strict=True) if size > 1] == [
            step for step, size in zip(other.stride(), other.shape, strict=True) if size > 1
        ]
    assert all(leaf.is_meta for leaf in tree_leaves(result))


def on_meta(x: Tensor) -> Tensor:
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def test_every_rule_has_a_case() -> None:
    assert {operator for operator, _ in CASES} == set(RULES)


def test_tensors_with_values_are_left_to_torch() -> None:
    with Shapes():
        assert torch.equal(torch.arange(3) + 1, torch.tensor([1, 2, 3]))
        assert torch.equal(torch.cat([X, X])[:2] * 2, X + X)


def test_other_devices_and_memory_formats_are_left_to_torch() -> None:
    with Shapes():
        assert torch.zeros_like(torch.rand(2, device="meta"), device="cpu").tolist() == [0, 0]
        last = torch.rand(2, 3, 4, 5, device="meta")
        assert torch.ones_like(last, memory_format=torch.channels_last).stride() == (60, 1, 15, 3)


def test_operands_that_torch_refuses_raise_errors() -> None:
    with Shapes(), torch.device("meta"), grouped() as case:
        x = torch.rand(2, 3)
        for number, wrong in enumerate(
            (
                lambda: x + torch.rand(4),
                lambda: x + torch.rand(3, device="cpu"),
                lambda: x @ torch.rand(4, 5),
                lambda: x @ torch.rand(3, 5).double(),
                lambda: torch.cat([x, torch.rand(2, 4)]),
                lambda: torch.bmm(torch.rand(2, 3, 4), torch.rand(5, 4, 3)),
                lambda: x.sum(dim=2),
                lambda: x.long().mean(dim=0),
                lambda: F.layer_norm(x, (2,)),
                lambda: torch.where(x, x, x),
                lambda: F.embedding(x, torch.rand(5, 4)),
                lambda: (x.T * 0.5).view(6),
            )
        ):
            with case(str(number)), pytest.raises((RuntimeError, ValueError, IndexError)):
                wrong()


HEAVY = ("torch._dynamo", "torch._inductor", "sympy", "torchvision", "lightning_fabric", "pandas", "pyarrow.compute")
HEAVY = (*HEAVY, "huggingface_hub.hf_api", "matplotlib", "optuna", "sqlalchemy", "sklearn", "scipy.stats")
LOADED_NAMES = f"[name for name in {HEAVY} if name in sys.modules]"


def last_line_of_process(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[-1]


COUNT_ALL = """
import contextlib, sys
import nas
from search_spaces.support.errors import UserError
from search_spaces.topologies.registry import TOPOLOGIES
for name in TOPOLOGIES.names():
    nas.cost("stdlib-lm", topology=name)
    with contextlib.suppress(UserError):  # a few need attention
        nas.cost("goal-point-maze", topology=name)
"""


@pytest.mark.outside
def test_counting_loads_no_compiler_and_no_unneeded_package() -> None:
    assert last_line_of_process(f"{COUNT_ALL}\nprint({LOADED_NAMES})") == "[]"
