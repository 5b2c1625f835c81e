"""The types of a Row's JSON record: each mistake is reported by field, whatever its names are."""

import json
from typing import Any

import pytest

from expect import check, raises
from results.records.row import Row
from results.records.row_record import RowRecord, check_record
from results.records.strict_json import BadRow

MakeRow = Any


@pytest.fixture
def record(make_row: MakeRow) -> dict[str, Any]:
    """The record of a valid Row."""
    return dict(json.loads(make_row().to_json()))


def test_record_has_the_fields_of_a_row(record: dict[str, Any]) -> None:
    check_record(record)
    assert record.keys() == set(RowRecord.__struct_fields__) == set(Row.__dataclass_fields__)


def test_names_that_look_like_a_path_are_refused(record: dict[str, Any]) -> None:
    for name in ("`", "x` - at `$.seed", "x` - at `$.curve[0]", "a.b", "\n", ""):
        with pytest.raises(BadRow) as caught:
            check_record({**record, name: 1})
        check(caught.value, "unknown-name", option="field", value=name)
        assert len(str(caught.value)) < 200


def test_mistakes_inside_elements_name_the_field(record: dict[str, Any]) -> None:
    for field, value in (("curve", [{"step": 1}]), ("curve", [3]), ("metrics", {"a": "1"}), ("directions", {"a": 1})):
        with raises("wrong-type", option=field, type=type(value).__name__):
            check_record({**record, field: value})
    with raises("wrong-type", option="versions"):
        check_record({**record, "provenance": {"versions": {"torch": 2}}})


def test_provenance_may_have_fields_of_its_own(record: dict[str, Any]) -> None:
    check_record({**record, "provenance": {"anything": [1, {"a": None}]}})


def test_a_record_is_an_object() -> None:
    for value in (3, [], None, "x"):
        with raises("wrong-type", option="it"):
            check_record(value)
