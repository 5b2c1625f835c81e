"""Scaled branches, layer by layer."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from search_spaces.errors import UserError
from search_spaces.layers.stack import Stack
from search_spaces.topologies.registry import load

Build = Callable[..., Stack]


def test_layerscale_is_a_gain_of_each_feature(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    stack = transformer("layerscale")
    for gain in stack.topology.gains:
        assert gain.tolist() == pytest.approx([1e-5] * 16)
    draw(stack)
    tokens, positions = torch.randn(2, 2, 5, 16).double()
    x = tokens + positions
    for layer, gain in zip(stack.layers, stack.topology.gains, strict=True):
        x = x + torch.einsum("d,bnd->bnd", gain, layer(x))
    torch.testing.assert_close(stack(tokens, positions), x)


@pytest.mark.parametrize(("said", "of_layer"), [("", [0, 0, 1, 1, 2, 2]), ("(shared=false)", [0, 1, 2, 3, 4, 5])])
def test_rezero_is_a_number_of_each_block_or_layer(
    said: str, of_layer: list[int], transformer: Build, draw: Callable[[nn.Module], None]
) -> None:
    stack = transformer(f"rezero{said}")
    x = torch.randn(2, 5, 16).double()
    torch.testing.assert_close(stack(x, torch.zeros_like(x)), x)  # the identity at the start
    draw(stack)
    y = x
    for layer, number in zip(stack.layers, of_layer, strict=True):
        y = y + float(stack.topology.a[number].detach()) * layer(y)
    torch.testing.assert_close(stack(x, torch.zeros_like(x)), y)


def test_a_layer_without_tokens_is_a_block_of_its_own(mlp: Build) -> None:
    assert len(mlp("rezero", depth=3).topology.a) == 3


def test_gains_may_start_at_a_whole_number(transformer: Build) -> None:
    x = torch.randn(2, 5, 16).double()
    resnet, ours = (transformer(name)(x, torch.zeros_like(x)) for name in ("resnet", "layerscale(start=1)"))
    torch.testing.assert_close(ours, resnet)


def test_gains_start_above_nothing() -> None:
    with pytest.raises(UserError, match="start must be more than 0, got 0"):
        load("layerscale(start=0)")
