"""DenseFormer against sums over the whole history."""

from collections.abc import Callable
from itertools import product

import torch
from torch import nn

from grouped import grouped
from search_spaces.layers.stack import Stack

Build = Callable[..., Stack]


def test_matches_sums_over_the_history(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for dilation, period in product((1, 2, 3), (1, 2, 3)):
            with case(f"dilation={dilation},period={period}"):
                stack = transformer(f"denseformer(dilation={dilation},period={period})", depth=6)
                draw(stack)
                averages = iter(stack.topology.inner.alpha)
                x = torch.randn(2, 5, 16).double()
                states, y = [x], x
                for i in range(6):
                    a = stack.layers[2 * i](y)
                    states.append(y + a + stack.layers[2 * i + 1](y + a))
                    y = states[-1]
                    if (i + 1) % period == 0:
                        sources = [j for j in range(i + 2) if j % dilation == (i + 1) % dilation]
                        y = sum(alpha * states[j] for alpha, j in zip(next(averages).flip(0), sources, strict=True))
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), y)


def test_unused_states_are_dropped(mlp: Build) -> None:
    stack = mlp("denseformer(dilation=2,period=2)", depth=5)
    topology, state, lengths = stack.topology, stack.topology.open(torch.randn(2, 16).double()), []
    for t, layer in enumerate(stack.layers):
        inputs, state = topology.read(t, state)
        state = topology.write(t, state, layer(*inputs))
        lengths.append(sorted(state[0][0]))
    assert lengths == [[0], [0, 2], [0, 2], [], []]
