"""ANCRe against its recursion, with all weights in one matrix."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from search_spaces.errors import UserError
from search_spaces.layers.stack import Stack
from search_spaces.topologies.registry import load

Build = Callable[..., Stack]
DEPTH = 4


def shares(c: nn.ParameterList, direction: str, temperature: float) -> Tensor:
    """p [source, target], every column (ingoing) or row (outgoing) a softmax written out."""
    p = torch.zeros(DEPTH, DEPTH + 1).double()
    for one in range(DEPTH):
        if direction == "ingoing":
            target = one + 1
            logits = c[DEPTH - target] if target > 1 else torch.zeros(1)
            cells = [(i, target) for i in range(target)]
        else:
            logits = c[one] if one < DEPTH - 1 else torch.zeros(1)
            cells = [(one, j) for j in range(one + 1, DEPTH + 1)]
        weights = torch.exp(logits / temperature)
        for cell, weight in zip(cells, weights / weights.sum(), strict=True):
            p[cell] = weight
    return p


@pytest.mark.parametrize("cascaded", [True, False])
@pytest.mark.parametrize("direction", ["ingoing", "outgoing"])
def test_matches_the_recursion(
    direction: str, cascaded: bool, transformer: Build, draw: Callable[[nn.Module], None]
) -> None:
    text = f"ancre(direction={direction},cascaded={str(cascaded).lower()},temperature=0.5)"
    stack = transformer(text, depth=DEPTH)
    draw(stack)
    p = shares(stack.topology.inner.c, direction, 0.5)
    x = torch.randn(2, 5, 16).double()
    h = [x]
    for j in range(1, DEPTH + 1):
        a = stack.layers[2 * j - 2](h[-1])
        f = a + stack.layers[2 * j - 1](a + h[-1])
        shortcuts = sum(p[i, j] * h[i] for i in range(j))
        h.append(f + shortcuts + (h[-1] if cascaded else 0))
    torch.testing.assert_close(stack(x, torch.zeros_like(x)), h[-1])


def test_all_shortcuts_into_a_block_begin_alike(mlp: Build) -> None:
    stack = mlp("ancre", depth=2)
    x = torch.randn(2, 16).double()
    f, g = stack.layers
    first = 2 * x + f(x)
    torch.testing.assert_close(stack(x), first + g(first) + (x + first) / 2)


def test_all_weight_on_the_latest_state_is_the_residual_network(mlp: Build) -> None:
    stack, x = mlp("ancre(cascaded=false)"), torch.randn(2, 16).double()
    with torch.no_grad():
        for c in stack.topology.inner.c:
            c[-1] = 100
    torch.testing.assert_close(stack(x), mlp("resnet")(x))


def test_history_is_dropped_after_the_last_block(mlp: Build) -> None:
    stack = mlp("ancre", depth=3)
    topology, state, held = stack.topology, stack.topology.open(torch.randn(2, 16).double()), []
    for t, layer in enumerate(stack.layers):
        inputs, state = topology.read(t, state)
        state = topology.write(t, state, layer(*inputs))
        held.append(len(state[0][1]))
    assert held == [2, 3, 1]


def test_temperature_must_be_positive() -> None:
    with pytest.raises(UserError, match="temperature must be more than 0, got 0"):
        load("ancre(temperature=0)")
