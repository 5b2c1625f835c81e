"""Implicit spaces with axes per block."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import search_spaces.spaces.space
from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.axis_names import segment_of
from search_spaces.spaces.catalog import per_block
from search_spaces.spaces.parsing import parse_architecture
from search_spaces.spaces.space import Candidate, SearchSpace
from search_spaces.support.errors import Kind
from search_spaces.topologies.registry import incompatibility_reason

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=128)
SMALL = SearchSpace(
    "small",
    BASE,
    {
        "heads:1": (2, 4),
        "heads:2": (1, 4),
        **{f"head_dim:{block}": (8, 16) for block in range(1, 5)},
        "topology:1": ("resnet", "dca(k=1)", "rmt"),
        "topology:2": ("resnet", "rmt(keys=8)"),
        "recipe.lr": (0.1, 0.2),
    },
)


def by_hand() -> set[Candidate]:
    """All members, by nested loops."""
    members = set()
    for h1, h2, *dims, t1, t2, lr in product(
        (2, 4), (1, 4), *[(8, 16)] * 4, ("resnet", "dca(k=1)", "rmt"), ("resnet", "rmt(keys=8)"), (0.1, 0.2)
    ):
        text = f"heads={h1}/{h2},head_dim={'/'.join(map(str, dims))},topology={t1}/{t2}"
        architecture = parse_architecture(text, BASE)
        if incompatibility_reason(architecture) is None:
            members.add(Candidate(architecture, (("lr", lr),)))
    return members


def test_members_equal_those_of_nested_loops() -> None:
    assert set(SMALL) == by_hand()
    assert SMALL.combinations == 2 * 2 * 16 * 3 * 2 * 2 > len(SMALL)
    for candidate, point in SMALL.members.items():
        assert SMALL.candidate(point) == candidate
        assert SMALL.point(candidate) == point
        assert candidate in SMALL


OUTSIDE = [
    "heads=4/2",  # a value from the other run
    "heads=4/4/4/1",  # other runs than the space's
    "hidden=128/64",  # a field without an axis
    "topology=dca(k=1)",  # one topology over both runs
    "head_dim=8/16/8/8,topology=rmt/resnet",  # an invalid topology
    "depth=8",
    "width=64",
]


def test_architectures_outside_the_axes_are_no_members() -> None:
    for text in OUTSIDE:
        assert Candidate(parse_architecture(text, BASE), (("lr", 0.1),)) not in SMALL, text
    assert Candidate(BASE, (("lr", 0.3),)) not in SMALL
    assert Candidate(BASE) not in SMALL
    assert Candidate(BASE, (("lr", 0.1),)) in SMALL


def test_a_large_space_is_never_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Architecture] = []
    monkeypatch.setattr(
        search_spaces.spaces.space, "incompatibility_reason", lambda architecture: calls.append(architecture)
    )
    space = per_block(replace(BASE, depth=48))
    assert len(calls) == 1
    assert space.combinations > 10**100
    assert not space.is_enumerable
    for listing in (len, list, lambda s: s.members, lambda s: s.architectures):
        with raises("too-large", space="per-block", value=space.combinations, most=200_000):
            listing(space)


@pytest.mark.parametrize(("depth", "groups"), [(1, 1), (2, 1), (3, 1), (4, 2), (6, 3), (9, 3), (12, 4), (14, 2)])
def test_a_group_has_two_blocks_at_least(depth: int, groups: int) -> None:
    space = per_block(replace(BASE, depth=depth))
    assert len(space.segments["topology"]) == groups
    assert {len(space.segments[field]) for field in ("heads", "head_dim", "hidden")} == {depth}
    assert space.axes["hidden:1"] == (32, 64, 96, 128, 192, 256, 512)
    assert "rmt" not in space.axes["topology:1"]  # needs one head dim
    assert "dca" in space.axes["topology:1"]


def test_a_network_without_heads_has_no_axes_of_heads() -> None:
    space = per_block(Architecture(depth=4, width=32, hidden=32))
    assert set(space.segments) == {"hidden", "topology"}


def test_the_per_block_space_is_laid_out_around_bases_of_any_kind() -> None:
    base = parse_architecture("heads=8/4,topology=rmt", BASE)
    space = per_block(base)
    assert space.base.topology == "rmt/rmt"  # one run per group
    assert Candidate(space.base) in space
    assert (space.axes["heads:1"], space.axes["heads:4"]) == ((2, 4, 6, 8, 12, 16), (1, 2, 3, 4, 6, 8))
    with raises("unsupported", option="model", value="deit_tiny_patch16_224"):
        per_block(Architecture(depth=12, width=192, heads=3, hidden=768, model="deit_tiny_patch16_224"))


def test_the_axis_of_a_field_replaces_those_of_its_runs() -> None:
    space = per_block(BASE)
    alike = space.with_axes({"heads": (2, 4)})
    assert [axis for axis in alike.axes if axis.startswith("heads")] == ["heads"]
    back = alike.with_axes({"heads:1": (2, 4), "heads:2": (4,)})
    assert [axis for axis in back.axes if axis.startswith("heads")] == ["heads:1", "heads:2"]
    smaller = space.with_axes({"heads:3": (4,)})
    assert (smaller.axes["heads:3"], smaller.axes["heads:2"]) == ((4,), (1, 2, 3, 4, 6, 8))


@pytest.mark.parametrize(
    ("axes", "kind", "fields"),
    [
        ({"heads:2": (4,)}, "missing-value", {"value": ("heads:2",), "needs": ("heads:1",)}),
        (
            {"heads:1": (4,), "heads:3": (4,)},
            "missing-value",
            {"value": ("heads:1", "heads:3"), "needs": ("heads:1", "heads:2")},
        ),
        ({f"heads:{n}": (4,) for n in (1, 2, 3)}, "mismatch", {"option": "heads", "depth": 4}),
        ({"depth": (3, 4), "heads:1": (4,), "heads:2": (4,)}, "mismatch", {"option": "heads", "depth": 3}),
        ({"heads": (4,), "heads:1": (4,)}, "duplicate", {"option": "heads", "value": "heads:1"}),
        (
            {"topology:1": ("dca", "resnet"), "topology:2": ("resnet",), "resnet.k": (1,)},
            "conflict",
            {"option": "resnet.k", "value": "topology:1"},
        ),
        ({"width:1": (32,)}, "unknown-name", {"option": "axis", "value": "width:1"}),
        ({"heads:x": (4,)}, "unknown-name", {"option": "axis", "value": "heads:x"}),
        ({"heads:1": (0, 4)}, "conflict", {"option": "heads", "value": 0}),
        ({"topology:1": ("resnet", "resent")}, "unknown-name", {"value": "resent", "nearest": "resnet"}),
        ({"heads:1": (2,), "heads:2": (4,)}, "mismatch", {"option": "base", "axes": ("heads:1",)}),
    ],
)
def test_wrong_runs_of_blocks_are_refused(
    axes: dict[str, tuple[int | str, ...]], kind: Kind, fields: dict[str, Any]
) -> None:
    with raises(kind, **fields):
        SearchSpace("s", BASE, axes)


def test_the_axis_of_a_run_is_told_from_that_of_an_option() -> None:
    assert segment_of("heads:12") == ("heads", 12)
    assert segment_of("topology:1") == ("topology", 1)
    assert [segment_of(axis) for axis in ("heads", "dca.k", "recipe.lr", "width:1", "heads:", "heads:-1")] == [None] * 6
