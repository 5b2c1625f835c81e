"""ANCRe against its recursion, with a matrix of all weights."""

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from grouped import grouped
from search_spaces.layers.stack import Stack

Build = Callable[..., Stack]
DEPTH = 4


def shares(c: nn.ParameterList, direction: str, temperature: float) -> Tensor:
    """p [source, target]: softmax over each column (ingoing) or row (outgoing)."""
    p = torch.zeros(DEPTH, DEPTH + 1).double()
    for k in range(DEPTH):
        if direction == "ingoing":
            target = k + 1
            logits = c[DEPTH - target] if target > 1 else torch.zeros(1)
            cells = [(i, target) for i in range(target)]
        else:
            logits = c[k] if k < DEPTH - 1 else torch.zeros(1)
            cells = [(k, j) for j in range(k + 1, DEPTH + 1)]
        weights = torch.exp(logits / temperature)
        for cell, weight in zip(cells, weights / weights.sum(), strict=True):
            p[cell] = weight
    return p


def test_matches_the_recursion(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for direction, cascade in product(("ingoing", "outgoing"), (True, False)):
            text = f"ancre(direction={direction},cascaded={str(cascade).lower()},temperature=0.5)"
            with case(text):
                stack = transformer(text, depth=DEPTH)
                draw(stack)
                p = shares(stack.topology.c, direction, 0.5)
                x = torch.randn(2, 5, 16).double()
                h = [x]
                for j in range(1, DEPTH + 1):
                    a = stack.layers[2 * j - 2](h[-1])
                    f = a + stack.layers[2 * j - 1](a + h[-1])
                    shortcuts = sum(p[i, j] * h[i] for i in range(j))
                    h.append(f + shortcuts + (h[-1] if cascade else 0))
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), h[-1])


def test_all_shortcuts_into_a_block_start_equal(mlp: Build) -> None:
    stack = mlp("ancre", depth=2)
    x = torch.randn(2, 16).double()
    f, g = stack.layers
    first = 2 * x + f(x)
    torch.testing.assert_close(stack(x), first + g(first) + (x + first) / 2)


def test_all_weight_on_the_latest_state_is_the_residual_network(mlp: Build) -> None:
    stack, x = mlp("ancre(cascaded=false)"), torch.randn(2, 16).double()
    with torch.no_grad():
        for c in stack.topology.c:
            c[-1] = 100
    torch.testing.assert_close(stack(x), mlp("resnet")(x))


def test_history_is_dropped_after_the_last_block(mlp: Build) -> None:
    stack = mlp("ancre", depth=3)
    topology, state, lengths = stack.topology, stack.topology.open(torch.randn(2, 16).double()), []
    for t, layer in enumerate(stack.layers):
        inputs, state = topology.read(t, state)
        state = topology.write(t, state, layer(*inputs))
        lengths.append(len(state.states))
    assert lengths == [2, 3, 1]


def weights_into_inputs(c: nn.ParameterList, direction: str, tau: float) -> dict[tuple[int, int], float]:
    """p of m_i into m_j, with the paper's indices from 1."""
    p, last = dict[tuple[int, int], float](), DEPTH - 1
    for i in range(1, DEPTH):
        for j in range(i + 1, DEPTH + 1):
            if direction == "ingoing":  # of target j the sources 1 .. j-1
                logits = c[DEPTH - j].tolist() if j > 2 else [0.0]
                of, at = logits, i - 1
            else:  # of source i the targets i+1 .. K
                of, at = c[i - 1].tolist() if i < last else [0.0], j - i - 1
            p[i, j] = float(
                torch.exp(torch.tensor(of).double() / tau)[at] / torch.exp(torch.tensor(of).double() / tau).sum()
            )
    return p


@pytest.mark.parametrize(("inputs", "cascade"), [("feed-forward", True), ("both", True), ("both", False)])
def test_shortcuts_between_inputs_of_feed_forward_layers_match_the_recursion(
    inputs: str, cascade: bool, transformer: Build, draw: Callable[[nn.Module], None]
) -> None:
    with grouped() as case:
        for direction in ("ingoing", "outgoing"):
            with case(direction):
                options = f"inputs={inputs},direction={direction},temperature=0.5,cascaded={str(cascade).lower()}"
                stack = transformer(f"ancre({options})", depth=DEPTH)
                draw(stack)
                p = shares(stack.topology.c, direction, 0.5) if inputs == "both" else torch.zeros(DEPTH, DEPTH + 1)
                inner = weights_into_inputs(stack.topology.c_inputs, direction, 0.5)
                x = torch.randn(2, 5, 16).double()
                h, m = [x], {}
                for j in range(1, DEPTH + 1):
                    attention = stack.layers[2 * j - 2](h[-1])
                    m[j] = h[-1] + attention + sum(inner[i, j] * m[i] for i in range(1, j))
                    output = (m[j] if cascade else m[j] - h[-1]) + stack.layers[2 * j - 1](m[j])
                    h.append(output + sum(p[i, j] * h[i] for i in range(j)))
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), h[-1])


def test_free_constant_and_latest_weights_match_the_recursion(mlp: Build, draw: Callable[[nn.Module], None]) -> None:
    x = torch.randn(2, 16).double()
    forms = ["direction=none", "form=constant", "form=latest"]
    for form in (*forms, *(f"{form},cascaded=false" for form in forms[:2])):
        stack = mlp(f"ancre({form})", depth=DEPTH)
        draw(stack)
        h, c = [x], stack.topology.c
        for j in range(1, DEPTH + 1):
            into = dict.fromkeys(range(j), 1 / j)
            if "direction=none" in form:
                into = {i: c[j - 1][i] for i in range(j)}
            if form == "form=latest":
                into = {j - 1: c[j - 2]} if j > 1 else {}
            skip = 0 if "cascaded=false" in form else h[-1]
            h.append(skip + stack.layers[j - 1](h[-1]) + sum(weight * h[i] for i, weight in into.items()))
        torch.testing.assert_close(stack(x), h[-1])


def test_free_weights_start_where_the_softmax_does(mlp: Build) -> None:
    x = torch.randn(2, 16).double()
    torch.testing.assert_close(mlp("ancre(direction=none)")(x), mlp("ancre")(x))
