"""Segments of blocks with different topologies keep the contract."""

import re
from dataclasses import replace
from itertools import cycle, islice

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from expect import raises
from grouped import grouped
from nas.costs.count import count_macs
from nas.costs.shapes import Shapes
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.feed_forward import GELU
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.testing.small_networks import TOKENS, WIDTH, embeddings, perturb, stray_tensors
from search_spaces.topologies.registry import TOPOLOGIES, incompatibility_reason

STYLE = TransformerStyle(Norm("layer", 1e-6), GELU, attention_bias=True, feed_forward_bias=True, num_embeddings=2)
BASE = Architecture(depth=4, width=WIDTH, heads=4, head_dim=4, hidden=24)
UNLIKE = BASE.with_fields({"heads": (4, 2, 3, 1), "head_dim": (4, 4, 8, 8), "hidden": (24, 8)})
KINDS = ("resnet", "dca", "rmt", "deepnorm", "svformer", "depth-lstm")  # inputs and inner states
CASES = [
    "dca(k=1)/resnet",
    "resnet/rmt",
    "rmt/hyper(streams=2)",
    "ancre/denseformer",
    "grn-v3/none/dca/resnet",
    "value-residual/deepnorm",
    "deepnorm/svformer",
]


def network(architecture: Architecture) -> Stack:
    torch.manual_seed(0)
    return build_transformer(architecture, STYLE, lambda block: SoftmaxAttention(causal=True)).double()


def of(topology: str) -> Architecture:
    return replace(UNLIKE, topology=topology)


@pytest.mark.parametrize("name", TOPOLOGIES.names())
def test_closed_form_matches_counters_between_all_kinds(name: str) -> None:
    segments = [name, *(segment for kind in KINDS for segment in (kind, name))]
    blocks = {
        axis: tuple(islice(cycle(values), len(segments)))
        for axis, values in {"heads": (4, 2, 3, 1), "head_dim": (4, 4, 8, 8), "hidden": (24, 8)}.items()
    }
    architecture = replace(BASE, depth=len(segments)).with_fields(blocks).with_fields({"topology": "/".join(segments)})
    form = count_transformer(architecture, STYLE, TOKENS)
    stack = network(architecture).requires_grad_(False).to("meta")
    tokens, positions = (part.to("meta") for part in embeddings())
    assert form.params == sum(parameter.numel() for parameter in stack.parameters())
    with Shapes(), FlopCounterMode(display=False) as counter:
        stack(tokens[:1], positions)
    assert 2 * form.macs == counter.get_total_flops()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_closed_form_of_two_segments_matches_counters(kind: str) -> None:
    with grouped() as case:
        for topology in (pair for name in TOPOLOGIES.names() for pair in (f"{name}/{kind}", f"{kind}/{name}")):
            with case(topology):
                counts_agree(of(topology))


def counts_agree(architecture: Architecture) -> None:
    """Assert that closed form, parameters and our counter agree."""
    stack = network(architecture)
    form = count_transformer(architecture, STYLE, TOKENS)
    inputs = torch.empty(1, TOKENS, WIDTH).double(), torch.empty(TOKENS, WIDTH).double()
    assert form.params == sum(parameter.numel() for parameter in stack.parameters())
    assert form.macs == count_macs(stack, inputs)[0]


def by_hand(stack: Stack, segments: list[nn.Module], parts: tuple[Tensor, ...]) -> Tensor:
    """Each segment as a separate network, one after the other."""
    layers = list(stack.layers)
    for segment in segments:
        state = segment.open(*parts)
        for t in range(len(stack.layers) // len(segments)):
            layer = layers.pop(0)
            inputs, state = segment.read(t, state)
            if segment.takes_values and layer.site.attends:
                q, k, v = layer.project(*inputs)
                v, state = segment.values(t, state, v)
                y = layer.mix(q, k, v)
            else:
                y = layer(*inputs)
            state = segment.write(t, state, y)
        parts = (segment.close(state),)
    return stack.norm(parts[0])


@pytest.mark.parametrize("topology", CASES)
def test_segments_are_networks_one_after_another(topology: str) -> None:
    stack = perturb(network(of(topology)))
    segments, parts = list(stack.topology.segments), embeddings()
    assert len(segments) == topology.count("/") + 1
    features = stack(*parts)
    assert torch.equal(features, by_hand(stack, segments, parts))
    counts_agree(of(topology))
    forwards_do_not_meet(stack, parts, features)


def forwards_do_not_meet(stack: Stack, parts: tuple[Tensor, ...], expected: Tensor) -> None:
    """Assert that interleaved forwards give separate results and leave no tensor on a module."""
    wiring, other_parts = stack.topology, tuple(-2 * part for part in parts)
    expected_of_others = stack(*other_parts)
    first, second = wiring.open(*parts), wiring.open(*other_parts)
    for t in range(len(stack.layers)):
        y, first = stack.output(t, first)
        other, second = stack.output(t, second)
        first, second = wiring.write(t, first, y), wiring.write(t, second, other)
    assert torch.equal(stack.norm(wiring.close(first)), expected)
    assert torch.equal(stack.norm(wiring.close(second)), expected_of_others)
    assert [name for name, module in wiring.named_modules() if list(stray_tensors(module))] == []


def test_equal_neighbours_are_one_segment_where_that_changes_nothing() -> None:
    assert of("resnet/resnet") == of("resnet")
    assert of("none/none") == of("none")
    assert of("dca/dca") != of("dca")  # the second stack starts anew
    assert of("resnet/none") != of("resnet")


def test_blocks_have_their_own_heads_and_hidden_features() -> None:
    attentions = [layer for layer in network(of("resnet")).layers if hasattr(layer, "heads")]
    assert [layer.heads for layer in attentions] == [4, 2, 3, 1]
    assert [layer.site.features for layer in attentions] == [16, 8, 24, 8]
    stack = network(of("resnet"))
    assert [layer.up.out_features for layer in stack.layers if hasattr(layer, "up")] == [24, 24, 8, 8]


@pytest.mark.parametrize("topology", CASES)
def test_every_parameter_learns(topology: str) -> None:
    stack, inputs = network(of(topology)), embeddings()
    optimizer = torch.optim.SGD(stack.parameters(), lr=0.1)
    parameters = dict(stack.topology.named_parameters())
    parameters |= {name: parameter for name, parameter in stack.layers.named_parameters() if parameter.ndim > 1}
    start = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    target = torch.randn_like(inputs[0])
    for _ in range(3):
        optimizer.zero_grad()
        (stack(*inputs) - target).square().mean().backward()
        optimizer.step()
    assert [name for name, parameter in parameters.items() if torch.equal(parameter, start[name])] == []


@pytest.mark.parametrize(
    "topology", [CASES[1], *(pytest.param(case, marks=pytest.mark.slow) for case in (CASES[0], CASES[2]))]
)
def test_segments_compile_to_one_graph_and_recompute(topology: str) -> None:
    torch.compiler.reset()
    stack = perturb(network(of(topology)))
    expected = stack(*embeddings())
    graph = torch.compile(stack, fullgraph=True, backend="eager")
    torch.testing.assert_close(graph(*embeddings()), expected)
    stack.recompute = True
    torch.testing.assert_close(stack(*embeddings()), expected)


def test_invalid_blocks_of_a_segment_are_refused() -> None:
    assert incompatibility_reason(of("resnet/rmt")) is None  # one head dim per segment
    within = replace(BASE.with_fields({"head_dim": (4, 8, 4, 8)}), topology="resnet/rmt")
    assert re.findall(r"\w+=[\w/]+", incompatibility_reason(within) or "") == ["head_dim=4/8"]
    odd = replace(BASE.with_fields({"head_dim": (4, 4, 3, 3)}), topology="resnet/rmt")
    assert re.findall(r"\w+=[\w/]+", incompatibility_reason(odd) or "") == ["values=3", "width=16"]
    with raises("unsupported", option="topology", value="resnet/rmt"):
        network(within)
