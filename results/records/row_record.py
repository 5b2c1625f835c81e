"""The JSON form of a Row: the type of each field, which msgspec checks."""

import re
from collections.abc import Mapping
from functools import reduce
from reprlib import Repr
from typing import Any, get_type_hints

import msgspec

from results.records.costs import Costs
from results.records.strict_json import BadRow
from search_spaces.support.errors import value_fields

Number = int | float

CostsRecord = msgspec.defstruct(
    "CostsRecord", [(name, kind, None) for name, kind in get_type_hints(Costs).items()], forbid_unknown_fields=True
)


class ProvenanceRecord(msgspec.Struct):
    """Fields of provenance that have columns. Others are free."""

    started: str | None = None
    wall_s: Number | None = None
    commit: str | None = None
    command: str | None = None
    device: str | None = None
    threads: int | None = None
    versions: dict[str, str] = {}


class PointRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A point of a curve."""

    step: int
    metrics: dict[str, Number]
    seconds: Number = 0


class RowRecord(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A Row. Fields without a default must be there."""

    task: str
    task_version: int
    architecture: dict[str, Any]
    preset: str
    seed: int
    status: str
    row_version: int
    data: str | None = None
    recipe: dict[str, Any] = {}
    start: str | None = None
    error: str | None = None
    space: str | None = None
    steps: int = 0
    directions: dict[str, str] = {}
    metrics: dict[str, Number] = {}
    test: dict[str, Number] = {}
    extra_metrics: dict[str, Number] = {}
    speeds: dict[str, Number] = {}
    costs: CostsRecord = msgspec.field(default_factory=CostsRecord)  # type: ignore[valid-type]
    profile: dict[str, Number | str] = {}
    curve: list[PointRecord] = []
    provenance: ProvenanceRecord = msgspec.field(default_factory=ProvenanceRecord)


_MANDATORY = [field.name for field in msgspec.structs.fields(RowRecord) if field.required]
_WRONG_TYPE = re.compile(r"Expected `(.+)`, got `.+`(?: - at `\$\.?(.*)`)", re.DOTALL)
_WORDS = {"int": "an integer", "number": "a number", "str": "text", "object": "an object", "array": "a list"}
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def check_record(record: Any) -> None:
    """Raise BadRow for a field of a Row's record that is missing, unknown or of the wrong type."""
    try:
        msgspec.convert(record, RowRecord)
    except msgspec.ValidationError as error:
        raise _bad_row(record, str(error)) from None


def _bad_row(record: Any, message: str) -> BadRow:
    """Return the error of a record that msgspec refused."""
    if not isinstance(record, dict):
        reason = f"it must be an object, got {_SHORT.repr(record)}"
        return BadRow("wrong-type", reason, option="it", **value_fields(record))
    for name in _MANDATORY:
        if name not in record:
            return BadRow("missing-value", f"field {name!r} is missing", option=name)
    costs = record.get("costs")
    for subject, names, kind in (("it", record, RowRecord), ("'costs'", costs, CostsRecord)):
        unknown = [name for name in names if name not in kind.__struct_fields__] if isinstance(names, dict) else []
        if unknown:
            reason = f"{subject} has an unknown field {_SHORT.repr(unknown[0])}"
            choices = kind.__struct_fields__
            return BadRow("unknown-name", reason, option="field", value=unknown[0], choices=choices)
    return _wrong_type(record, message)


def _wrong_type(record: Mapping[str, Any], message: str) -> BadRow:
    """Return the error of a record in which msgspec found a field, or an element of one, of the wrong type."""
    match = _WRONG_TYPE.fullmatch(message)
    path = match[2] if match is not None else message.rpartition("`$.")[2].rstrip("`")
    names = path.partition("[")[0].split(".")
    value = reduce(lambda values, name: values[name], names, record)
    kinds = "" if match is None else match[1].replace("int | float", "number").split(" | ")
    words = " or ".join(_WORDS.get(kind, kind) for kind in kinds) or "a point with an integer step and metrics"
    subject = f"each value of {names[-1]!r}" if path.endswith("[...]") else repr(path.removeprefix("provenance."))
    reason = f"{subject} must be {words}, got {_SHORT.repr(value)}"
    return BadRow("wrong-type", reason, option=names[-1], **value_fields(value))
