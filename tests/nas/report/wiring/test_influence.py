"""How much each layer reads of each other, compared with the topologies' equations and parameters."""

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
from search_spaces.topologies.base import NoOptions, Wiring
from search_spaces.topologies.chain import Chain
from search_spaces.topologies.registry import TOPOLOGIES, load

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


def measured(stack: Stack, loss: bool = True) -> Influence:
    def forward() -> Tensor | None:
        made = stack(*embeddings()[: 1 if isinstance(stack.layers[0], Dense) else 2])
        return made.square().mean() if loss else None

    (found,) = influences(stack, forward).values()
    return found


def small(topology: str, *, moved: bool = True) -> Stack:
    stack = transformer(*load(topology), DEPTH, 4, 4)
    return perturb(stack) if moved else stack


def reachable(found: Influence) -> Array:
    return np.arange(found.weights.shape[1]) < np.array(found.layers)[:, None]


def unit(source: int) -> Array:
    """What a source is, as coefficients of all."""
    return np.eye(SOURCES)[source]


def block(number: int) -> Array:
    """The output of a block from 1, which is that of its two layers."""
    return unit(2 * number - 1) + unit(2 * number)


def by_blocks(opening: list[Array], head: Array) -> Array:
    """What layers read where blocks read these: the second layer of a block reads the first one's output as well."""
    return np.array([row for t, x in enumerate(opening) for row in (x, x + unit(2 * t + 1))] + [head])


def numbers(parameter: Tensor) -> list[float]:
    return [float(value) for value in parameter.detach()]


def test_residual_network_reads_every_layer_with_weight_one() -> None:
    found = measured(small("resnet"))
    np.testing.assert_allclose(found.weights, np.tri(SOURCES), atol=1e-12)
    np.testing.assert_allclose(found.gains, np.tri(SOURCES), atol=1e-12)


def test_network_without_skips_reads_only_the_previous_layer() -> None:
    np.testing.assert_allclose(measured(small("none")).weights, np.eye(SOURCES), atol=1e-12)


def test_ancre_by_its_equation() -> None:
    stack = small("ancre(temperature=0.5)")
    h = [unit(0)]
    logits = list(stack.topology.c)[::-1]  # of blocks 2 .. K; that of block 1 is fixed
    for j in range(1, DEPTH + 1):
        p = [1.0] if j == 1 else numbers(torch.softmax(logits[j - 2] / 0.5, dim=0))
        h.append(h[j - 1] + block(j) + sum(share * earlier for share, earlier in zip(p, h, strict=True)))
    np.testing.assert_allclose(measured(stack).weights, by_blocks(h[:-1], h[-1]), atol=1e-12)


def test_grn_by_its_equation() -> None:
    stack = small("grn-v1")
    entries = [unit(0), *(block(j) for j in range(1, DEPTH + 1))]
    g = [sum(b * e for b, e in zip(numbers(part.b), entries, strict=False)) for part in stack.topology.inner.sums]
    np.testing.assert_allclose(measured(stack).weights, by_blocks(g[:-1], g[-1]), atol=1e-12)


def test_denseformer_by_its_equation() -> None:
    stack = small("denseformer")
    x, y = [unit(0)], [unit(0)]
    for j in range(1, DEPTH + 1):
        x.append(y[-1] + block(j))
        y.append(sum(a * one for a, one in zip(numbers(stack.topology.inner.alpha[j - 1]), x[::-1], strict=True)))
    np.testing.assert_allclose(measured(stack).weights, by_blocks(y[:-1], y[-1]), atol=1e-12)


def test_hyper_connections_by_their_matrices() -> None:
    stack = small("hyper(dynamic=false,streams=3)")
    streams, read = np.tile(unit(0), (3, 1)), []
    for t, connection in enumerate(stack.topology.connections):
        a, b = np.split(connection.static.detach().numpy(), [4], axis=1)
        read.append(a[:, 0] @ streams)
        streams = a[:, 1:].T @ streams + b * unit(t + 1)
    np.testing.assert_allclose(measured(stack).weights, [*read, streams.mean(axis=0)], atol=1e-12)


def sources_of(stack: Stack) -> list[Tensor]:
    """The network's input and the layers' outputs, by walking the stack."""
    parts = embeddings()
    state, made = stack.topology.open(*parts), [sum(parts)]
    for t, layer in enumerate(stack.layers):
        inputs, state = stack.topology.read(t, state)
        made.append(layer(*inputs))
        state = stack.topology.write(t, state, made[-1])
    return made


def test_attention_residuals_by_their_softmax() -> None:
    stack = small("attnres")
    v = sources_of(stack)
    rows = [unit(0)]
    for t, w in enumerate(stack.topology.w, start=1):
        scores = torch.stack([F.rms_norm(one, one.shape[-1:], eps=1e-6) @ w for one in v[: t + 1]], dim=-1)
        shares = (t + 1) * scores.softmax(dim=-1).flatten(0, -2).mean(0).detach().numpy()
        rows.append(np.pad(shares, (0, SOURCES - t - 1)))
    np.testing.assert_allclose(measured(stack).weights, rows, atol=1e-12)


def test_gates_count_by_their_mean() -> None:
    stack = small("grn-v3")
    made = sources_of(stack)
    e = [made[0], *(made[2 * j - 1] + made[2 * j] for j in range(1, DEPTH + 1))]
    for t, gates in enumerate(stack.topology.inner.sums):
        (b,), w = gates.b, gates.w[0, 0]
        expected = [torch.relu(b_s + (e_s @ w)[..., None]).mean().item() for b_s, e_s in zip(b, e, strict=False)]
        row = measured(stack).weights[2 * t]
        np.testing.assert_allclose([row[0], *row[1 : 2 * t + 1 : 2]], expected, atol=1e-12)


def test_rules_that_hold_for_every_topology() -> None:
    """At the start, and with other parameters."""
    with grouped() as case:
        for topology, moved in product(CASES, (False, True)):
            with case(f"{topology}, {'moved' if moved else 'at the start'}"):
                check_rules(topology, moved)


def check_rules(topology: str, moved: bool) -> None:
    kind, options = load(topology)
    stack = small(topology, moved=moved)
    found = measured(stack)
    can = reachable(found)
    assert found.weights.shape == found.gains.shape == (len(found.input_rms), len(stack.layers) + 1)
    assert np.isfinite(found.weights).all()
    assert not found.weights[~can].any()
    assert not found.gains[~can].any()
    assert (found.gains + 1e-12 >= np.abs(found.weights)).all()
    assert found.fixed == (topology != "depth-lstm")  # which bends the stream itself
    assert found.in_heads == (kind.input_mode_of(options) == "heads")
    np.testing.assert_allclose(found.shares.sum(axis=1), 1, atol=1e-12)
    if kind.equals_resnet(options) and not moved:
        np.testing.assert_allclose(found.weights[can], 1, atol=1e-12)


@pytest.mark.parametrize("topology", ["resnet", "attnres", "denseformer", "hyper"])
def test_shallow_and_deep_networks(topology: str) -> None:
    for depth in (1, 40):
        found = measured(dense(*load(topology), depth))
        assert found.layers == tuple(range(1, depth + 2))
        np.testing.assert_allclose(found.weights, np.tri(depth + 1), atol=1e-11)


def test_sizes_and_gradients_are_those_of_the_network() -> None:
    stack, (tokens, positions) = small("resnet"), embeddings()
    found = measured(stack)
    made = sources_of(stack)
    np.testing.assert_allclose(found.output_rms, [one.square().mean().sqrt().item() for one in made])
    np.testing.assert_allclose(
        found.input_rms, [sum(made[:t]).square().mean().sqrt().item() for t in range(1, SOURCES + 1)]
    )
    np.testing.assert_allclose(found.shares[-1], found.output_rms / found.output_rms.sum())
    tokens.requires_grad_()
    (gradient,) = torch.autograd.grad(stack(tokens, positions).square().mean(), tokens)
    assert found.gradient is not None
    assert found.gradient[0] == pytest.approx(gradient.norm().item())
    assert measured(stack, loss=False).gradient is None


def test_padding_is_ignored() -> None:
    stack, (tokens, positions) = small("attnres"), embeddings()
    real = torch.arange(TOKENS).expand(2, -1) < 3

    def at(padding: Tensor) -> Influence:
        there = torch.where(real[..., None], tokens, padding)
        return influences(stack, lambda: stack(there, positions, mask=real).square()[real].mean())[""]

    one, other = at(torch.zeros(())), at(torch.full((), 5.0))
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-12)
    np.testing.assert_allclose(one.input_rms, other.input_rms, atol=1e-12)


class Bent(Chain):
    """Every layer reads tanh(x): there is no coefficient."""

    def read(self, t: int, state: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        return (torch.tanh(state),), state

    @classmethod
    def count(cls, wiring: Wiring, options: NoOptions) -> Count:
        return Count()

    def write(self, t: int, state: Tensor, y: Tensor) -> Tensor:
        return state + y


def test_fully_nonlinear_topology_is_differentiated_fully() -> None:
    found = measured(dense(Bent, NoOptions(), 2))
    assert not found.fixed
    assert (found.weights[reachable(found)] > 0.1).all()


def test_network_is_unchanged_afterwards() -> None:
    stack = small("hyper")
    topology, before = stack.topology, stack(*embeddings())
    measured(stack)
    assert stack.topology is topology
    assert torch.equal(stack(*embeddings()), before)

    def fails() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        influences(stack, fails)
    assert stack.topology is topology


def test_last_call_of_a_stack_counts() -> None:
    stack = small("attnres")

    def twice() -> Tensor:
        stack(*(3 * part for part in embeddings()))
        return stack(*embeddings()).square().mean()

    np.testing.assert_array_equal(influences(stack, twice)[""].weights, measured(stack).weights)
