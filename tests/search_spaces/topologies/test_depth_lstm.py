"""The depth-wise LSTM step by step, in networks without feed-forward layers."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from expect import raises
from nas.costs.count import count_macs
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.feed_forward import GELU
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack, build_stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.topologies.registry import incompatibility_reason

Build = Callable[..., Stack]
STYLE = TransformerStyle(Norm("layer", 1e-6), GELU, attention_bias=True, feed_forward_bias=True, num_embeddings=2)
UNLIKE = Architecture(
    depth=4, width=16, heads=4, head_dim=4, hidden=24, blocks="hidden=24/8", topology="depth-lstm/resnet"
)


def sigmoid(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x))


def normalize(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    deviation = x - x.mean(-1, keepdim=True)
    return norm.weight * deviation / (deviation.square().mean(-1, keepdim=True) + 1e-6).sqrt() + norm.bias


def step(module: nn.Module, y: Tensor, output: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """One LSTM step, with a separate matrix per gate and input."""
    width = y.shape[-1]

    def of(weight: Tensor) -> Tensor:
        return y @ weight[:, :width].T + output @ weight[:, width:].T

    rows = module.gates.weight
    i, f, g = (sigmoid(normalize(module.norms[n], of(rows[n * width : (n + 1) * width]))) for n in range(3))
    candidate = normalize(module.norm, of(module.up.weight)).clamp(min=0) @ module.down.weight.T + module.down.bias
    cell = f * cell + i * candidate
    return g * cell, cell


def test_each_attention_layer_is_a_step(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    stack = transformer("depth-lstm")
    draw(stack)
    tokens, positions = torch.randn(2, 2, 5, 16).double()
    output, cell = tokens + positions, stack.topology.cell
    assert len(stack.layers) == 3
    for layer, module in zip(stack.layers, stack.topology.steps, strict=True):
        output, cell = step(module, layer(output), output, cell)
    torch.testing.assert_close(stack(tokens, positions), output)


def test_cell_starts_at_zero_and_gates_by_fan_out(transformer: Build) -> None:
    topology = transformer("depth-lstm", depth=1).topology
    assert topology.cell.eq(0).all()
    (module,) = topology.steps
    for gate in module.gates.weight.chunk(3):
        assert 0.9 * (6 / 48) ** 0.5 < gate.abs().max().item() <= (6 / 48) ** 0.5
    assert module.up.weight.abs().max().item() <= (6 / 64) ** 0.5
    assert module.down.bias.eq(0).all()


def test_each_step_has_the_hidden_features_of_its_block() -> None:
    stack = build_transformer(UNLIKE, STYLE, lambda block: SoftmaxAttention(causal=True))
    other = build_transformer(
        replace(UNLIKE, topology="resnet/depth-lstm"), STYLE, lambda block: SoftmaxAttention(causal=True)
    )
    assert [step.up.out_features for step in stack.topology.segments[0].steps] == [24, 24]
    assert [step.up.out_features for step in other.topology.segments[1].steps] == [8, 8]
    assert [layer.site.attends for layer in stack.layers] == [True, True, True, False, True, False]
    form = count_transformer(UNLIKE, STYLE, tokens=5)
    assert form.params == sum(parameter.numel() for parameter in stack.parameters())
    assert form.macs == count_macs(stack, (torch.randn(1, 5, 16), torch.randn(5, 16)))[0]


def test_networks_without_attention_are_refused() -> None:
    network = Architecture(depth=2, width=8, hidden=8, topology="depth-lstm")
    assert (incompatibility_reason(network) or "").startswith("depth-lstm ")
    assert incompatibility_reason(replace(network, heads=2, head_dim=4)) is None


def test_blocks_of_several_layers_are_refused(transformer: Build) -> None:
    layers = list(transformer("resnet", depth=2).layers)
    network = Architecture(depth=2, width=16, hidden=8, heads=4, head_dim=4, topology="depth-lstm")
    with raises("unsupported", topology="depth-lstm", layers=4, blocks=2):
        build_stack(network, layers, None, num_embeddings=1)
