"""DeepNorm, layer by layer, and its initial weights."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.feed_forward import GELU
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.models.decoder import build_decoder
from search_spaces.models.encoder import EncoderSizes, build_encoder
from search_spaces.models.masked_encoder import build_masked
from search_spaces.models.vit import build_vit
from tasks.vision.digits import xavier_init

Build = Callable[..., Stack]


def test_norms_stand_behind_the_sum(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    for depth, skip in ((3, 6**0.25), (6, 1.8612), (12, 2.2134)):
        stack = transformer("deepnorm", depth=depth)
        draw(stack)
        x = torch.randn(2, 5, 16).double()
        y = x
        for layer, norm in zip(stack.layers, stack.topology.norms, strict=True):
            total = skip * y + layer(y)
            deviation = total - total.mean(-1, keepdim=True)
            y = deviation / torch.sqrt((deviation**2).mean(-1, keepdim=True) + 1e-5) * norm.weight + norm.bias
        torch.testing.assert_close(stack(x, torch.zeros_like(x)), y, rtol=1e-3, atol=1e-3)


def test_layers_norm_nothing_themselves(transformer: Build) -> None:
    assert not any(isinstance(module, nn.LayerNorm) for module in transformer("deepnorm").layers.modules())


@pytest.mark.parametrize(("depth", "gain"), [(6, 0.3799), (12, 0.3195), (24, 0.2686)])
def test_maps_of_values_and_later_ones_start_smaller(depth: int, gain: float) -> None:
    shape = Architecture(depth=depth, width=16, hidden=32, heads=2, head_dim=8)
    first, last = slice(32), slice(32, None)  # factors of silu and gelu
    models = [
        (lambda shape: build_vit(shape, (1, 4, 4), 2, 3).stack, None),
        (lambda shape: build_decoder(shape, "llama", 11, 8).stack, last),
        (lambda shape: xavier_init(build_vit(shape, (1, 4, 4), 2, 3)).stack, None),
        (lambda shape: build_encoder(shape, EncoderSizes(vocabulary=9, context=8, classes=2)).stack, None),
        (lambda shape: build_masked(shape, "crammed-bert", 11, 8).stack, first),
    ]
    for build, linear in models if depth == 6 else models[:2]:
        stacks = []
        for topology in ("resnet", "deepnorm"):
            torch.manual_seed(0)
            stacks.append(build(shape.with_fields({"topology": topology})))
        before, after = (dict(stack.layers.named_parameters()) for stack in stacks)
        for name, weight in after.items():
            if weight.ndim > 1:
                share = weight / before[name]
                expected = torch.full_like(share, gain)
                if name.endswith("qkv.weight"):
                    expected[: 2 * 16] = 1
                if name.endswith("up.weight") and len(weight) == 2 * 32:
                    expected[linear] = 1
                torch.testing.assert_close(share, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("style", ["gpt2", "rmt", "rmt-code"])
def test_depth_scales_maps_once_in_every_style(style: str) -> None:
    torch.manual_seed(0)
    shape = Architecture(depth=6, width=64, hidden=128, heads=2, head_dim=32, topology="deepnorm")
    for name, weight in build_decoder(shape, style, 11, 8).stack.layers.named_parameters():
        if weight.ndim > 1:
            rows = weight[-64:] if name.endswith("qkv.weight") else weight
            assert abs(rows.std().item() / (0.3799 * 0.02) - 1) < 0.05, name


def test_count_has_no_norms_but_its_own() -> None:
    style = TransformerStyle(Norm("rms", 1e-6), GELU, attention_bias=True, feed_forward_bias=True, num_embeddings=1)
    shape = Architecture(depth=3, width=16, hidden=24, heads=2, head_dim=8, topology="deepnorm")
    stack = build_transformer(shape, style, lambda block: SoftmaxAttention(causal=True))
    assert sum(p.numel() for p in stack.parameters()) == count_transformer(shape, style, 5).params
    residual = shape.with_fields({"topology": "resnet"})
    assert count_transformer(shape, style, 5).params - count_transformer(residual, style, 5).params == 6 * 32 - 7 * 16
