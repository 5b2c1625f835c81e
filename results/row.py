"""What one evaluation found: a record that outlives the code that made it, lossless as a line of JSON."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from html import escape
from typing import Any, Literal, NotRequired, TypedDict

from results.columns import COUNTS, FIRST, LAST, PROFILE, PROVENANCE, SHAPE, place
from results.columns import PREFIXES as PREFIXES
from results.columns import RESERVED as RESERVED
from results.columns import is_reserved as is_reserved
from results.costs import Costs as Costs
from results.strict_json import (
    INTEGER,
    JSON,
    MAYBE_INTEGER,
    MAYBE_NUMBER,
    MAYBE_TEXT,
    MOST_LEVELS,
    NAMES,
    NUMBERS,
    OBJECT,
    POINTS,
    SCALARS,
    TEXT,
    TEXTS,
    Kind,
    parse,
    plain,
    shaped,
)
from results.strict_json import BadRow as BadRow
from results.upgrade import ROW_VERSION, upgraded
from search_spaces.architecture import Architecture

Direction = Literal["max", "min"]
Status = Literal["complete", "pruned", "over-budget", "failed"]


class CurvePoint(TypedDict):
    """A point of a curve: the metrics stand apart, so that one named "step" hides nothing.

    Attributes:
        step: Optimiser steps taken.
        metrics: Metric -> value on the validation split.
        seconds: Of training until then, where that was measured.
    """

    step: int
    metrics: Mapping[str, float]
    seconds: NotRequired[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One architecture on one task. No group of values can hide another: see `columns`.

    Attributes:
        task: Name of the task.
        task_version: Version of the task; rows of different versions are not comparable.
        data: Fingerprint of the data; rows of different data are not comparable.
        architecture: What was evaluated.
        preset: The task's preset that the recipe began with.
        recipe: How it was trained: every setting -> its value, as JSON; tuples become lists, infinity text.
        seed: What initialisation, data order and augmentation were drawn with.
        start: Fingerprint of the weights that training began with; None where they were drawn.
        status: How the evaluation ended.
        error: Why it failed, in one line; None where it did not.
        space: Name of the search space, or None where an architecture was evaluated by itself.
        steps: Optimiser steps taken.
        directions: The task's metrics -> whether more or less of it is better.
        metrics: Metric -> value on the validation split; `<metric>_se` is its standard error.
        test: The same on the test split, which is reported and never searched on.
        measures: What else was measured of the data or the trained network.
        speeds: What training did in a second; another run of the same has others.
        costs: What the architecture costs by counting.
        profile: What it costs on a device, by column; empty where it was not measured.
        curve: Validation metrics on the way.
        provenance: What made the Row: versions (package -> version), commit, command, device, threads, started (ISO
            8601, UTC), wall_s (seconds from start to end) ...
        row_version: Of this record's form.

    Raises:
        TypeError: The recipe or provenance holds what is not of JSON.
        ValueError: They hold an integer beyond 64 bits, or nest without end.
    """

    task: str
    task_version: int
    data: str | None = None
    architecture: Architecture
    preset: str
    recipe: Mapping[str, JSON] = field(default_factory=dict)
    seed: int
    start: str | None = None
    status: Status
    error: str | None = None
    space: str | None = None
    steps: int = 0
    directions: Mapping[str, Direction] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    test: Mapping[str, float] = field(default_factory=dict)
    measures: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)
    costs: Costs = field(default_factory=Costs)
    profile: Mapping[str, float | int | str] = field(default_factory=dict)
    curve: tuple[CurvePoint, ...] = ()
    provenance: Mapping[str, JSON] = field(default_factory=dict)
    row_version: int = ROW_VERSION

    def __post_init__(self) -> None:
        for name in ("recipe", "provenance"):
            object.__setattr__(self, name, plain(getattr(self, name), name, infinite=True))

    def identity(self) -> str:
        """What was trained and how, as 16 hex digits: see `identity_of`.

        Of a Row that was upgraded the whole recipe is not known; the preset stands for it, and the identity is no
        other's.
        """
        recipe, code = self.recipe, self.provenance.get("code")
        if self.provenance.get("recipe_known") is False:
            recipe = {**recipe, "preset": self.preset, "recipe_known": False}
        return identity_of(
            task=self.task,
            task_version=self.task_version,
            data=self.data,
            architecture=self.architecture,
            recipe=recipe,
            seed=self.seed,
            start=self.start,
            code=None if code is None else str(code),
        )

    def to_json(self) -> str:
        """One line of strict JSON, which `from_json` reads back equal.

        Raises:
            TypeError, ValueError: A value cannot be written so: it is not of JSON, not of its field's kind, not finite
                or beyond 64 bits.
        """
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        values |= {"architecture": asdict(self.architecture), "costs": asdict(self.costs)}
        record = _checked(plain(values, "row", levels=MOST_LEVELS + 1))  # a recipe alone may have MOST_LEVELS
        return json.dumps(record, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Row":
        """Read what `to_json` wrote, now or in an earlier version; whether it may be is not asked.

        Raises:
            BadRow: It cannot be a Row: it is no JSON, a field is missing, unknown or not of its type, or it was written
                by a newer version.
        """
        record = _checked(upgraded(parse(text)))
        try:
            record["architecture"] = Architecture.from_record(record["architecture"])
            for name in ("recipe", "provenance"):  # not so deep that they cannot be written again
                record[name] = plain(record.get(name, {}), name)
        except ValueError as error:
            raise BadRow(str(error)) from None
        costs = record.get("costs", {})
        record["costs"] = Costs(**costs | {"uncounted": tuple(costs.get("uncounted", ()))})
        record["curve"] = tuple(record.get("curve", ()))
        return cls(**record)

    def _repr_html_(self) -> str:
        """What a notebook shows: its columns, a line each."""
        known = {name: value for name, value in self.columns().items() if value not in (None, "")}
        lines = (f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in known.items())
        return f"<table>{''.join(lines)}</table>"

    def points(self) -> list[dict[str, Any]]:
        """The curve as flat records: what was trained, the step, and the validation metrics there, the last at the end.

        A metric whose name is reserved stands as `metric_<name>`.
        """
        own = {name: getattr(self, name) for name in ("task", "preset", "seed")}
        own |= {"identity": self.identity(), "key": self.architecture.key, "topology": self.architecture.topology}
        curve = list(self.curve)
        if self.status == "complete" and self.metrics:
            end: CurvePoint = {"step": self.steps, "metrics": self.metrics}
            curve = [point for point in curve if point["step"] != self.steps or point["metrics"] != self.metrics]
            curve.append(end)
        records = []
        for point in curve:
            record = {**own, "step": point["step"], "seconds": point.get("seconds")}
            place(record, "metric_", point["metrics"])
            records.append(record)
        return records

    def columns(self) -> dict[str, Any]:
        """The row of a flat table: one scalar a column, and no column for two things.

        Identity, architecture, costs and provenance have names of their own. Metrics, profile and measures stand under
        theirs where these are free, and else as `metric_<name>`, `profile_<name>` and `measure_<name>`. The others
        always have a prefix: `test_`, `speed_`, `recipe_`, and `version_` of a package.
        """
        columns = {name: getattr(self, name) for name in FIRST}
        columns |= {"identity": self.identity(), "key": self.architecture.key}
        columns |= {name: getattr(self.architecture, name) for name in SHAPE}
        columns |= {name: getattr(self.costs, name) for name in COUNTS}
        columns |= {name: getattr(self, name) for name in LAST}
        columns |= {name: self.provenance.get(name) for name in PROVENANCE}
        metrics = {name.lower() for metric in (*self.directions, *self.metrics) for name in (metric, f"{metric}_se")}
        place(columns, "metric_", self.metrics)
        place(columns, "test_", self.test, always=True)
        place(columns, "measure_", self.measures, taken=metrics)
        place(columns, "speed_", self.speeds, always=True)
        place(columns, "profile_", self.profile, own=PROFILE, taken=metrics)
        place(columns, "recipe_", self.recipe, always=True)
        versions = self.provenance.get("versions")
        if isinstance(versions, Mapping):
            place(columns, "version_", {name.replace("-", "_"): versions[name] for name in versions}, always=True)
        return columns


def identity_of(
    *,
    task: str,
    task_version: int,
    data: str | None,
    architecture: Architecture,
    recipe: Mapping[str, JSON],
    seed: int,
    start: str | None,
    code: str | None = None,
) -> str:
    """What is trained and how, as 16 hex digits, on every machine: equal things have equal digits, others others.

    The order of the recipe's settings says nothing; 1 and 1.0 are one number. A field of the architecture that has its
    default is left out, so that a new field leaves the identities that there are.

    Raises:
        TypeError, ValueError: The recipe holds what is not of JSON.
    """
    shape = {one.name: getattr(architecture, one.name) for one in fields(architecture)}
    shape = {one.name: shape[one.name] for one in fields(architecture) if shape[one.name] != one.default}
    said = {
        "task": task,
        "task_version": task_version,
        "data": data,
        "architecture": shape,
        "recipe": recipe,
        "seed": seed,
        "start": start,
    }
    if code is not None:  # of a task in a file of its own; of an installed one its version stands for the code
        said["code"] = code
    whole = plain(said, "identity", infinite=True, levels=MOST_LEVELS + 1)
    text = json.dumps(_canonical(whole), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    """Numbers that are equal spelt alike."""
    if isinstance(value, dict):
        return {name: _canonical(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_canonical(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _checked(record: object) -> dict[str, Any]:
    """The record whose values are of their fields' kinds, written or read. Raises BadRow where they are not."""
    fitting = shaped(record, _KINDS, _NEEDED, "it")
    shaped(fitting.get("costs", {}), _COSTS, (), "'costs'")
    known = {name: value for name, value in fitting.get("provenance", {}).items() if name in _PROVENANCE}
    shaped(known, _PROVENANCE, (), "'provenance'")
    return fitting


_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("task", "preset", "status"), TEXT),
    **dict.fromkeys(("task_version", "seed", "steps", "row_version"), INTEGER),
    **dict.fromkeys(("data", "start", "error", "space"), MAYBE_TEXT),
    **dict.fromkeys(("metrics", "test", "measures", "speeds"), NUMBERS),
    **dict.fromkeys(("architecture", "recipe", "costs", "provenance"), OBJECT),
    "directions": TEXTS,
    "profile": SCALARS,
    "curve": POINTS,
}
_NEEDED = [one.name for one in fields(Row) if one.default is MISSING and one.default_factory is MISSING]
_COSTS: Mapping[str, Kind] = {**dict.fromkeys(COUNTS, MAYBE_INTEGER), "counter": MAYBE_TEXT, "uncounted": NAMES}
_PROVENANCE: Mapping[str, Kind] = {
    **dict.fromkeys(PROVENANCE, MAYBE_TEXT),
    "wall_s": MAYBE_NUMBER,
    "threads": MAYBE_INTEGER,
    "versions": TEXTS,
}
