"""Influence of layers on each other, compared with the topologies' equations and parameters."""

from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from grouped import grouped
from nas.report.wiring.influence import Array, Influence, influences
from search_spaces.layers.stack import Stack
from search_spaces.support.count import Count
from search_spaces.testing.small_networks import TOKENS, Dense, dense, embeddings, perturb, transformer
from search_spaces.topologies.base import NoOptions, StackSpec
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology
from search_spaces.topologies.single_stream import SingleStreamTopology

DEPTH = 3
SOURCES = 2 * DEPTH + 1
CASES = [
    *TOPOLOGIES.names(),
    "dca(k=1)",
    "denseformer(period=2)",
    "attnres(every=2)",
    "hyper(streams=2)",
    "laurel(reach=3)",
]


def influence_of(stack: Stack, loss: bool = True) -> Influence:
    def forward() -> Tensor | None:
        output = stack(*embeddings()[: 1 if isinstance(stack.layers[0], Dense) else 2])
        return output.square().mean() if loss else None

    (influence,) = influences(stack, forward).values()
    return influence


def small(topology: str, *, noise: bool = True) -> Stack:
    stack = transformer(*resolve_topology(topology), DEPTH, 4, 4)
    return perturb(stack) if noise else stack


def reachable(influence: Influence) -> Array:
    return np.arange(influence.weights.shape[1]) < np.array(influence.layers)[:, None]


def unit(source: int) -> Array:
    """A source as coefficients over all sources."""
    return np.eye(SOURCES)[source]


def block(number: int) -> Array:
    """The output of a block, counted from 1: the sum of its two layers."""
    return unit(2 * number - 1) + unit(2 * number)


def by_blocks(opening: list[Array], head: Array) -> Array:
    """The reads of layers, given the reads of blocks: the second layer also reads the first one's output."""
    return np.array([row for t, x in enumerate(opening) for row in (x, x + unit(2 * t + 1))] + [head])


def numbers(parameter: Tensor) -> list[float]:
    return [float(value) for value in parameter.detach()]


def test_residual_network_reads_every_layer_with_weight_one() -> None:
    influence = influence_of(small("resnet"))
    np.testing.assert_allclose(influence.weights, np.tri(SOURCES), atol=1e-12)
    np.testing.assert_allclose(influence.gains, np.tri(SOURCES), atol=1e-12)


def test_network_without_skips_reads_only_the_previous_layer() -> None:
    np.testing.assert_allclose(influence_of(small("none")).weights, np.eye(SOURCES), atol=1e-12)


def test_ancre_by_its_equation() -> None:
    stack = small("ancre(temperature=0.5)")
    h = [unit(0)]
    logits = list(stack.topology.c)[::-1]  # of blocks 2 .. K; block 1 has none
    for j in range(1, DEPTH + 1):
        p = [1.0] if j == 1 else numbers(torch.softmax(logits[j - 2] / 0.5, dim=0))
        h.append(h[j - 1] + block(j) + sum(share * earlier for share, earlier in zip(p, h, strict=True)))
    np.testing.assert_allclose(influence_of(stack).weights, by_blocks(h[:-1], h[-1]), atol=1e-12)


def test_grn_by_its_equation() -> None:
    stack = small("grn-v1")
    entries = [unit(0), *(block(j) for j in range(1, DEPTH + 1))]
    g = [sum(b * e for b, e in zip(numbers(part.b), entries, strict=False)) for part in stack.topology.inner.sums]
    np.testing.assert_allclose(influence_of(stack).weights, by_blocks(g[:-1], g[-1]), atol=1e-12)


def test_denseformer_by_its_equation() -> None:
    stack = small("denseformer")
    x, y = [unit(0)], [unit(0)]
    for j in range(1, DEPTH + 1):
        x.append(y[-1] + block(j))
        y.append(
            sum(a * earlier for a, earlier in zip(numbers(stack.topology.inner.alpha[j - 1]), x[::-1], strict=True))
        )
    np.testing.assert_allclose(influence_of(stack).weights, by_blocks(y[:-1], y[-1]), atol=1e-12)


def test_hyper_connections_by_their_matrices() -> None:
    stack = small("hyper(dynamic=false,streams=3)")
    streams, reads = np.tile(unit(0), (3, 1)), []
    for t, connection in enumerate(stack.topology.connections):
        a, b = np.split(connection.static.detach().numpy(), [4], axis=1)
        reads.append(a[:, 0] @ streams)
        streams = a[:, 1:].T @ streams + b * unit(t + 1)
    np.testing.assert_allclose(influence_of(stack).weights, [*reads, streams.mean(axis=0)], atol=1e-12)


def sources_of(stack: Stack) -> list[Tensor]:
    """The network's input and the layers' outputs, step by step."""
    parts = embeddings()
    state, outputs = stack.topology.open(*parts), [sum(parts)]
    for t, layer in enumerate(stack.layers):
        inputs, state = stack.topology.read(t, state)
        outputs.append(layer(*inputs))
        state = stack.topology.write(t, state, outputs[-1])
    return outputs


def test_attention_residuals_by_their_softmax() -> None:
    stack = small("attnres")
    v = sources_of(stack)
    rows = [unit(0)]
    for t, w in enumerate(stack.topology.w, start=1):
        scores = torch.stack([F.rms_norm(v_s, v_s.shape[-1:], eps=1e-6) @ w for v_s in v[: t + 1]], dim=-1)
        shares = (t + 1) * scores.softmax(dim=-1).flatten(0, -2).mean(0).detach().numpy()
        rows.append(np.pad(shares, (0, SOURCES - t - 1)))
    np.testing.assert_allclose(influence_of(stack).weights, rows, atol=1e-12)


def test_gates_count_by_their_mean() -> None:
    stack = small("grn-v3")
    outputs = sources_of(stack)
    e = [outputs[0], *(outputs[2 * j - 1] + outputs[2 * j] for j in range(1, DEPTH + 1))]
    for t, gates in enumerate(stack.topology.inner.sums):
        (b,), w = gates.b, gates.w[0, 0]
        expected = [torch.relu(b_s + (e_s @ w)[..., None]).mean().item() for b_s, e_s in zip(b, e, strict=False)]
        row = influence_of(stack).weights[2 * t]
        np.testing.assert_allclose([row[0], *row[1 : 2 * t + 1 : 2]], expected, atol=1e-12)


def test_rules_that_hold_for_every_topology() -> None:
    with grouped() as case:
        for topology, noise in product(CASES, (False, True)):
            with case(f"{topology}, {'moved' if noise else 'at the start'}"):
                check_rules(topology, noise)


def check_rules(topology: str, noise: bool) -> None:
    kind, options = resolve_topology(topology)
    stack = small(topology, noise=noise)
    influence = influence_of(stack)
    can = reachable(influence)
    assert influence.weights.shape == influence.gains.shape == (len(influence.input_rms), len(stack.layers) + 1)
    assert np.isfinite(influence.weights).all()
    assert not influence.weights[~can].any()
    assert not influence.gains[~can].any()
    assert (influence.gains + 1e-12 >= np.abs(influence.weights)).all()
    assert influence.fixed == (topology != "depth-lstm")  # it applies a nonlinearity to the stream
    assert influence.reads_head_space == (kind.input_mode_of(options) == "heads")
    np.testing.assert_allclose(influence.shares.sum(axis=1), 1, atol=1e-12)
    if kind.equals_resnet(options) and not noise:
        np.testing.assert_allclose(influence.weights[can], 1, atol=1e-12)


@pytest.mark.parametrize("topology", ["resnet", "attnres", "denseformer", "hyper"])
def test_shallow_and_deep_networks(topology: str) -> None:
    for depth in (1, 40):
        influence = influence_of(dense(*resolve_topology(topology), depth))
        assert influence.layers == tuple(range(1, depth + 2))
        np.testing.assert_allclose(influence.weights, np.tri(depth + 1), atol=1e-11)


def test_sizes_and_gradients_are_those_of_the_network() -> None:
    stack, (tokens, positions) = small("resnet"), embeddings()
    influence = influence_of(stack)
    outputs = sources_of(stack)
    np.testing.assert_allclose(influence.output_rms, [output.square().mean().sqrt().item() for output in outputs])
    np.testing.assert_allclose(
        influence.input_rms, [sum(outputs[:t]).square().mean().sqrt().item() for t in range(1, SOURCES + 1)]
    )
    np.testing.assert_allclose(influence.shares[-1], influence.output_rms / influence.output_rms.sum())
    tokens.requires_grad_()
    (gradient,) = torch.autograd.grad(stack(tokens, positions).square().mean(), tokens)
    assert influence.gradient is not None
    assert influence.gradient[0] == pytest.approx(gradient.norm().item())
    assert influence_of(stack, loss=False).gradient is None


def test_padding_does_not_count() -> None:
    stack, (tokens, positions) = small("attnres"), embeddings()
    real = torch.arange(TOKENS).expand(2, -1) < 3

    def at(padding: Tensor) -> Influence:
        inputs = torch.where(real[..., None], tokens, padding)
        return influences(stack, lambda: stack(inputs, positions, mask=real).square()[real].mean())[""]

    zeros, fives = at(torch.zeros(())), at(torch.full((), 5.0))
    np.testing.assert_allclose(zeros.weights, fives.weights, atol=1e-12)
    np.testing.assert_allclose(zeros.input_rms, fives.input_rms, atol=1e-12)


class TanhReads(SingleStreamTopology):
    """Every layer reads tanh(x), so there is no coefficient."""

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        return (torch.tanh(state),), state

    @classmethod
    def count(cls, spec: StackSpec, options: NoOptions) -> Count:
        return Count()

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return state + y


def test_fully_nonlinear_topology_has_full_derivatives() -> None:
    influence = influence_of(dense(TanhReads, NoOptions(), 2))
    assert not influence.fixed
    assert (influence.weights[reachable(influence)] > 0.1).all()


def test_measurement_does_not_change_the_network() -> None:
    stack = small("hyper")
    topology, before = stack.topology, stack(*embeddings())
    influence_of(stack)
    assert stack.topology is topology
    assert torch.equal(stack(*embeddings()), before)

    def fail() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        influences(stack, fail)
    assert stack.topology is topology


def test_last_call_of_a_stack_counts() -> None:
    stack = small("attnres")

    def twice() -> Tensor:
        stack(*(3 * part for part in embeddings()))
        return stack(*embeddings()).square().mean()

    np.testing.assert_array_equal(influences(stack, twice)[""].weights, influence_of(stack).weights)
