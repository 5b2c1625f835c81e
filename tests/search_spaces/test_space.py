from dataclasses import replace
from typing import Any

import pytest

import search_spaces.space
from search_spaces.architecture import Architecture
from search_spaces.catalog import SPACES, joint, space_named, topology
from search_spaces.errors import Notice, UserError
from search_spaces.registry import Registry
from search_spaces.space import Candidate, SearchSpace
from search_spaces.topologies.chain import ResNet
from search_spaces.topologies.registry import TOPOLOGIES, refusal

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=128)


@pytest.mark.parametrize("name", SPACES.names())
def test_every_member_of_a_named_space_can_be_built_and_stands_at_its_point(name: str) -> None:
    space = SPACES.load(name)(BASE)
    assert space.name == name
    assert Candidate(space.base) in space
    if not space.is_listed:
        base = space.point(Candidate(space.base)) or {}
        space = space.with_axes({axis: (base[axis],) for axis in space.axes if not axis.endswith(":2")})
        space = replace(space, name=name)
    assert len(space) == len(set(space)) > 5
    for candidate, point in space.members.items():
        assert space.candidate(point) == candidate
        assert space.point(candidate) == point
        assert candidate in space
        assert refusal(candidate.architecture) is None


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            lambda base: 1 / 0,
            r"'joint' could not be laid out around depth=4.*: ZeroDivisionError: .*test_space.py, line ",
        ),
        (lambda base: [base], "'joint' must be a function from an Architecture to a SearchSpace, got "),
    ],
)
def test_a_space_that_fails_says_where(entry: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "load", lambda self, name: entry)
    with pytest.raises(UserError, match=says):
        space_named("joint", BASE)


def test_an_option_axis_exists_only_for_its_topology() -> None:
    space = SearchSpace("s", BASE, {"topology": ("resnet", "dca"), "dca.k": (1, 2)})
    assert sorted(architecture.topology for architecture in space.architectures) == ["dca(k=1)", "dca(k=2)", "resnet"]
    assert {frozenset(point) for point in space.members.values()} == {
        frozenset({"topology"}),
        frozenset({"topology", "dca.k"}),
    }


def test_what_a_topology_cannot_wire_is_not_in_the_space() -> None:
    space = SearchSpace("s", BASE, {"topology": ("resnet", "rmt"), "head_dim": (8, 12)})
    assert {(a.topology, a.head_dim) for a in space.architectures} == {("resnet", 8), ("resnet", 12), ("rmt", 8)}


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ({"depth": (1, 2)}, "is not in space"),
        ({"depth": (4, 4)}, "distinct"),
        ({"depth": ()}, "distinct"),
        ({"speed": (1,)}, "speed"),
        ({"dca.k": (1,)}, r"dca\.k"),
        ({"recipe.": (1,)}, r"recipe\.' of space"),
        ({"recipe.optimiser.lr": (1,)}, r"recipe\.optimiser\.lr"),
        ({"recipe.lr": (0.1, 0.1)}, "distinct"),
    ],
)
def test_a_wrong_space_says_what_is_wrong(axes: dict[str, tuple[int, ...]], says: str) -> None:
    with pytest.raises(UserError, match=says):
        SearchSpace("s", BASE, axes)


def test_head_dims_in_the_joint_space_need_not_divide_the_width() -> None:
    space = SPACES.load("joint")(BASE)
    assert any(a.heads * a.head_dim != a.width for a in space.architectures)


RECIPES = SearchSpace(
    "s",
    BASE,
    {
        "recipe.lr": (0.1, 0.2, 0.4),
        "topology": ("resnet", "dca"),
        "dca.k": (1, 2),
        "recipe.schedule": ("flat", "cosine"),
    },
)


def test_every_architecture_goes_with_every_recipe() -> None:
    assert len(RECIPES) == 3 * 3 * 2
    assert len(RECIPES.architectures) == 3
    expected = {
        (topology, (("lr", lr), ("schedule", schedule)))
        for topology in ("resnet", "dca(k=1)", "dca(k=2)")
        for lr in (0.1, 0.2, 0.4)
        for schedule in ("flat", "cosine")
    }
    assert {(candidate.architecture.topology, candidate.settings) for candidate in RECIPES} == expected
    for candidate, point in RECIPES.members.items():
        assert RECIPES.candidate(point) == candidate
        assert {point["recipe.lr"], point["recipe.schedule"]} == {value for _, value in candidate.settings}
        assert ("dca.k" in point) == candidate.architecture.topology.startswith("dca")


def test_whether_a_topology_can_wire_is_asked_once_for_each_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Architecture] = []
    monkeypatch.setattr(search_spaces.space, "refusal", lambda architecture: asked.append(architecture))
    again = replace(RECIPES, name="again")
    assert asked == [BASE]  # nothing is listed before it is asked for
    asked.clear()
    assert len(again) == 18
    assert len(asked) == len(set(asked)) == 3


def test_the_base_comes_first_with_the_middle_of_numbers_and_the_first_of_words() -> None:
    assert RECIPES.first == Candidate(BASE, (("lr", 0.2), ("schedule", "flat")))
    assert RECIPES.first in RECIPES
    assert SearchSpace("s", BASE, {}).first == Candidate(BASE)


def test_a_candidate_is_told_from_others_and_is_its_architecture_where_there_are_no_settings() -> None:
    assert Candidate(BASE).key == BASE.key
    assert str(Candidate(BASE)) == str(BASE)
    warm = Candidate(BASE, (("lr", 0.1), ("warm", True)))
    assert str(warm) == f"{BASE},recipe.lr=0.1,recipe.warm=true"
    assert len({warm.key, BASE.key, Candidate(BASE, (("lr", 0.2), ("warm", True))).key}) == 3
    assert warm.key == "03c264228c"  # stored rows are found by it


def test_axes_are_added_or_take_the_place_of_those_there_are() -> None:
    space = SearchSpace("s", BASE, {"depth": (2, 4), "heads": (4,)})
    wider = space.with_axes({"depth": (4, 8), "recipe.lr": (0.1, 0.2)})
    assert wider.axes == {"depth": (4, 8), "heads": (4,), "recipe.lr": (0.1, 0.2)}
    assert wider.name == "s depth=4,8 recipe.lr=0.1,0.2"  # a study with other axes is another study
    assert space.with_axes({}) is space
    with pytest.raises(UserError, match="is not in space"):
        space.with_axes({"depth": (8,)})
    with pytest.raises(UserError, match="The base has depth=4: add it to that axis, or change the base"):
        space.with_axes({"depth": (8, 16), "recipe.lr": (0.1, 0.2)})
    with pytest.raises(UserError, match="axis 'speed'"):
        space.with_axes({"speed": (8,)})


def test_options_go_with_the_topologies_that_are_left_out() -> None:
    axes = {"topology": ("resnet", "dca", "hyper"), "dca.k": (1, 2), "hyper.streams": (2, 4), "depth": (2, 4)}
    space = SearchSpace("s", BASE, axes)
    assert space.with_axes({"topology": ("resnet", "hyper")}).axes.keys() == {"topology", "hyper.streams", "depth"}
    assert space.with_axes({"depth": (4,)}).axes.keys() == axes.keys()
    with pytest.raises(UserError, match=r"axis 'dca\.k'"):
        space.with_axes({"topology": ("resnet",), "dca.k": (1, 2)})


def test_an_axis_of_options_applies_where_its_topology_is_with_fixed_options_too() -> None:
    base = replace(BASE, topology="dca(per_entry=true)")
    space = SearchSpace("s", base, {"topology": ("dca(per_entry=true)", "resnet")})
    assert {a.topology for a in space.architectures} == {"dca(per_entry=true)", "resnet"}
    with pytest.raises(UserError, match="is not in space"):
        space.with_axes({"dca.k": (1, 2)})
    one = SearchSpace("s", replace(BASE, topology="dca(k=1)"), {"dca.k": (1, 2)})
    assert [a.topology for a in one.architectures] == ["dca(k=1)", "dca(k=2)"]


def test_the_named_spaces_have_the_topologies_and_options_that_classes_declare() -> None:
    declared = {name: TOPOLOGIES.load(name) for name in TOPOLOGIES.names()}
    for space, every in ((topology(BASE), True), (joint(BASE), False)):
        searched = sorted(name for name, kind in declared.items() if (every or kind.searched) and name != "resnet")
        assert list(space.axes["topology"]) == ["resnet", *searched]
        options = {axis: values for axis, values in space.axes.items() if "." in axis}
        assert options == {
            f"{name}.{option}": values for name in searched for option, values in declared[name].axes.items()
        }
    assert {"dca.k": (1, 2, 4), "ancre.temperature": (0.01, 0.1)}.items() <= options.items()
    assert {"rmt.keys": (16, 32), "hyper.streams": (2, 4)}.items() <= options.items()
    assert {"none", "mhc", "attnres"} <= set(topology(BASE).axes["topology"]) - set(joint(BASE).axes["topology"])


class Wrong(ResNet):
    """A topology that says something which is not so."""


@pytest.mark.parametrize(
    ("entry", "attributes", "says"),
    [
        (Wrong, {"axes": {"speed": (1, 2)}}, "takes no options, got speed=1"),
        (Wrong, {"axes": {"speed": [1, 2]}}, "must be a tuple of distinct values"),
        (Wrong, {"axes": {"speed": (1, 1)}}, "must be a tuple of distinct values"),
        (Wrong, {"refusal": classmethod(lambda cls, architecture, options: 1 / 0)}, "could not be asked"),
        (Wrong, {"__abstractmethods__": frozenset({"write"})}, "lacks write"),
        (Architecture, {}, "must be a subclass of search_spaces.topologies.base.Topology"),
    ],
)
def test_a_broken_topology_is_passed_over_with_its_name_and_the_others_stay(
    entry: type, attributes: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in attributes.items():
        monkeypatch.setattr(entry, name, value, raising=False)
    known = Registry.load
    monkeypatch.setattr(Registry, "load", lambda self, name: entry if name == "svformer" else known(self, name))
    with pytest.warns(Notice, match=f"passed over: .*'svformer'.*{says}|passed over: .*'svformer' {says}"):
        space = topology(BASE)
    assert "svformer" not in space.axes["topology"]
    assert "dca" in space.axes["topology"]


def test_a_topology_that_is_not_searched_is_still_built_by_name() -> None:
    assert "none" not in joint(BASE).axes["topology"]
    assert refusal(replace(BASE, topology="none")) is None
