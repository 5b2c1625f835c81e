"""Scaled branches, layer by layer."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.stack import Stack
from search_spaces.models.decoder import build_decoder, count_decoder

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


def test_rezero_has_a_weight_for_each_block_or_layer(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    of_blocks, of_layers = [0, 0, 1, 1, 2, 2], [0, 1, 2, 3, 4, 5]
    weights = {"": of_blocks, "(shared=false)": of_layers, "(norms=false)": of_blocks}
    with grouped() as case:
        for options, of_layer in (weights | {"(norms=false,shared=false)": of_layers}).items():
            with case(f"rezero{options}"):
                stack = transformer(f"rezero{options}")
                x = torch.randn(2, 5, 16).double()
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), x)  # the identity at the start
                draw(stack)
                y = x
                for layer, number in zip(stack.layers, of_layer, strict=True):
                    y = y + float(stack.topology.a[number].detach()) * layer(y)
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), y)


def test_rezero_without_norms_builds_no_norm(draw: Callable[[nn.Module], None]) -> None:
    shape = Architecture(depth=2, width=16, hidden=24, heads=2, head_dim=8, topology="rezero(norms=false)")
    models = [
        build_decoder(replace(shape, topology=topology), "gpt2", 11, 7) for topology in ("rezero", shape.topology)
    ]
    norms = [[module for module in model.modules() if isinstance(module, nn.LayerNorm)] for model in models]
    assert [len(each) for each in norms] == [5, 0]
    for name, model in zip(("rezero", shape.topology), models, strict=True):
        count = count_decoder(replace(shape, topology=name), "gpt2", 11, 7)
        assert count.params == sum(parameter.numel() for parameter in model.parameters())
    deviations = [float(model.stack.layers[3].down.weight.detach().std()) for model in models]
    assert deviations[1] == pytest.approx(deviations[0], rel=0.2)  # both smaller by depth
    stack = models[1].stack.double()
    draw(stack)
    x = y = torch.randn(2, 7, 16).double()
    for number, (attention, forward) in enumerate(zip(stack.layers[::2], stack.layers[1::2], strict=True)):
        a = float(stack.topology.a[number].detach())
        y = y + a * naive_attention(y, attention)
        y = y + a * forward.down(F.gelu(forward.up(y), approximate="tanh"))
    torch.testing.assert_close(stack(x, torch.zeros_like(x)), y)


def naive_attention(x: Tensor, layer: nn.Module) -> Tensor:
    """Causal softmax attention of two heads, position by position."""
    q, k, v = layer.project.qkv(x).unflatten(-1, (3, 2, 8)).unbind(-3)  # each [B, N, H, K]
    out = torch.zeros_like(q)
    for n in range(x.shape[1]):
        scores = torch.einsum("bhk,bmhk->bhm", q[:, n], k[:, : n + 1]) / 8**0.5
        out[:, n] = torch.einsum("bhm,bmhk->bhk", scores.softmax(-1), v[:, : n + 1])
    return layer.out(out.flatten(-2))


def test_a_layer_without_tokens_is_a_block_of_its_own(mlp: Build) -> None:
    assert len(mlp("rezero", depth=3).topology.a) == 3


def test_layerscale_started_at_one_is_the_residual_network(transformer: Build) -> None:
    x = torch.randn(2, 5, 16).double()
    resnet, layerscale = (transformer(name)(x, torch.zeros_like(x)) for name in ("resnet", "layerscale(start=1)"))
    torch.testing.assert_close(layerscale, resnet)
