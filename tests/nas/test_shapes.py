"""Shapes by rule beside those of torch, which works them out with values."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from nas.shapes import RULES, Shapes

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
    (aten.clamp.default, (X, None, 0.5)),
    (aten.tril.default, (WHOLE, 1)),
    *((real, (x,)) for real in (aten.exp.default, aten.sin.default, aten.cos.default) for x in (X, WHOLE)),
    *((real, (x,)) for real in (aten.rsqrt.default, aten.sqrt.default) for x in (X, WHOLE + 1, DOUBLE)),
    *((real, (x,)) for real in (aten.tanh.default, aten.sigmoid.default) for x in (X, WHOLE, X.bfloat16())),
]


@pytest.mark.parametrize(("operator", "given"), CASES, ids=lambda one: getattr(one, "name", lambda: None)())
def test_a_rule_gives_what_torch_gives(operator: Any, given: tuple[Any, ...]) -> None:
    where = {} if any(isinstance(one, Tensor) for one in tree_leaves(given)) else {"device": torch.device("meta")}
    expected = operator(*given)
    with Shapes():
        found = operator(*tree_map(lambda one: one.to("meta") if isinstance(one, Tensor) else one, given), **where)
    assert [(one.shape, one.dtype) for one in tree_leaves(found)] == [
        (one.shape, one.dtype) for one in tree_leaves(expected)
    ]
    assert all(one.is_meta for one in tree_leaves(found))


def test_every_rule_has_a_case() -> None:
    assert {operator for operator, _ in CASES} == set(RULES)


def test_values_are_left_to_torch() -> None:
    with Shapes():
        assert torch.equal(torch.arange(3) + 1, torch.tensor([1, 2, 3]))
        assert torch.equal(torch.cat([X, X])[:2] * 2, X + X)


def test_what_torch_would_refuse_is_refused() -> None:
    with Shapes(), torch.device("meta"):
        x = torch.rand(2, 3)
        for wrong in (
            lambda: x + torch.rand(4),
            lambda: x + torch.rand(3, device="cpu"),
            lambda: x @ torch.rand(4, 5),
            lambda: x @ torch.rand(3, 5).double(),
            lambda: torch.cat([x, torch.rand(2, 4)]),
        ):
            with pytest.raises((RuntimeError, ValueError)):
                wrong()


HEAVY = ("torch._dynamo", "torch._inductor", "sympy", "torchvision", "lightning", "pandas", "pyarrow.compute")
HEAVY = (*HEAVY, "huggingface_hub.hf_api", "matplotlib", "optuna", "sqlalchemy", "sklearn", "scipy.stats")
LOADED = f"[name for name in {HEAVY} if name in sys.modules]"


def of_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("task", ["digits-vit", "c4-lm", "lra-listops", "stdlib-mlm", "digits-dit"])
def test_a_count_loads_neither_torchs_compiler_nor_what_it_does_not_need(task: str) -> None:
    run = "from nas.cli import main\ntry: main()\nexcept SystemExit as end: code = end.code"
    assert (
        of_a_fresh_process(f"import sys; sys.argv = ['nas', 'cost', '{task}']; {run}\nprint(code, {LOADED})") == "0 []"
    )


COUNT_ALL = """
import contextlib, sys
import nas
from search_spaces.errors import UserError
from search_spaces.topologies.registry import TOPOLOGIES
for name in TOPOLOGIES.names():
    nas.cost("stdlib-lm", topology=name)
    with contextlib.suppress(UserError):  # a few need attention
        nas.cost("goal-point-maze", topology=name)
"""


def test_no_topology_loads_it_either() -> None:
    assert of_a_fresh_process(f"{COUNT_ALL}\nprint({LOADED})") == "[]"
