"""Text to architectures and axes."""

from typing import Any

import pytest

from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.parsing import parse_architecture, parse_axes, parse_axis
from search_spaces.support.errors import Kind
from search_spaces.support.spec import Scalar

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=128)


def test_the_text_of_an_architecture_reads_back() -> None:
    architecture = parse_architecture("depth=7,heads=16,topology=dca(k=2)", BASE)
    assert parse_architecture(str(architecture), BASE) == architecture


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("depht=7", "unknown-name", {"value": "depht", "nearest": "depth"}),
        ("depth", "bad-syntax", {"option": "field", "value": "depth"}),
        ("depth=7,depth=8", "duplicate", {"option": "field", "value": "depth"}),
        ("depth=seven", "bad-syntax", {"option": "depth", "value": "seven"}),
        ("depth=0", "out-of-range", {"option": "depth", "value": 0, "least": 1}),
        ("depth=10001", "out-of-range", {"option": "depth", "value": 10001, "most": 10**4}),
        ("heads=0", "conflict", {"option": "heads", "value": 0, "head_dim": 8}),
        ("topology=dca(k", "bad-syntax", {"value": "dca(k"}),
        (
            "model=xcit_medium_24_p16_224,head_dim=64",
            "conflict",
            {"option": "model", "heads": 8, "head_dim": 64, "topology": "resnet"},
        ),
        (
            "model=xcit_medium_24_p16_224,topology=dca",
            "conflict",
            {"option": "model", "heads": 8, "head_dim": 0, "topology": "dca"},
        ),
    ],
)
def test_a_wrong_architecture_is_refused(text: str, kind: Kind, fields: dict[str, Any]) -> None:
    with raises(kind, **fields):
        parse_architecture(text, BASE)


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("depth=8,2,4", "depth", (2, 4, 8)),
        (" recipe.lr = 1e-3 , 1e-4 ", "recipe.lr", (1e-4, 1e-3)),
        ("recipe.decay=0,0.5", "recipe.decay", (0, 0.5)),
        ("recipe.schedule=linear,cosine", "recipe.schedule", ("linear", "cosine")),
        ("recipe.nesterov=true,false", "recipe.nesterov", (True, False)),
        ("recipe.precision=32-true,bf16-mixed", "recipe.precision", ("32-true", "bf16-mixed")),
        ("recipe.betas=0.9:0.95,(0.9,0.99)", "recipe.betas", ("0.9:0.95", "(0.9,0.99)")),
        ("dca.k=4,1", "dca.k", (1, 4)),
        ("topology=resnet,dca( per_entry=true , k=2)", "topology", ("resnet", "dca(k=2,per_entry=true)")),
        ("model=vit_tiny_patch16_224", "model", ("vit_tiny_patch16_224",)),
    ],
)
def test_values_of_an_axis_keep_their_types_and_are_sorted(text: str, name: str, values: tuple[Scalar, ...]) -> None:
    axis, read = parse_axis(text)
    assert (axis, read) == (name, values)
    assert [type(value) for value in read] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("depth", "bad-syntax", {"option": "axis", "value": "depth"}),
        ("depth=", "bad-syntax", {"option": "axis", "value": "depth="}),
        ("=1,2", "bad-syntax", {"option": "axis", "value": "=1,2"}),
        ("depth=2,4,2", "duplicate", {"option": "depth", "value": "2"}),
        ("recipe.lr=1e-3,0.001", "duplicate", {"option": "recipe.lr", "value": "0.001"}),
        ("dca.k=inf", "out-of-range", {"value": "inf"}),
        ("dca.k=1e-3;", "bad-syntax", {"value": "1e-3;"}),
        ("topology=dca(k", "bad-syntax", {"value": "dca(k"}),
    ],
)
def test_a_wrong_axis_is_refused(text: str, kind: Kind, fields: dict[str, Any]) -> None:
    with raises(kind, **fields):
        parse_axis(text)


def test_an_axis_given_twice_is_refused() -> None:
    assert parse_axes(["depth=2,4", "recipe.lr=0.1"]) == {"depth": (2, 4), "recipe.lr": (0.1,)}
    assert parse_axes([]) == {}
    with raises("duplicate", option="axis", value="depth"):
        parse_axes(["depth=2", "depth=4"])
