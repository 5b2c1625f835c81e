"""Plain chains and the residual network."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from search_spaces.layers.stack import Stack


def test_plain_layers_are_composed(mlp: Callable[..., Stack]) -> None:
    stack = mlp("none")
    x = torch.randn(2, 16).double()
    f, g, h = stack.layers
    assert torch.equal(stack(x), h(g(f(x))))


def test_resnet_adds_each_output_to_the_sum_of_those_before(mlp: Callable[..., Stack]) -> None:
    stack = mlp("resnet")
    x = torch.randn(2, 16).double()
    total = x
    for layer in stack.layers:
        total = total + layer(total)
    assert torch.equal(stack(x), total)


def test_resnet_runs_no_operator_that_the_bare_loop_does_not(mlp: Callable[..., Stack]) -> None:
    stack = mlp("resnet")
    x = torch.randn(2, 16).double()
    with Operators() as operators:
        stack(x)
    with Operators() as bare:
        for layer in stack.layers:
            x = x + layer(x)
    assert operators.names == bare.names


class Operators(TorchDispatchMode):
    """Records the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
