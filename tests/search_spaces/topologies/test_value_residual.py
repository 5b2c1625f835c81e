"""Value residuals against explicit attention."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.feed_forward import GELU
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.topologies.registry import incompatibility_reason

Build = Callable[..., Stack]
STYLE = TransformerStyle(Norm("layer", 1e-6), GELU, attention_bias=True, feed_forward_bias=True, num_embeddings=1)


def project(layer: nn.Module, x: Tensor) -> list[Tensor]:
    """Queries, keys and, where there are any, values, [B, N, inner]."""
    z = layer.project.norm(x)
    weight, bias = layer.project.qkv.weight, layer.project.qkv.bias
    inner = layer.site.features
    return [
        z @ weight[i * inner : (i + 1) * inner].T + bias[i * inner : (i + 1) * inner]
        for i in range(len(weight) // inner)
    ]


def attend(layer: nn.Module, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal softmax attention, one head at a time."""
    size = q.shape[-1] // layer.heads
    hidden = torch.ones(q.shape[1], q.shape[1]).triu(1).bool()
    outputs = []
    for h in range(layer.heads):
        of = slice(h * size, (h + 1) * size)
        logits = (q[..., of] @ k[..., of].transpose(1, 2) / math.sqrt(size)).masked_fill(hidden, -math.inf)
        outputs.append(logits.exp() / logits.exp().sum(-1, keepdim=True) @ v[..., of])
    return layer.out(torch.cat(outputs, dim=-1))


def by_hand(stack: Stack, x: Tensor, constants: tuple[float, float] | None, mixed_from: int) -> Tensor:
    """Values from layer `mixed_from` on are mixed with the first, by constants or learned weights."""
    y, first = x, None
    for t, layer in enumerate(stack.layers):
        if t % 2:
            y = y + layer(y)
            continue
        q, k, v = project(layer, y)
        if first is None:
            first = v
        elif t >= mixed_from:
            weights = constants or stack.topology.weights[str(t)]
            v = weights[0] * first + weights[1] * v
        y = y + attend(layer, q, k, v)
    return y


def test_later_values_are_mixed_with_the_first(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for options, constants, mixed_from in (
            ("", (0.5, 0.5), 1),
            ("(learned=true)", None, 1),
            ("(first=2,own=1)", (2, 1), 1),
            ("(first=5,own=1,last=2)", (5, 1), 4),
            ("(last=9)", (0.5, 0.5), 1),
        ):
            with case(f"value-residual{options}"):
                stack = transformer(f"value-residual{options}", depth=4)
                draw(stack)
                x = torch.randn(2, 5, 16).double()
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), by_hand(stack, x, constants, mixed_from))


def test_svformer_attends_over_the_first_values_everywhere(
    transformer: Build, draw: Callable[[nn.Module], None]
) -> None:
    stack = transformer("svformer")
    draw(stack)
    x = torch.randn(2, 5, 16).double()
    y, first = x, None
    for t, layer in enumerate(stack.layers):
        if t % 2:
            y = y + layer(y)
            continue
        q, k, *v = project(layer, y)
        assert len(v) == (t == 0)
        first = v[0] if v else first
        y = y + attend(layer, q, k, first)
    torch.testing.assert_close(stack(x, torch.zeros_like(x)), y)


def test_with_all_weight_on_own_values_it_is_the_residual_network(transformer: Build) -> None:
    x = torch.randn(2, 5, 16).double()
    stack, resnet = transformer("value-residual(first=0,own=1,learned=true)"), transformer("resnet")
    stack.layers.load_state_dict(resnet.layers.state_dict())
    torch.testing.assert_close(stack(x, torch.zeros_like(x)), resnet(x, torch.zeros_like(x)))


@pytest.mark.parametrize("topology", ["value-residual(learned=true)", "svformer", "resnet/svformer"])
def test_networks_of_different_blocks_are_counted_and_run(topology: str) -> None:
    base = Architecture(depth=4, width=16, hidden=24, heads=2, head_dim=8, topology=topology)
    for shape in (base, base.with_fields({"heads": (2, 2, 4, 2)})):
        stack = build_transformer(shape, STYLE, lambda block: SoftmaxAttention(causal=True))
        assert sum(p.numel() for p in stack.parameters()) == count_transformer(shape, STYLE, 5).params
        x = torch.randn(2, 5, 16)
        features = stack(x)
        assert features.isfinite().all()
        stack.recompute = True
        torch.testing.assert_close(stack(x), features)


def fewer(shape: Architecture) -> int:
    """Parameters that the residual network has in addition."""
    residual, this = (count_transformer(a, STYLE, 5) for a in (shape.with_fields({"topology": "resnet"}), shape))
    return residual.params - this.params


def test_layers_of_another_head_count_keep_their_own_values() -> None:
    shape = Architecture(depth=4, width=16, hidden=24, heads=2, head_dim=8, topology="svformer")
    assert fewer(shape) == 3 * (16 * 16 + 16)
    assert fewer(shape.with_fields({"heads": (2, 2, 4, 2)})) == 2 * (16 * 16 + 16)


def test_recomputing_layers_changes_no_gradient() -> None:
    shape = Architecture(depth=2, width=16, hidden=24, heads=2, head_dim=8, topology="value-residual")
    torch.manual_seed(0)
    stack = build_transformer(shape, STYLE, lambda block: SoftmaxAttention(causal=True))
    x, gradients = torch.randn(2, 5, 16), []
    for recompute in (False, True):
        stack.recompute = recompute
        stack.zero_grad()
        stack(x).square().sum().backward()
        gradients.append([p.grad for p in stack.parameters()])
    torch.testing.assert_close(*gradients)


def test_networks_without_heads_are_refused() -> None:
    for topology in ("value-residual", "svformer"):
        network = Architecture(depth=2, width=8, hidden=8, topology=topology)
        assert incompatibility_reason(network) is not None
        assert incompatibility_reason(network.with_fields({"heads": 2, "head_dim": 4})) is None
