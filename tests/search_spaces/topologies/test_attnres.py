"""Attention residuals as published, source by source."""

import re
from collections.abc import Callable
from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.stack import Stack
from search_spaces.testing.small_networks import without_epsilon
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import count_topology
from search_spaces.topologies.registry import incompatibility_reason, resolve_topology

Build = Callable[..., Stack]


def mix(w: Tensor, sources: list[Tensor], heads: int = 1) -> Tensor:
    """sum_i a_i v_i, a = softmax_i(w . norm(v_i)), for each position and head."""
    out, size = torch.zeros_like(sources[0]), len(w) // heads
    for b in range(out.shape[0]):
        for n in range(out.shape[1]):
            keys = [v[b, n] / torch.sqrt((v[b, n] ** 2).mean() + 1e-6) for v in sources]
            for h in range(heads):
                of = slice(h * size, (h + 1) * size)
                weights = torch.stack([(w[of] * key[of]).sum() for key in keys]).softmax(0)
                out[b, n, of] = sum(weight * v[b, n, of] for weight, v in zip(weights, sources, strict=True))
    return out


def reference(stack: Stack, x: Tensor, every: int, heads: int) -> Tensor:
    """The published network with blocks of `every` layers."""
    blocks, partial = [x], []
    for t, layer in enumerate(stack.layers):
        sources = [*blocks, *([sum(partial)] if partial else [])]
        y = layer(sources[0] if t == 0 else mix(stack.topology.w[t - 1], sources, heads))
        partial.append(y)
        if len(partial) == every:
            blocks, partial = [*blocks, sum(partial)], []
    return mix(stack.topology.w[-1], [*blocks, *([sum(partial)] if partial else [])], heads)


def test_behind_a_norm_it_is_the_published_network(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for every, heads in ((1, 1), (2, 1), (4, 1), (9, 1), (1, 4), (4, 2)):
            with case(f"every={every},heads={heads}"):
                stack = transformer(f"attnres(every={every},heads={heads})")
                draw(stack)
                without_epsilon(stack)  # with an epsilon, norms depend on scale
                x = torch.randn(2, 5, 16).double()
                actual, expected = (
                    F.layer_norm(end, (16,), eps=1e-14)
                    for end in (stack(x, torch.zeros_like(x)), reference(stack, x, every, heads))
                )
                torch.testing.assert_close(actual, expected)


def test_unscaled_it_is_the_published_network_without_a_norm(
    transformer: Build, draw: Callable[[nn.Module], None]
) -> None:
    for every, heads in ((1, 1), (2, 4)):
        stack = transformer(f"attnres(every={every},heads={heads},scaled=false)")
        draw(stack)
        x = torch.randn(2, 5, 16).double()
        torch.testing.assert_close(stack(x, torch.zeros_like(x)), reference(stack, x, every, heads))


def test_one_block_of_all_layers_keeps_the_input_apart_from_their_sum(
    transformer: Build, draw: Callable[[nn.Module], None]
) -> None:
    stack = transformer("attnres(every=100)")
    with torch.no_grad():
        stack.topology.w[-1].fill_(0.0)
    x = torch.randn(2, 5, 16).double()
    state = stack.topology.open(x)
    for t, layer in enumerate(stack.layers):
        inputs, state = stack.topology.read(t, state)
        state = stack.topology.write(t, state, layer(*inputs))
    complete, partial = state
    assert len(complete) == 1
    assert partial is not None
    torch.testing.assert_close(stack.topology.close(state), x + partial[0])


def delta(stack: Stack, x: Tensor, every: int, heads: int, gate_on: bool) -> Tensor:
    """The residual stream, and a mix of blocks that all layers but the first read in addition."""
    h, blocks, partial = x, [x], list[Tensor]()
    for t, layer in enumerate(stack.layers):
        sources = [*blocks, *([sum(partial)] if partial else [])]
        gate = stack.topology.g[t - 1] if gate_on and t else 1
        read = h + gate * mix(stack.topology.w[t - 1], sources, heads) if t else h
        y = layer(read)
        h = h + y
        partial.append(y)
        if len(partial) == every:
            blocks, partial = [*blocks, sum(partial)], []
    return h


def test_the_delta_form_adds_a_mix_to_what_layers_read(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for (every, heads), gate_on in product(((1, 1), (2, 4), (9, 1)), (True, False)):
            text = f"attnres-delta(every={every},heads={heads},gated={str(gate_on).lower()})"
            with case(text):
                stack = transformer(text)
                draw(stack)
                x = torch.randn(2, 5, 16).double()
                expected = delta(stack, x, every, heads, gate_on)
                torch.testing.assert_close(stack(x, torch.zeros_like(x)), expected)


def test_the_delta_form_starts_as_the_residual_network_and_its_gate_at_a_saddle(
    transformer: Build,
) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 5, 16).double()
    resnet = transformer("resnet")
    ends, gradients = [resnet(x, torch.zeros_like(x))], []
    for topology in ("attnres-delta", "attnres-delta(gated=false)"):
        stack = transformer(topology)
        stack.layers.load_state_dict(resnet.layers.state_dict())
        ends.append(stack(x, torch.zeros_like(x)))
        ends[-1].square().mean().backward()
        mixing, layers = (max(p.grad.abs().max() for p in part.parameters()) for part in (stack.topology, stack.layers))
        gradients.append(mixing / layers)
    torch.testing.assert_close(ends[1], ends[0])
    torch.testing.assert_close(ends[2], ends[0], rtol=1e-4, atol=1e-4)  # norms have an epsilon
    with_gate, without_gate = gradients
    assert with_gate < 1e-4 < 1e-3 < without_gate


def test_heads_do_not_change_the_cost_of_a_mix() -> None:
    spec = StackSpec((Site(("x",), 8, True),) * 3, 8, 4)
    assert count_topology(*resolve_topology("attnres(heads=4)"), spec) == count_topology(
        *resolve_topology("attnres"), spec
    )


def test_a_mix_costs_one_product_per_source() -> None:
    spec = StackSpec((Site(("q", "k", "v"), 8, True), Site(("x",), 8, False)) * 2, 8, 4)
    for options, sources in {"": [2, 3, 4, 5], "(every=2)": [2, 2, 3, 3], "(every=3)": [2, 2, 2, 3]}.items():
        count = count_topology(*resolve_topology(f"attnres{options}"), spec)
        assert (count.params, count.macs) == (4 * 8, 8 * sum(sources)), options


def test_a_refusal_suggests_heads_that_divide_the_width() -> None:
    shape = Architecture(depth=2, width=24, hidden=8, topology="attnres(heads=5)")
    assert re.findall(r"\w+=\w+", incompatibility_reason(shape) or "") == ["heads=5", "width=24", "heads=4"]
    assert incompatibility_reason(shape.with_fields({"topology": "attnres(heads=4)"})) is None
