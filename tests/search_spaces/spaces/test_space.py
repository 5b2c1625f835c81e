import re
from dataclasses import replace
from typing import Any

import pytest

import search_spaces.spaces.space
from expect import raises, warns
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.catalog import SPACES, get_space, joint, topology
from search_spaces.spaces.space import Candidate, SearchSpace
from search_spaces.support.errors import Kind
from search_spaces.support.registry import Registry
from search_spaces.topologies.registry import TOPOLOGIES, incompatibility_reason
from search_spaces.topologies.single_stream import ResNet

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=128)


@pytest.mark.parametrize("name", SPACES.names())
def test_every_member_of_a_named_space_builds_and_matches_its_point(name: str) -> None:
    space = SPACES.load(name)(BASE)
    assert space.name == name
    assert Candidate(space.base) in space
    if not space.is_enumerable:
        base = space.point(Candidate(space.base)) or {}
        second = {axis: values for axis, values in space.axes.items() if axis.endswith(":2")}
        few = {axis: (values[0], base[axis], values[-1]) for axis, values in second.items() if axis != "topology:2"}
        rest_of_axes = {axis: (value,) for axis, value in base.items() if axis not in second}
        space = replace(space.with_axes({**second, **few, **rest_of_axes}), name=name)
    assert len(space) == len(set(space)) > 5
    for candidate, point in space.members.items():
        assert space.candidate(point) == candidate
        assert space.point(candidate) == point
        assert candidate in space
        assert incompatibility_reason(candidate.architecture) is None


def test_a_space_that_raises_is_reported_with_file_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "load", lambda self, name: lambda base: 1 / 0)
    with raises("bad-plugin", option="space", value="joint") as caught:
        get_space("joint", BASE)
    assert re.search(r"test_space\.py, line \d+$", caught.value.fields["where"])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_space_that_gives_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "load", lambda self, name: lambda base: [base])
    with raises("bad-plugin", option="space", value="joint", type="list"):
        get_space("joint", BASE)


def test_an_option_axis_exists_only_for_its_topology() -> None:
    space = SearchSpace("s", BASE, {"topology": ("resnet", "dca"), "dca.k": (1, 2)})
    assert sorted(architecture.topology for architecture in space.architectures) == ["dca(k=1)", "dca(k=2)", "resnet"]
    assert {frozenset(point) for point in space.members.values()} == {
        frozenset({"topology"}),
        frozenset({"topology", "dca.k"}),
    }


def test_invalid_architectures_are_not_in_the_space() -> None:
    space = SearchSpace("s", BASE, {"topology": ("resnet", "rmt"), "head_dim": (8, 12)})
    assert {(a.topology, a.head_dim) for a in space.architectures} == {("resnet", 8), ("resnet", 12), ("rmt", 8)}


@pytest.mark.parametrize(
    ("axes", "kind", "fields"),
    [
        ({"depth": (1, 2)}, "mismatch", {"option": "base", "axes": ("depth",)}),
        ({"depth": (4, 4)}, "duplicate", {"option": "depth", "value": 4}),
        ({"depth": ()}, "missing-value", {"option": "depth"}),
        ({"speed": (1,)}, "unknown-name", {"option": "axis", "value": "speed"}),
        ({"dca.k": (1,)}, "unknown-name", {"option": "axis", "value": "dca.k"}),
        ({"recipe.": (1,)}, "unknown-name", {"option": "axis", "value": "recipe."}),
        ({"recipe.optimizer.lr": (1,)}, "unknown-name", {"option": "axis", "value": "recipe.optimizer.lr"}),
        ({"recipe.lr": (0.1, 0.1)}, "duplicate", {"option": "recipe.lr", "value": 0.1}),
    ],
)
def test_wrong_axes_of_a_space_are_refused(
    axes: dict[str, tuple[int, ...]], kind: Kind, fields: dict[str, Any]
) -> None:
    with raises(kind, space="s", **fields):
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


def test_each_architecture_is_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Architecture] = []
    monkeypatch.setattr(
        search_spaces.spaces.space, "incompatibility_reason", lambda architecture: calls.append(architecture)
    )
    copy = replace(RECIPES, name="again")
    assert calls == [BASE]  # members are listed lazily
    calls.clear()
    assert len(copy) == 18
    assert len(calls) == len(set(calls)) == 3


def test_the_base_comes_first_with_the_middle_of_numbers_and_the_first_of_words() -> None:
    assert RECIPES.first == Candidate(BASE, (("lr", 0.2), ("schedule", "flat")))
    assert RECIPES.first in RECIPES
    assert SearchSpace("s", BASE, {}).first == Candidate(BASE)


def test_a_candidate_without_settings_has_the_key_of_its_architecture() -> None:
    assert Candidate(BASE).key == BASE.key
    assert str(Candidate(BASE)) == str(BASE)
    warm = Candidate(BASE, (("lr", 0.1), ("warm", True)))
    assert str(warm) == f"{BASE},recipe.lr=0.1,recipe.warm=true"
    assert len({warm.key, BASE.key, Candidate(BASE, (("lr", 0.2), ("warm", True))).key}) == 3
    assert warm.key == "03c264228c"  # keys of stored rows


def test_with_axes_adds_or_replaces_axes() -> None:
    space = SearchSpace("s", BASE, {"depth": (2, 4), "heads": (4,)})
    wider = space.with_axes({"depth": (4, 8), "recipe.lr": (0.1, 0.2)})
    assert wider.axes == {"depth": (4, 8), "heads": (4,), "recipe.lr": (0.1, 0.2)}
    assert wider.name == "s depth=4,8 recipe.lr=0.1,0.2"  # other axes make another study
    assert space.with_axes({}) is space
    with raises("mismatch", option="base", axes=("depth",), space="s depth=8"):
        space.with_axes({"depth": (8,)})
    with raises("mismatch", option="base", axes=("depth",), value=str(BASE)):
        space.with_axes({"depth": (8, 16), "recipe.lr": (0.1, 0.2)})
    with raises("unknown-name", option="axis", value="speed"):
        space.with_axes({"speed": (8,)})


def test_options_of_topologies_that_are_left_out_go_with_them() -> None:
    axes = {"topology": ("resnet", "dca", "hyper"), "dca.k": (1, 2), "hyper.streams": (2, 4), "depth": (2, 4)}
    space = SearchSpace("s", BASE, axes)
    assert space.with_axes({"topology": ("resnet", "hyper")}).axes.keys() == {"topology", "hyper.streams", "depth"}
    assert space.with_axes({"depth": (4,)}).axes.keys() == axes.keys()
    with raises("unknown-name", option="axis", value="dca.k"):
        space.with_axes({"topology": ("resnet",), "dca.k": (1, 2)})


def test_topologies_with_fixed_options_are_values_of_an_axis() -> None:
    base = replace(BASE, topology="dca(per_entry=true)")
    space = SearchSpace("s", base, {"topology": ("dca(per_entry=true)", "resnet")})
    assert {a.topology for a in space.architectures} == {"dca(per_entry=true)", "resnet"}
    with raises("mismatch", option="base", axes=()):
        space.with_axes({"dca.k": (1, 2)})
    space = SearchSpace("s", replace(BASE, topology="dca(k=1)"), {"dca.k": (1, 2)})
    assert [a.topology for a in space.architectures] == ["dca(k=1)", "dca(k=2)"]


def test_the_named_spaces_have_the_topologies_and_options_that_classes_declare() -> None:
    classes = {name: TOPOLOGIES.load(name) for name in TOPOLOGIES.names()}
    for space, every in ((topology(BASE), True), (joint(BASE), False)):
        names = sorted(name for name, kind in classes.items() if (every or kind.in_joint_spaces) and name != "resnet")
        assert list(space.axes["topology"]) == ["resnet", *names]
        options = {axis: values for axis, values in space.axes.items() if "." in axis}
        assert options == {
            f"{name}.{option}": values for name in names for option, values in classes[name].axes.items()
        }
    assert {"dca.k": (1, 2, 4), "ancre.temperature": (0.01, 0.1)}.items() <= options.items()
    assert {"rmt.keys": (16, 32), "hyper.streams": (2, 4)}.items() <= options.items()
    assert {"none", "mhc", "attnres"} <= set(topology(BASE).axes["topology"]) - set(joint(BASE).axes["topology"])


class Wrong(ResNet):
    """A topology that breaks its contract."""


@pytest.mark.parametrize(
    ("entry", "attributes", "fields"),
    [
        (Wrong, {"axes": {"speed": (1, 2)}}, {"cause": "unknown-name", "option": "option", "value": "speed"}),
        (Wrong, {"axes": {"speed": [1, 2]}}, {"cause": "bad-plugin", "option": "speed", "type": "list"}),
        (Wrong, {"axes": {"speed": (1, 1)}}, {"cause": "bad-plugin", "option": "speed", "type": "tuple"}),
        (
            Wrong,
            {"incompatibility_reason": classmethod(lambda cls, architecture, options: 1 / 0)},
            {"cause": "bad-plugin"},
        ),
        (Wrong, {"__abstractmethods__": frozenset({"write"})}, {"cause": "bad-plugin", "needs": ("write",)}),
        (Architecture, {}, {"cause": "bad-plugin"}),
    ],
)
def test_a_broken_topology_is_left_out_of_a_space_and_named(
    entry: type, attributes: dict[str, Any], fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in attributes.items():
        monkeypatch.setattr(entry, name, value, raising=False)
    load = Registry.load
    monkeypatch.setattr(Registry, "load", lambda self, name: entry if name == "svformer" else load(self, name))
    with warns("skipped", topology="svformer", **fields):
        space = topology(BASE)
    assert "svformer" not in space.axes["topology"]
    assert "dca" in space.axes["topology"]


def test_a_topology_that_is_not_searched_is_still_built_by_name() -> None:
    assert "none" not in joint(BASE).axes["topology"]
    assert incompatibility_reason(replace(BASE, topology="none")) is None
