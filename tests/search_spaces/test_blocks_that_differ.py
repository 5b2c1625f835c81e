"""Architectures whose blocks are not alike: text, record, key and parts."""

from dataclasses import asdict, replace

import pytest

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from search_spaces.parsing import parse_architecture

BASE = Architecture(depth=4, width=32, heads=4, head_dim=8, hidden=128)


def parsed(text: str) -> Architecture:
    return parse_architecture(text, BASE)


def test_fields_stay_numbers_and_what_differs_is_said_beside_them() -> None:
    one = parsed("hidden=64/32,heads=8/8/4/4,topology=dca( k=2 )/resnet")
    assert one.blocks == "heads=8/4,hidden=64/32"  # the shortest runs, in one order
    assert (one.heads, one.hidden, one.topology) == (8, 64, "dca(k=2)/resnet")
    assert [one.each("heads"), one.each("hidden"), one.each("head_dim")] == [(8, 8, 4, 4), (64, 64, 32, 32), (8,) * 4]
    assert str(one) == "depth=4,width=32,hidden=64/32,heads=8/4,head_dim=8,topology=dca(k=2)/resnet"
    assert parsed(str(one)) == one == Architecture.from_record(asdict(one)) == Architecture.from_record(one.record())
    assert "blocks" in one.record()
    assert "blocks" not in BASE.record()


@pytest.mark.parametrize("text", ["heads=4/4", "hidden=128/128/128/128", "topology=resnet/resnet", "head_dim=8"])
def test_equal_networks_are_equal_records_with_equal_keys(text: str) -> None:
    assert parsed(text) == BASE
    assert parsed(text).key == BASE.key == "83d6424056"
    assert parsed("heads=1/1/2/2").key == parsed("heads=1/2").key != parsed("heads=2/1").key


def test_every_block_and_every_run_is_an_architecture_whose_blocks_are_alike() -> None:
    one = parsed("heads=8/8/4/2,hidden=64/32,topology=dca/resnet")
    blocks = [one.at(b) for b in range(4)]
    assert [(b.heads, b.hidden, b.topology, b.depth, b.blocks) for b in blocks] == [
        (8, 64, "dca", 4, ""),
        (8, 64, "dca", 4, ""),
        (4, 32, "resnet", 4, ""),
        (2, 32, "resnet", 4, ""),
    ]
    first, second = one.runs
    assert first == replace(BASE, depth=2, heads=8, hidden=64, topology="dca")
    assert second == replace(BASE, depth=2, heads=4, hidden=32, blocks="heads=4/2")
    assert BASE.runs == (BASE,)
    assert BASE.at(3) is BASE


def test_a_change_of_a_field_is_of_all_blocks() -> None:
    one = parsed("heads=8/4,hidden=64/32")
    assert one.changed({"heads": 2}) == parsed("heads=2,hidden=64/32")
    assert one.changed({"heads": (2, 1), "hidden": 128}) == parsed("heads=2/1")
    assert one.changed({"topology": "dca"}) == parsed("heads=8/4,hidden=64/32,topology=dca")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("heads=1/2/3", "heads has 3 runs of blocks, 1/2/3, which must divide the depth, got depth=4"),
        ("topology=dca/none/resnet", "topology has 3 runs of blocks, .* divide the depth"),
        ("heads=4/0", "heads of each block must be at least 1, got 4/0"),
        ("hidden=4/", "hidden must be an integer, or several as in 8/4, got '4/'"),
        ("depth=2/4", "depth must be an integer"),
        ("topology=dca/", "expected NAME"),
        ("blocks=heads", "unknown architecture field 'blocks'"),
    ],
)
def test_what_is_no_architecture_says_why(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        parsed(text)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"blocks": "heads=8/4"}, "heads must be the first block's of 8/4, got 4"),
        ({"blocks": "depth=8/4"}, "blocks may differ in each of heads, head_dim, hidden"),
        ({"blocks": "heads=4/2,heads=4/2"}, "blocks may differ in each"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(change: dict[str, str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        replace(BASE, **change)  # type: ignore[arg-type]


def test_a_model_of_timms_has_blocks_that_are_alike() -> None:
    with pytest.raises(UserError, match="are alike, got heads=8/4"):
        parsed("model=xcit_medium_24_p16_224,heads=8/4")
