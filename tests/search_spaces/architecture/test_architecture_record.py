import pickle
from dataclasses import asdict
from typing import Any

import pytest

from expect import raises
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import Kind

RECORD: dict[str, Any] = {"depth": 2, "width": 8, "hidden": 16, "heads": 2, "head_dim": 4, "topology": "dca(k=2)"}
RECORD |= {"model": "", "blocks": ""}


def test_a_record_gives_the_architecture_that_was_recorded() -> None:
    architecture = Architecture(**RECORD)
    assert Architecture.from_record(asdict(architecture)) == architecture
    assert Architecture.from_record(asdict(architecture)).key == architecture.key


@pytest.mark.parametrize(
    ("change", "kind", "fields"),
    [
        ({"depth": 0}, "out-of-range", {"option": "depth", "value": 0, "least": 1}),
        ({"heads": 0}, "conflict", {"option": "heads", "value": 0, "head_dim": RECORD["head_dim"]}),
        ({"topology": "dca(k=2"}, "bad-syntax", {"value": "dca(k=2"}),
        ({"model": "gone"}, "conflict", {"option": "model", "value": "gone"}),
    ],
)
def test_a_record_is_read_without_validation(change: dict[str, Any], kind: Kind, fields: dict[str, Any]) -> None:
    architecture = Architecture.from_record(RECORD | change)
    assert asdict(architecture) == RECORD | change
    assert len(architecture.key) == 10
    assert pickle.loads(pickle.dumps(architecture)) == architecture
    with raises(kind, **fields):
        Architecture(**RECORD | change)


@pytest.mark.parametrize(
    ("record", "kind", "fields"),
    [
        ({"depth": 2, "width": 8}, "missing-value", {"option": "hidden"}),
        (RECORD | {"depth": "2"}, "wrong-type", {"option": "depth", "value": "2", "needs": "int"}),
        (RECORD | {"depth": True}, "wrong-type", {"option": "depth", "value": True, "needs": "int"}),
        (RECORD | {"topology": None}, "wrong-type", {"option": "topology", "value": None, "needs": "str"}),
        (RECORD | {"glue": 1}, "unknown-name", {"option": "field", "value": "glue"}),
    ],
)
def test_a_record_of_something_else_is_refused(record: dict[str, Any], kind: Kind, fields: dict[str, Any]) -> None:
    with raises(kind, **fields):
        Architecture.from_record(record)
