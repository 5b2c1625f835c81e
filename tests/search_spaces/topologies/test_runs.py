"""Runs of blocks wired by topologies of their own: the contract of a topology, kept by what is made of several."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from nas.counting import count_macs
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.feed_forward import GELU
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.small_networks import TOKENS, WIDTH, embeddings, kept_tensors, perturbed
from search_spaces.topologies.registry import TOPOLOGIES, refusal

STYLE = TransformerStyle(Norm("layer", 1e-6), GELU, attention_bias=True, feed_forward_bias=True, parts=2)
BASE = Architecture(depth=4, width=WIDTH, heads=4, head_dim=4, hidden=24)
UNLIKE = BASE.changed({"heads": (4, 2, 3, 1), "head_dim": (4, 4, 8, 8), "hidden": (24, 8)})
KINDS = ("resnet", "dca", "rmt", "deepnorm", "svformer", "depth-lstm")  # what is delivered, and what is reached into
PAIRS = sorted({f"{a}/{b}" for one in TOPOLOGIES.names() for kind in KINDS for a, b in ((one, kind), (kind, one))})
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


@pytest.mark.parametrize("topology", PAIRS)
def test_the_closed_form_is_what_is_counted(topology: str) -> None:
    architecture = of(topology)
    stack = network(architecture)
    form = count_transformer(architecture, STYLE, TOKENS)
    inputs = torch.empty(1, TOKENS, WIDTH).double(), torch.empty(TOKENS, WIDTH).double()
    assert form.params == sum(parameter.numel() for parameter in stack.parameters())
    assert form.macs == count_macs(stack, inputs)[0]


def by_hand(stack: Stack, runs: list[nn.Module], parts: tuple[Tensor, ...]) -> Tensor:
    """Each run as the network that it would be alone, one after the other."""
    layers = list(stack.layers)
    for run in runs:
        state = run.open(*parts)
        for t in range(len(stack.layers) // len(runs)):
            layer = layers.pop(0)
            inputs, state = run.read(t, state)
            if run.takes_values and layer.site.attends:
                q, k, v = layer.project(*inputs)
                v, state = run.values(t, state, v)
                y = layer.mix(q, k, v)
            else:
                y = layer(*inputs)
            state = run.write(t, state, y)
        parts = (run.close(state),)
    return stack.norm(parts[0])


@pytest.mark.parametrize("topology", CASES)
def test_runs_are_networks_one_after_another(topology: str) -> None:
    stack = perturbed(network(of(topology)))
    runs = list(stack.topology.runs)
    assert len(runs) == topology.count("/") + 1
    assert torch.equal(stack(*embeddings()), by_hand(stack, runs, embeddings()))


def test_a_run_that_closes_to_what_the_next_opens_with_is_one_run() -> None:
    assert of("resnet/resnet") == of("resnet")
    assert of("none/none") == of("none")
    assert of("dca/dca") != of("dca")  # the second stack starts anew
    assert of("resnet/none") != of("resnet")


def test_blocks_have_their_own_numbers() -> None:
    attentions = [layer for layer in network(of("resnet")).layers if hasattr(layer, "heads")]
    assert [layer.heads for layer in attentions] == [4, 2, 3, 1]
    assert [layer.site.inner for layer in attentions] == [16, 8, 24, 8]
    stack = network(of("resnet"))
    assert [layer.up.out_features for layer in stack.layers if hasattr(layer, "up")] == [24, 24, 8, 8]


@pytest.mark.parametrize("topology", CASES)
def test_every_parameter_learns(topology: str) -> None:
    stack, inputs = network(of(topology)), embeddings()
    optimizer = torch.optim.SGD(stack.parameters(), lr=0.1)
    learned = dict(stack.topology.named_parameters())
    learned |= {name: parameter for name, parameter in stack.layers.named_parameters() if parameter.ndim > 1}
    start = {name: parameter.detach().clone() for name, parameter in learned.items()}
    target = torch.randn_like(inputs[0])
    for _ in range(3):
        optimizer.zero_grad()
        (stack(*inputs) - target).square().mean().backward()
        optimizer.step()
    assert [name for name, parameter in learned.items() if torch.equal(parameter, start[name])] == []


@pytest.mark.parametrize("topology", CASES)
def test_two_forwards_do_not_meet_and_nothing_is_kept(topology: str) -> None:
    stack = perturbed(network(of(topology)))
    wiring, parts, others = stack.topology, embeddings(), tuple(-2 * part for part in embeddings())
    expected = stack(*parts), stack(*others)
    first, second = wiring.open(*parts), wiring.open(*others)
    for t in range(len(stack.layers)):
        y, first = stack.output(t, first)
        other, second = stack.output(t, second)
        first, second = wiring.write(t, first, y), wiring.write(t, second, other)
    assert torch.equal(stack.norm(wiring.close(first)), expected[0])
    assert torch.equal(stack.norm(wiring.close(second)), expected[1])
    assert [name for name, module in wiring.named_modules() if list(kept_tensors(module))] == []


@pytest.mark.parametrize("topology", CASES[:3])
def test_it_compiles_to_one_graph_and_recomputes(topology: str) -> None:
    torch.compiler.reset()
    stack = perturbed(network(of(topology)))
    expected = stack(*embeddings())
    compiled = torch.compile(stack, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(*embeddings()), expected)
    stack.recompute = True
    torch.testing.assert_close(stack(*embeddings()), expected)


def test_what_a_run_cannot_wire_is_refused() -> None:
    assert refusal(of("resnet/rmt")) is None  # a head dim for each run
    within = replace(BASE.changed({"head_dim": (4, 8, 4, 8)}), topology="resnet/rmt")
    assert "rmt delivers in head space" in str(refusal(within))
    odd = replace(BASE.changed({"head_dim": (4, 4, 3, 3)}), topology="resnet/rmt")
    assert "must divide the width" in str(refusal(odd))
    with pytest.raises(UserError, match="head space"):
        network(within)
