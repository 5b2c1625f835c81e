"""The residual matrix transformer against its equations."""

import math
import re
from collections.abc import Callable
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from expect import raises
from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import Site, StackSpec
from search_spaces.topologies.build import build_topology, count_topology
from search_spaces.topologies.registry import incompatibility_reason, resolve_topology
from search_spaces.topologies.rmt import RMT, Load, MatrixStore

Build = Callable[..., Stack]
KEYS, VALUES = 6, 4


def outer_sum(store: MatrixStore, y: Tensor) -> Tensor:
    """sum_h w^(h) (outer) y^(h): the paper's matrix, [..., D_k, D_v]."""
    vectors = y.reshape(*y.shape[:-1], -1, VALUES)
    return sum(torch.einsum("k,...v->...kv", store.keys.weight[:, h], vectors[..., h, :]) for h in range(store.rank))


def inner_products(load: Load, matrix: Tensor) -> list[Tensor]:
    """r^(h) . X for all h of each port, concatenated."""
    ports = []
    for keys in load.keys.weight.chunk(load.ports):
        ports.append(torch.cat([torch.einsum("k,...kv->...v", r, matrix) for r in keys], dim=-1))
    return ports


def normalize(norm: nn.Module, matrix: Tensor, kind: str) -> Tensor:
    """LayerNorm over all entries of a position, with a gain per entry: [..., D_k, D_v]."""
    gain = norm.norm.weight.reshape(VALUES, KEYS).T
    if kind == "rms":
        return gain * matrix / torch.sqrt(matrix.square().mean((-2, -1), keepdim=True) + 1e-6)
    deviation = matrix - matrix.mean((-2, -1), keepdim=True)
    return gain * deviation / torch.sqrt(deviation.square().mean((-2, -1), keepdim=True) + 1e-6)


def reference(stack: Stack, tokens: Tensor, positions: Tensor, kind: str, heads: int) -> Tensor:
    """The paper's equations, by number."""
    topology = stack.topology
    assert isinstance(topology, RMT)
    matrix = outer_sum(topology.embed[0], tokens) + outer_sum(topology.embed[1], positions)  # (14)
    for t, layer in enumerate(stack.layers):
        inputs = inner_products(topology.loads[t], normalize(topology.norms[t], matrix, kind))
        if t % 2 == 0:  # (15, 20 to 22): no projections at all
            q, k, v = (x.reshape(2, 5, heads, VALUES) for x in inputs)
            scores = torch.einsum("bnhd,bmhd->bhnm", q, k) / math.sqrt(VALUES)
            scores = scores.masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf)
            y = torch.einsum("bhnm,bmhd->bnhd", scores.softmax(-1), v).reshape(2, 5, heads * VALUES)
        else:  # (16, 23 to 25)
            y = layer.down(F.gelu(layer.up(inputs[0])))
        matrix = matrix + outer_sum(topology.stores[t], y)
    (read,) = inner_products(topology.unembed, normalize(topology.norms[-1], matrix, kind))  # (17, 27)
    return read


def test_matches_the_equations(transformer: Build, draw: Callable[[nn.Module], None]) -> None:
    with grouped() as case:
        for kind, heads in product(("layer", "rms"), (4, 6)):
            with case(f"norm={kind}, {heads} heads"):
                stack = transformer(f"rmt(keys={KEYS},norm={kind})", heads=heads, head_dim=VALUES)
                draw(stack)
                tokens, positions = torch.randn(2, 5, 16).double(), torch.randn(5, 16).double()
                expected = reference(stack, tokens, positions, kind, heads)
                torch.testing.assert_close(stack(tokens, positions), expected)


def test_parameters_are_those_of_appendix_a() -> None:
    """2RVD_v + RND_v + 3RD_k + L(6RD_k + 2RD_vD_FF): the topology has the keys, and gains in addition."""
    layers, rank, keys, values = 6, 12, 32, 32
    width = rank * values
    spec = StackSpec(
        (Site(("q", "k", "v"), width, True), Site(("x",), width, False)) * layers, width, values, num_embeddings=2
    )
    gains = (2 * layers + 1) * keys * values
    params = count_topology(*resolve_topology(f"rmt(keys={keys})"), spec).params - gains
    assert params == 3 * rank * keys + layers * 6 * rank * keys


def test_keys_start_by_xaviers_rule_and_those_of_stores_smaller() -> None:
    spec = StackSpec((Site(("q", "k", "v"), 2048, True), Site(("x",), 2048, False)) * 2, 2048, 8, num_embeddings=1)
    topology = build_topology(*resolve_topology("rmt(keys=128)"), spec)
    assert isinstance(topology, RMT)
    spread = {
        "load for attention": (topology.loads[0], 2 / (128 + 3 * 256)),
        "load": (topology.loads[1], 2 / (128 + 256)),
        "embedding": (topology.embed[0], 2 / (128 + 256)),
        "store": (topology.stores[1], 2 / (128 + 256) / 4),
    }
    for name, (module, variance) in spread.items():
        assert module.keys.weight.std().item() == pytest.approx(math.sqrt(variance), rel=0.03), name


@pytest.mark.parametrize(
    ("topology", "changes", "values"),
    [
        ("rmt", {"width": 18}, ["values=4", "width=18"]),
        ("rmt(values=8)", {}, ["values=8", "head_dim=4"]),
        ("rmt", {"heads": 0, "head_dim": 0}, ["values=16"]),  # the remedy without heads
    ],
)
def test_a_refusal_names_the_lengths_that_do_not_fit(topology: str, changes: dict[str, int], values: list[str]) -> None:
    shape = {"depth": 1, "width": 16, "hidden": 16, "heads": 2, "head_dim": 4} | changes
    architecture = Architecture(**shape, topology=topology)  # type: ignore[arg-type]  # all but the topology are int
    assert re.findall(r"\w+=\w+", incompatibility_reason(architecture) or "") == values


def test_values_must_divide_the_width() -> None:
    with raises("mismatch", option="values", width=18, head_dim=4):
        build_topology(*resolve_topology("rmt"), StackSpec((Site(("x",), 18, True),), 18, 4))
