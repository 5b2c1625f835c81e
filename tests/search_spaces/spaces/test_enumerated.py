"""Spaces that list their members."""

from itertools import product

import pytest

from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.enumerated import enumerated_space, initial_architecture
from search_spaces.spaces.space import Candidate

BASE = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=16)


def with_topologies(*topologies: str) -> list[Architecture]:
    return [BASE.with_fields({"topology": text}) for text in topologies]


def test_a_listed_space_has_its_members_and_nothing_between_them() -> None:
    members = [BASE.with_fields({"depth": depth, "heads": heads}) for depth, heads in ((4, 2), (8, 1), (2, 4))]
    space = enumerated_space("recorded", members)
    assert (space.base, dict(space.axes)) == (
        initial_architecture(members[::-1]),
        {"depth": (2, 4, 8), "heads": (1, 2, 4)},
    )
    assert [member.architecture for member in space] == members
    assert space.is_enumerable
    for depth, heads in product((2, 4, 8), (1, 2, 4)):
        member = BASE.with_fields({"depth": depth, "heads": heads})
        assert (Candidate(member) in space) == (member in members)
        assert space.point(Candidate(member)) == ({"depth": depth, "heads": heads} if member in members else None)
    assert Candidate(members[0], (("lr", 0.1),)) not in space


@pytest.mark.parametrize(
    ("topologies", "axes"),
    [
        (("resnet", "none"), {"topology": ("resnet", "none")}),
        (("dca(k=4)", "dca(k=1)"), {"dca.k": (1, 4)}),
        (("dca(form=a,k=4)", "dca(form=a,k=1)", "grn-v3"), {"topology": ("dca(form=a)", "grn-v3"), "dca.k": (1, 4)}),
        (("dca", "dca(k=1)", "resnet"), {"topology": ("dca", "dca(k=1)", "resnet")}),  # whose k is dca's?
        (("dca(k=1)", "dca(k=2)", "dca"), {"topology": ("dca(k=1)", "dca(k=2)", "dca")}),
        (("dca(k=1)/resnet", "dca(k=1)", "dca(k=2)"), {"topology": ("dca(k=1)/resnet", "dca"), "dca.k": (1, 2)}),
        (("unheard-of(a=x)", "unheard-of(a=y)"), {"unheard-of.a": ("x", "y")}),
    ],
)
def test_options_that_all_members_name_are_axes(topologies: tuple[str, ...], axes: object) -> None:
    space = enumerated_space("recorded", with_topologies(*topologies))
    assert dict(space.axes) == axes
    points = [tuple(sorted(point.items())) for point in space.architectures.values()]
    assert len(set(points)) == len(points) == len(topologies)


def test_an_option_applies_where_its_topology_does() -> None:
    space = enumerated_space("recorded", with_topologies("resnet", "dca(k=2)", "dca(k=4)"))
    for candidate, point in space.members.items():
        assert space.options(point) == (["dca.k"] if "dca" in candidate.architecture.topology else [])
        assert space.candidate(point) == candidate


def test_blocks_that_differ_are_values_of_an_axis() -> None:
    other = BASE.with_fields({"heads": (2, 1)})
    space = enumerated_space("recorded", [BASE, other])
    assert dict(space.axes) == {"blocks": ("", "heads=2/1")}
    assert space.point(Candidate(other)) == {"blocks": "heads=2/1"}


def test_a_single_architecture_is_a_space_with_an_axis() -> None:
    assert dict(enumerated_space("recorded", [BASE]).axes) == {"depth": (4,)}
    with raises("missing-value", space="recorded"):
        enumerated_space("recorded", [])
    with raises("unsupported", option="axis", value="heads", space="recorded"):
        enumerated_space("recorded", [BASE]).with_axes({"heads": (1, 2)})


def test_a_listed_space_may_have_many_combinations() -> None:
    members = [BASE.with_fields({"depth": n, "width": n, "hidden": n, "heads": n, "head_dim": n}) for n in range(1, 40)]
    space = enumerated_space("recorded", members)
    assert space.combinations > 200_000
    assert space.is_enumerable
    assert len(space) == 39
