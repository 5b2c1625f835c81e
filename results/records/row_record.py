"""The JSON form of a Row: the type of each field, which msgspec checks."""

import re
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


_MESSAGE = re.compile(
    r"(?:Expected `(?P<expected>.+)`, got `.+?`|Object missing required field `(?P<missing>.+?)`"
    r"|Object contains unknown field `(?P<unknown>.*?)`)(?: - at `\$\.?(?P<path>.*)`)?",
    re.DOTALL,
)
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def check_record(record: Any) -> None:
    """Raise BadRow for the first field of a Row's record that is missing, unknown or of the wrong type."""
    try:
        msgspec.convert(record, RowRecord)
    except msgspec.ValidationError as error:
        raise _bad_row(record, str(error)) from None


def _bad_row(record: Any, message: str) -> BadRow:
    """Return the error for a message of msgspec."""
    match = _MESSAGE.fullmatch(message)
    assert match is not None, message
    path, missing, unknown = match["path"] or "", match["missing"], match["unknown"]
    names = path.partition("[")[0].split(".") if path else []
    subject, option = (repr(names[-1]), names[-1]) if names else ("it", "it")
    if "[" in path:  # in an element, which messages do not show: it may be long
        reason = message.partition(" - at ")[0].replace("`", "")
        return BadRow("wrong-type", f"{path!r} is wrong: {reason}", option=option)
    if missing is not None:
        return BadRow("missing-value", f"{subject} has no {missing!r}", option=missing)
    if unknown is not None:
        choices = (CostsRecord if names else RowRecord).__struct_fields__
        reason = f"{subject} has an unknown field {_SHORT.repr(unknown)}"
        return BadRow("unknown-name", reason, option="field", value=unknown, choices=choices)
    value = reduce(dict.__getitem__, names, record)
    reason = f"{subject} must be {match['expected']}, got {_SHORT.repr(value)}"
    return BadRow("wrong-type", reason, option=option, **value_fields(value))
