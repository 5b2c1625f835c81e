import pytest

from search_spaces.architecture import Architecture
from search_spaces.catalog import SPACES
from search_spaces.errors import UserError
from search_spaces.space import SearchSpace
from search_spaces.topologies.registry import refusal

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=128)


@pytest.mark.parametrize("name", SPACES.names())
def test_every_member_of_a_named_space_can_be_built_and_stands_at_its_point(name: str) -> None:
    space = SPACES.load(name)(BASE)
    assert space.name == name
    assert space.base in space
    assert len(space) == len(set(space)) > 5
    for architecture, point in space.members.items():
        assert space.architecture(point) == architecture
        assert refusal(architecture) is None


def test_an_option_axis_exists_only_for_its_topology() -> None:
    space = SearchSpace("s", BASE, {"topology": ("resnet", "dca"), "dca.k": (1, 2)})
    assert sorted(architecture.topology for architecture in space) == ["dca(k=1)", "dca(k=2)", "resnet"]
    assert {frozenset(point) for point in space.members.values()} == {
        frozenset({"topology"}),
        frozenset({"topology", "dca.k"}),
    }


def test_what_a_topology_cannot_wire_is_not_in_the_space() -> None:
    space = SearchSpace("s", BASE, {"topology": ("resnet", "rmt"), "head_dim": (8, 12)})
    assert {(a.topology, a.head_dim) for a in space} == {("resnet", 8), ("resnet", 12), ("rmt", 8)}


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ({"depth": (1, 2)}, "is not in space"),
        ({"depth": (4, 4)}, "distinct"),
        ({"depth": ()}, "distinct"),
        ({"speed": (1,)}, "speed"),
        ({"dca.k": (1,)}, r"dca\.k"),
    ],
)
def test_a_wrong_space_says_what_is_wrong(axes: dict[str, tuple[int, ...]], says: str) -> None:
    with pytest.raises(UserError, match=says):
        SearchSpace("s", BASE, axes)


def test_head_dims_in_the_joint_space_need_not_divide_the_width() -> None:
    space = SPACES.load("joint")(BASE)
    assert any(a.heads * a.head_dim != a.width for a in space)
