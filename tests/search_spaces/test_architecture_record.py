import pickle
from dataclasses import asdict
from typing import Any

import pytest

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError

RECORD: dict[str, Any] = {"depth": 2, "width": 8, "hidden": 16, "heads": 2, "head_dim": 4, "topology": "dca(k=2)"}


def test_a_record_gives_the_architecture_that_was_recorded() -> None:
    architecture = Architecture(**RECORD)
    assert Architecture.from_record(asdict(architecture)) == architecture
    assert Architecture.from_record(asdict(architecture)).key == architecture.key


def test_what_a_record_leaves_out_has_its_default() -> None:
    assert Architecture.from_record({"depth": 2, "width": 8, "hidden": 16}) == Architecture(depth=2, width=8, hidden=16)


@pytest.mark.parametrize("change", [{"depth": 0}, {"heads": 0}, {"topology": "dca(k=2"}, {"model": "gone"}])
def test_a_record_is_not_judged(change: dict[str, Any]) -> None:
    architecture = Architecture.from_record(RECORD | change)
    assert asdict(architecture) == RECORD | {"model": "", "blocks": ""} | change
    assert len(architecture.key) == 10
    assert pickle.loads(pickle.dumps(architecture)) == architecture
    with pytest.raises(UserError):
        Architecture(**RECORD | change)


@pytest.mark.parametrize(("said", "text"), [("dca( k = 2 )", "dca(k=2)"), ("hyper(streams=4)", "hyper")])
def test_a_wiring_that_was_recorded_otherwise_has_the_one_text(said: str, text: str) -> None:
    assert Architecture.from_record(RECORD | {"topology": said}) == Architecture(**RECORD | {"topology": text})


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"depth": 2, "width": 8}, "needs 'hidden'"),
        (RECORD | {"depth": "2"}, "'depth' of an architecture must be an integer, got '2'"),
        (RECORD | {"depth": True}, "must be an integer, got True"),
        (RECORD | {"topology": None}, "'topology' of an architecture must be text"),
        (RECORD | {"glue": 1}, "has no field 'glue'"),
    ],
)
def test_what_is_no_architecture_is_refused(record: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Architecture.from_record(record)
