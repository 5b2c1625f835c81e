"""Topologies of ranges of blocks: canonical text and errors."""

from math import prod
from typing import Any

import pytest
import torch

from expect import check, raises
from grouped import grouped
from nas.budget.implicit.decomposition import slices_of
from nas.costs.count import count_macs
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.block_segments import has_one_topology, normalize_topologies, segments_of
from search_spaces.layers.attention import SoftmaxAttention
from search_spaces.layers.feed_forward import GELU
from search_spaces.layers.norm import Norm
from search_spaces.layers.transformer import TransformerStyle, build_transformer, count_transformer
from search_spaces.models.retrofit import refusal
from search_spaces.spaces.catalog import get_space
from search_spaces.spaces.parsing import parse_architecture, parse_axis
from search_spaces.spaces.space import SearchSpace
from search_spaces.support.errors import Kind
from search_spaces.testing.small_networks import TOKENS, WIDTH, embeddings, perturb
from search_spaces.topologies.registry import TOPOLOGIES

BASE = Architecture(depth=6, width=WIDTH, heads=4, head_dim=4, hidden=24)
STYLE = TransformerStyle(Norm("layer", 1e-6), GELU, attention_bias=True, feed_forward_bias=True, num_embeddings=2)


def canonical(topology: str) -> str:
    return parse_architecture(f"topology={topology}", BASE).topology


TEXTS = [
    ("resnet[0:2]+dca(k=2)[2:6]", "resnet[0:2]+dca(k=2)[2:6]"),
    (" resnet[ :2] + dca( k=2 )[2: ] ", "resnet[0:2]+dca(k=2)[2:6]"),
    ("resnet[:1]+resnet[1:2]+dca(k=2)[2:]", "resnet[0:2]+dca(k=2)[2:6]"),
    ("resnet/dca/dca", "resnet/dca/dca"),  # two stacks of dca, not one
    ("resnet[:2]+dca[2:4]+dca[4:]", "resnet/dca/dca"),
    ("resnet/resnet/dca", "resnet[0:4]+dca[4:6]"),
    ("dca[:3]+resnet[3:]", "dca/resnet"),
    ("dca[:3]+resnet[3:4]+resnet[4:]", "dca/resnet"),
    ("none[:2]+none[2:]", "none"),
    ("dca[:]", "dca"),
    ("ancre(temperature=1e-1)[:1]+hyper(streams=4)[1:]", "ancre(temperature=0.1)[0:1]+hyper[1:6]"),
]


def test_equal_networks_have_one_text() -> None:
    with grouped() as case:
        for spelling, canonical_text in TEXTS:
            with case(spelling):
                assert canonical(spelling) == canonical_text
                assert canonical(canonical_text) == canonical_text
                assert segments_of(canonical_text, 6) == segments_of(canonical(spelling), 6)


def test_blocks_of_a_range_are_an_architecture() -> None:
    architecture = parse_architecture("heads=8/4,topology=resnet[:1]+dca[1:6]", BASE)
    assert [architecture.at_block(block).topology for block in range(6)] == ["resnet", *5 * ["dca"]]
    assert [(segment.depth, segment.topology, segment.by_block("heads")) for segment in architecture.segments] == [
        (1, "resnet", (8,)),
        (5, "dca", (8, 8, 4, 4, 4)),
    ]


@pytest.mark.parametrize(
    ("spelling", "kind", "fields"),
    [
        ("dca[0:2]+resnet[2:5]", "mismatch", {"end": 5, "depth": 6, "instead": "resnet[2:]"}),
        ("dca[0:2]+resnet[3:]", "conflict", {"value": "resnet[3:]", "start": 2}),
        ("dca[0:2]+resnet[1:]", "conflict", {"value": "resnet[1:]", "start": 2}),
        ("dca[:2]+resnet[:6]", "conflict", {"value": "resnet[:6]", "start": 2}),
        ("dca[1:]", "conflict", {"value": "dca[1:]", "start": 0}),
        ("dca[0:2]+resnet[2:7]", "out-of-range", {"value": "resnet[2:7]", "depth": 6, "end": 7}),
        ("dca[:6]+resnet[6:]", "conflict", {"value": "resnet[6:]", "start": 6, "instead": None}),
        ("dca[:2]+resnet[3:]", "conflict", {"value": "resnet[3:]", "start": 2, "instead": "resnet[2:...]"}),
        ("dca[0:2]+resnet[2:2]+dca[2:]", "conflict", {"value": "resnet[2:2]", "start": 2}),
        ("dca[0:2]+resnet", "bad-syntax", {"value": "resnet", "option": "topology"}),
        ("dca[0:2]/resnet[2:]", "bad-syntax", {"value": "dca[0:2]/resnet"}),
        ("dca[-1:]", "bad-syntax", {"value": "dca[-1:]", "option": "topology"}),
        ("[0:2]+dca[2:]", "bad-syntax", {"value": ""}),
    ],
)
def test_ranges_must_contain_each_block_once(spelling: str, kind: Kind, fields: dict[str, Any]) -> None:
    with raises(kind, **fields):
        canonical(spelling)


def check_counts(name: str) -> None:
    """Assert that closed form and counters agree with a topology before and after another."""
    architecture = parse_architecture(f"topology={name}[:1]+dca[1:4]+{name}[4:]", BASE)
    stack = build_transformer(architecture, STYLE, lambda block: SoftmaxAttention(causal=True)).double()
    form = count_transformer(architecture, STYLE, TOKENS)
    inputs = torch.empty(1, TOKENS, WIDTH).double(), torch.empty(TOKENS, WIDTH).double()
    assert form.params == sum(parameter.numel() for parameter in stack.parameters())
    assert form.macs == count_macs(stack, inputs)[0]
    assert torch.isfinite(perturb(stack)(*embeddings())).all()


def test_closed_form_of_ranges_matches_counters() -> None:
    with grouped() as case:
        for name in ("resnet", "dca", "deepnorm", "rezero(norms=false)", "rmt", "depth-lstm", "svformer"):
            with case(name):
                check_counts(name)


@pytest.mark.slow
def test_closed_form_of_ranges_matches_counters_for_every_topology() -> None:
    with grouped() as case:
        for name in TOPOLOGIES.names():
            with case(name):
                check_counts(name)


def test_ranges_are_values_of_an_axis_of_listed_and_of_unlisted_spaces() -> None:
    axis, values = parse_axis("topology=resnet, dca( k=2 )[ :2]+resnet[2:],rmt")
    assert values == ("resnet", "dca(k=2)[:2]+resnet[2:]", "rmt")
    enumerated = get_space("depth-heads", BASE).with_axes({"depth": (4, 6), axis: values})
    members = [member for member in enumerated.architectures if not has_one_topology(member.topology)]
    assert {(member.depth, member.topology) for member in members} == {
        (4, "dca(k=2)/resnet"),
        (6, "dca(k=2)[0:2]+resnet[2:6]"),
    }
    assert all(enumerated.candidate(enumerated.architectures[member]).architecture == member for member in members)
    blocks = get_space("per-block", BASE).with_axes({axis: values[:2]})
    assert not blocks.is_enumerable
    candidate = blocks.candidate({**(blocks.point(blocks.first) or {}), axis: values[1], "heads:3": 2})
    assert candidate in blocks
    assert candidate.architecture.by_block("heads") == (4, 4, 2, 4, 4, 4)

    def params(architecture: Architecture) -> tuple[int, ...]:
        return (count_transformer(architecture, STYLE, TOKENS).params,)

    costs = {slice_.cost_of(blocks.point(candidate) or {}) for slice_ in slices_of(blocks, params)}
    assert costs - {None} == {params(candidate.architecture)}


def test_a_range_is_checked_against_its_own_blocks_only() -> None:
    """rmt needs one head dim in its own blocks: the last two of three."""
    base = Architecture(depth=3, width=16, heads=2, head_dim=4, hidden=8, topology="resnet[:1]+rmt[1:]")
    space = SearchSpace("s", base, {f"head_dim:{block}": (4, 8) for block in (1, 2, 3)})

    def params(member: Architecture) -> tuple[int, ...]:
        return (count_transformer(member, STYLE, TOKENS).params,)

    slices = list(slices_of(space, params))
    assert sum(prod(len(part.options) for part in slice_.parts) for slice_ in slices) == len(space) == 4
    for member in space:
        costs = [slice_.cost_of(space.point(member) or {}) for slice_ in slices]
        assert [cost for cost in costs if cost is not None] == [params(member.architecture)]


def test_a_value_of_a_runs_axis_is_one_topology() -> None:
    with raises("unsupported", option="topology:1", value="dca/resnet"):
        get_space("per-block", BASE).with_axes({"topology:1": ("resnet", "dca/resnet")})


def test_each_run_must_be_one_that_can_be_retrofitted() -> None:
    assert refusal(BASE, "resnet[:1]+dca[1:]") is None
    error = refusal(BASE, "resnet[:1]+ancre[1:]")
    assert error is not None
    check(error, "unsupported", option="topology", value="resnet[:1]+ancre[1:]")


def test_a_text_without_blanks_is_the_same_network() -> None:
    assert normalize_topologies(" dca( k=2 )[ :2 ]+ resnet[2:]") == "dca(k=2)[:2]+resnet[2:]"
    assert normalize_topologies("dca( k=2 ) / resnet") == "dca(k=2)/resnet"
