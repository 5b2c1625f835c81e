from typing import Any

import pytest

from expect import raises
from search_spaces.support.errors import Kind
from search_spaces.support.spec import Spec, split_top_level


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("resnet", "resnet"),
        (" dca ( k = 2 ) ", "dca(k=2)"),
        ("ancre(temperature=0.010,direction=outgoing)", "ancre(direction=outgoing,temperature=0.01)"),
        ("hyper(streams=2, dynamic=false)", "hyper(dynamic=false,streams=2)"),
        ("a()", "a"),
    ],
)
def test_a_spec_has_one_canonical_text_that_reads_back(text: str, canonical: str) -> None:
    spec = Spec.parse(text)
    assert str(spec) == canonical
    assert Spec.parse(canonical) == spec


def test_options_keep_their_types() -> None:
    options = Spec.parse("x(a=1,b=1.5,c=true,d=word,e=-2)").options
    assert {name: (type(value), value) for name, value in options.items()} == {
        "a": (int, 1),
        "b": (float, 1.5),
        "c": (bool, True),
        "d": (str, "word"),
        "e": (int, -2),
    }


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("", "bad-syntax", {"value": ""}),
        ("1a", "bad-syntax", {"value": "1a"}),
        ("a(", "bad-syntax", {"value": "a("}),
        ("a)", "bad-syntax", {"value": "a)"}),
        ("a(b)", "bad-syntax", {"value": "b", "text": "a(b)"}),
        ("a(b=)", "bad-syntax", {"value": "b=", "text": "a(b=)"}),
        ("a(=1)", "bad-syntax", {"value": "=1", "text": "a(=1)"}),
        ("a(b=1,b=2)", "duplicate", {"option": "option", "value": "b"}),
        ("a(b=nan)", "out-of-range", {"value": "nan"}),
        ("a(b=inf)", "out-of-range", {"value": "inf"}),
        ("a(b=9223372036854775808)", "out-of-range", {"value": "9223372036854775808", "most": 2**63 - 1}),
        ("a;b", "bad-syntax", {"value": "a;b"}),
    ],
)
def test_a_text_that_is_no_spec_is_refused(text: str, kind: Kind, fields: dict[str, Any]) -> None:
    with raises(kind, **fields):
        Spec.parse(text)


def test_commas_inside_brackets_do_not_split() -> None:
    assert split_top_level("a=1,topology=x(b=1,c=2),d") == ["a=1", "topology=x(b=1,c=2)", "d"]
