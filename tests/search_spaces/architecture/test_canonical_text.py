"""Equal topologies have one text, so each is trained once."""

import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import pytest

from expect import raises
from grouped import grouped
from search_spaces.architecture import canonical_text
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.canonical_text import with_defaults, without_defaults
from search_spaces.spaces.catalog import topology
from search_spaces.spaces.enumerated import enumerated_space
from search_spaces.spaces.space import Candidate, SearchSpace
from search_spaces.support.errors import Kind, UserError
from search_spaces.support.registry import Registry
from search_spaces.support.spec import Spec
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology
from search_spaces.topologies.single_stream import ResNet

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=64)


@dataclass(frozen=True)
class Options:
    """Options of a topology whose source does not declare them."""

    every: int = 2
    share: float = 0.5


class Otherwise(ResNet):
    """A topology whose options differ from the source of its name."""

    Options: ClassVar[type] = Options


def with_topology(text: str) -> Architecture:
    """The base with another topology."""
    return BASE.with_fields({"topology": text})


TEXTS = [
    ("hyper(streams=4)", "hyper"),
    ("hyper( dynamic = true )", "hyper"),
    ("hyper(streams=4,dynamic=false)", "hyper(dynamic=false)"),
    ("ancre(temperature=1e-2)", "ancre"),
    ("ancre(temperature=1)", "ancre(temperature=1.0)"),
    ("rmt(keys=32,values=32)", "rmt(values=32)"),
    ("dca(k=2)", "dca(k=2)"),
    ("hyper(streams=4)/resnet", "hyper/resnet"),
    ("hyper(streams=4)[:1]+resnet[1:]", "hyper[0:1]+resnet[1:4]"),
    ("stripes(every=2)", "stripes(every=2)"),  # not installed
]


def test_options_with_their_default_are_left_out() -> None:
    with grouped() as case:
        for spelling, text in TEXTS:
            with case(spelling):
                assert with_topology(spelling).topology == text
                assert with_topology(spelling) == with_topology(text)
                assert with_topology(spelling).key == with_topology(text).key


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("aggregation(every=true)", "wrong-type", True),
        ("hyper(streams=4.0)", "wrong-type", 4.0),
        ("hyper(flows=4)", "unknown-name", "flows"),
    ],
)
def test_a_wrong_value_of_an_option_is_not_left_out(text: str, kind: Kind, value: object) -> None:
    with raises(kind, value=value):
        resolve_topology(str(without_defaults(Spec.parse(text))))


def test_the_whole_and_the_shortest_text_name_the_same_options() -> None:
    with grouped() as case:
        for name in TOPOLOGIES.names():
            with case(name):
                spec = Spec(name)
                assert resolve_topology(str(with_defaults(spec))) == resolve_topology(name)
                assert without_defaults(with_defaults(spec)) == spec


def test_defaults_missing_in_the_source_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"dca": SimpleNamespace(Options=Options), "none": SimpleNamespace(), "rmt": SimpleNamespace(Options=int)}

    def load_it(name: str) -> SimpleNamespace:
        if name not in modules:
            raise UserError("bad-plugin", "it could not be imported")
        return modules[name]

    place = ("a_module_of_this_test", "AClass")  # defaults are cached by place
    monkeypatch.setattr(canonical_text, "option_defaults", lambda *_: None)
    monkeypatch.setattr(canonical_text, "TOPOLOGIES", SimpleNamespace(location=lambda _: place, load=load_it))
    assert str(without_defaults(Spec.parse("dca(every=2,share=1)"))) == "dca(share=1.0)"
    for text in ("none(k=2)", "rmt(keys=32)", "hyper(every=2)"):  # other text is unchanged
        assert str(without_defaults(Spec.parse(text))) == text
    modules["hyper"] = SimpleNamespace(Options=Options)  # which failed to import before
    assert str(without_defaults(Spec.parse("hyper(every=2)"))) == "hyper"


def test_a_topology_with_other_defaults_than_its_source_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "load", lambda self, name: Otherwise)
    with raises("bad-plugin", topology="hyper", defaults=(("streams", 4), ("dynamic", True))):
        resolve_topology("hyper")


def test_reading_a_topology_does_not_import_torch() -> None:
    code = (
        "import sys; from search_spaces.architecture.architecture import Architecture as A; "
        "print(A(depth=2, width=8, hidden=8, topology='hyper(streams=4)').topology, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["hyper", "False"]


def test_a_default_is_a_value_on_the_axis_of_its_option() -> None:
    space = topology(BASE)
    for streams in (2, 4):
        candidate = Candidate(with_topology(f"hyper(streams={streams})"))
        point = space.point(candidate)
        assert point == {"topology": "hyper", "hyper.streams": streams}
        assert space.candidate(point) == candidate
    assert len({member.architecture.key for member in space}) == len(space)


def test_values_of_a_topology_axis_are_shortened() -> None:
    space = SearchSpace("own", BASE, {"topology": ("resnet", "hyper(streams=4)")})
    assert space.axes == {"topology": ("resnet", "hyper")}
    runs = SearchSpace("own", BASE, {f"topology:{run}": ("resnet", "hyper(streams=4)") for run in (1, 2)})
    assert Candidate(with_topology("resnet/hyper(streams=4)")) in runs
    with raises("duplicate", option="topology", value="hyper"):
        SearchSpace("own", BASE, {"topology": ("resnet", "hyper", "hyper(streams=4)")})


def test_a_listed_space_has_a_default_beside_other_values() -> None:
    space = enumerated_space("own", [with_topology(text) for text in ("resnet", "hyper", "hyper(streams=2)")])
    assert space.axes == {"topology": ("resnet", "hyper"), "hyper.streams": (2, 4)}
    assert space.point(Candidate(with_topology("hyper"))) == {"topology": "hyper", "hyper.streams": 4}
