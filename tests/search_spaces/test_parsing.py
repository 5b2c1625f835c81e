"""From what people type to architectures and axes."""

import pytest

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from search_spaces.parsing import parse_architecture, parse_axes, parse_axis
from search_spaces.spec import Scalar

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=128)


def test_the_text_reads_back() -> None:
    architecture = parse_architecture("depth=7,heads=16,topology=dca(k=2)", BASE)
    assert parse_architecture(str(architecture), BASE) == architecture


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("depht=7", "depth"),
        ("depth", "FIELD=VALUE"),
        ("depth=7,depth=8", "twice"),
        ("depth=seven", "integer"),
        ("depth=0", "at least 1"),
        ("heads=0", "both 0"),
        ("topology=dca(k", "NAME"),
        ("model=xcit_medium_24_p16_224,head_dim=64", "head_dim=0, topology=resnet, got heads="),
        ("model=xcit_medium_24_p16_224,topology=dca", "topology=resnet, got"),
    ],
)
def test_a_wrong_architecture_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
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
def test_an_axis_is_read_with_its_values_by_their_kind(text: str, name: str, values: tuple[Scalar, ...]) -> None:
    found, read = parse_axis(text)
    assert (found, read) == (name, values)
    assert [type(value) for value in read] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("depth", "NAME=VALUE,VALUE"),
        ("depth=", "NAME=VALUE,VALUE"),
        ("=1,2", "NAME=VALUE,VALUE"),
        ("depth=2,4,2", "value 2 stands twice"),
        ("recipe.lr=1e-3,0.001", "value 0.001 stands twice"),
        ("dca.k=inf", "finite"),
        ("dca.k=1e-3;", "expected a number"),
        ("topology=dca(k", "NAME"),
    ],
)
def test_a_wrong_axis_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        parse_axis(text)
    assert "\n" not in str(caught.value)


def test_several_axes_are_read_and_one_that_stands_twice_is_refused() -> None:
    assert parse_axes(["depth=2,4", "recipe.lr=0.1"]) == {"depth": (2, 4), "recipe.lr": (0.1,)}
    assert parse_axes([]) == {}
    with pytest.raises(UserError, match="axis 'depth' stands twice"):
        parse_axes(["depth=2", "depth=4"])
