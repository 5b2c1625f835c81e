"""Architectures with different blocks: text, record, key and parts."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.parsing import parse_architecture
from search_spaces.support.errors import Kind

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=128)


def parse(text: str) -> Architecture:
    return parse_architecture(text, BASE)


def test_fields_that_differ_by_block_are_in_the_text_and_the_record() -> None:
    architecture = parse("hidden=64/32,heads=8/8/4/4,topology=dca( k=2 )/resnet")
    assert architecture.blocks == "heads=8/4,hidden=64/32"  # the shortest runs, in one order
    assert (architecture.heads, architecture.hidden, architecture.topology) == (8, 64, "dca(k=2)/resnet")
    assert [architecture.by_block("heads"), architecture.by_block("hidden"), architecture.by_block("head_dim")] == [
        (8, 8, 4, 4),
        (64, 64, 32, 32),
        (8,) * 4,
    ]
    assert str(architecture) == "depth=4,width=32,hidden=64/32,heads=8/4,head_dim=8,topology=dca(k=2)/resnet"
    assert parse(str(architecture)) == architecture
    assert Architecture.from_record(asdict(architecture)) == architecture
    assert Architecture.from_record(architecture.record()) == architecture


def test_equal_networks_are_equal_records_with_equal_keys() -> None:
    for text in ("heads=4/4", "hidden=128/128/128/128", "topology=resnet/resnet", "head_dim=8"):
        assert parse(text) == BASE, text
        assert parse(text).key == BASE.key == "83d6424056"
    assert parse("heads=1/1/2/2").key == parse("heads=1/2").key != parse("heads=2/1").key


def test_each_block_and_each_run_is_an_architecture_of_its_own() -> None:
    architecture = parse("heads=8/8/4/2,hidden=64/32,topology=dca/resnet")
    blocks = [architecture.at_block(b) for b in range(4)]
    assert [(b.heads, b.hidden, b.topology, b.depth, b.blocks) for b in blocks] == [
        (8, 64, "dca", 4, ""),
        (8, 64, "dca", 4, ""),
        (4, 32, "resnet", 4, ""),
        (2, 32, "resnet", 4, ""),
    ]
    first, second = architecture.segments
    assert first == replace(BASE, depth=2, heads=8, hidden=64, topology="dca")
    assert second == replace(BASE, depth=2, heads=4, hidden=32, blocks="heads=4/2")
    assert BASE.segments == (BASE,)
    assert BASE.at_block(3) is BASE


def test_changing_a_field_changes_all_blocks() -> None:
    architecture = parse("heads=8/4,hidden=64/32")
    assert architecture.with_fields({"heads": 2}) == parse("heads=2,hidden=64/32")
    assert architecture.with_fields({"heads": (2, 1), "hidden": 128}) == parse("heads=2/1")
    assert architecture.with_fields({"topology": "dca"}) == parse("heads=8/4,hidden=64/32,topology=dca")


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("heads=1/2/3", "mismatch", {"option": "heads", "value": (1, 2, 3), "depth": 4}),
        (
            "topology=dca/none/resnet",
            "mismatch",
            {"option": "topology", "value": ("dca", "none", "resnet")},
        ),
        ("heads=4/0", "out-of-range", {"option": "heads", "value": (4, 0), "least": 1}),
        ("hidden=4/", "bad-syntax", {"option": "hidden", "value": "4/"}),
        ("depth=2/4", "bad-syntax", {"option": "depth", "value": "2/4"}),
        ("topology=dca/", "bad-syntax", {"value": ""}),
        ("blocks=heads", "unknown-name", {"option": "field", "value": "blocks"}),
    ],
)
def test_impossible_blocks_are_refused(text: str, kind: Kind, fields: dict[str, Any]) -> None:
    with raises(kind, **fields):
        parse(text)


@pytest.mark.parametrize(
    ("blocks", "kind", "fields"),
    [
        ("heads=8/4", "mismatch", {"option": "heads", "value": 4, "blocks": (8, 4)}),
        ("depth=8/4", "unknown-name", {"option": "blocks", "value": "depth"}),
        ("heads=4/2,heads=4/2", "duplicate", {"option": "blocks", "value": "heads"}),
    ],
)
def test_blocks_that_contradict_the_fields_are_refused(blocks: str, kind: Kind, fields: dict[str, Any]) -> None:
    with raises(kind, **fields):
        replace(BASE, blocks=blocks)


def test_blocks_of_a_timm_model_cannot_differ() -> None:
    with raises("conflict", option="blocks", value="heads=8/4", model="xcit_medium_24_p16_224"):
        parse("model=xcit_medium_24_p16_224,heads=8/4")
