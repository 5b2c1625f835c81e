"""The result of one evaluation, lossless as a line of JSON and readable without the code that made it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, NotRequired, TypedDict

from results.records.columns import (
    ARCHITECTURE_COLUMNS,
    COUNT_COLUMNS,
    LEADING_COLUMNS,
    PROVENANCE_COLUMNS,
    TRAILING_COLUMNS,
    add_columns,
    cell,
    row_columns,
)
from results.records.columns import Direction as Direction
from results.records.costs import Costs as Costs
from results.records.identity import identity_of
from results.records.row_record import check_record
from results.records.strict_json import JSON, MAX_LEVELS, is_shallow, parse, to_json_value
from results.records.strict_json import BadRow as BadRow
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError, value_fields

ROW_VERSION = 1

Status = Literal["complete", "pruned", "over-budget", "failed"]


class CurvePoint(TypedDict):
    """A point of a curve. Metrics are nested, so one named "step" cannot hide the step.

    Attributes:
        step: Optimizer steps taken.
        metrics: Metric -> value on the validation split.
        seconds: Training time up to this step, where it was measured.
    """

    step: int
    metrics: Mapping[str, float]
    seconds: NotRequired[float]


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result of one evaluation of an architecture on a task. Groups of values never collide: see `columns`.

    Attributes:
        task: Name of the task.
        task_version: Version of the task; rows of different versions are not comparable.
        data: Fingerprint of the data; rows of different data are not comparable.
        architecture: The evaluated architecture.
        preset: The preset that the recipe is based on.
        recipe: Every training setting -> its value, as JSON; tuples become lists, infinity becomes text.
        seed: Seed of initialization, data order and augmentation.
        start: Fingerprint of the initial weights; None if they were drawn at random.
        status: How the evaluation ended.
        error: Why it failed, in one line; None if it did not.
        space: Name of the search space; None if the architecture was evaluated alone.
        steps: Optimizer steps taken.
        directions: The task's metrics -> "max" or "min".
        metrics: Metric -> value on the validation split; `<metric>_se` is its standard error.
        test: Metrics on the test split, which a search never uses.
        extra_metrics: Other measurements of the data or the trained network.
        speeds: Training throughput; it differs when the same training is repeated.
        costs: Parameters and FLOPs.
        profile: Costs measured on a device, by column; empty if not measured.
        curve: Validation metrics during training.
        provenance: What made the Row: versions (package -> version), commit, command, device, threads, started (ISO
            8601, UTC), wall_s (seconds from start to end) ...
        row_version: Version of this record's format.

    Raises:
        TypeError: The recipe or provenance holds a value that JSON does not have.
        UserError: They hold an integer beyond 64 bits, or nest too deep.
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
    extra_metrics: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)
    costs: Costs = field(default_factory=Costs)
    profile: Mapping[str, float | int | str] = field(default_factory=dict)
    curve: tuple[CurvePoint, ...] = ()
    provenance: Mapping[str, JSON] = field(default_factory=dict)
    row_version: int = ROW_VERSION

    def __post_init__(self) -> None:
        for name in ("recipe", "provenance"):
            object.__setattr__(self, name, to_json_value(getattr(self, name), name, infinite=True))

    def identity(self) -> str:
        """Return the identity of this evaluation, 16 hex digits: see `identity_of`."""
        return self._identity

    @cached_property
    def _identity(self) -> str:
        code = self.provenance.get("code")
        return identity_of(
            task=self.task,
            task_version=self.task_version,
            data=self.data,
            architecture=self.architecture,
            recipe=self.recipe,
            seed=self.seed,
            start=self.start,
            code=None if code is None else str(code),
        )

    def to_json(self) -> str:
        """Return one line of strict JSON, which `from_json` reads back equal.

        Raises:
            TypeError, UserError: A value is not JSON, not of its field's type, not finite, or beyond 64 bits.
        """
        values = {row_field.name: getattr(self, row_field.name) for row_field in fields(self)}
        values |= {"architecture": self.architecture.record(), "costs": asdict(self.costs)}
        record = to_json_value(values, "row", levels=MAX_LEVELS + 1)  # a recipe alone may have MAX_LEVELS
        check_record(record)
        return json.dumps(record, allow_nan=False)

    @classmethod
    def from_json(cls, text: str, identity: str | None = None) -> "Row":
        """Parse what `to_json` wrote.

        `identity` is the row's identity if the caller knows it; computing it takes as long as parsing.

        Raises:
            BadRow: The text is no JSON; a field is missing, unknown or of the wrong type; or the version differs.
        """
        record = _check_version(parse(text))
        check_record(record)
        try:
            record["architecture"] = Architecture.from_record(record["architecture"])
            costs = record.get("costs", {})
            record["costs"] = Costs(**costs | {"uncounted": tuple(costs.get("uncounted", ()))})
            record["curve"] = tuple(record.get("curve", ()))
            for name in ("recipe", "provenance"):
                if not is_shallow(record.get(name, {})):  # perhaps too deep to be written again
                    to_json_value(record[name], name)
        except UserError as error:
            raise BadRow(error.kind, str(error), **error.fields) from None
        row = object.__new__(cls)  # parsed values are plain already
        row.__dict__.update({name: make() for name, make in _EMPTY.items() if name not in record}, **record)
        if identity is not None:
            row.__dict__["_identity"] = identity
        return row

    def _repr_html_(self) -> str:
        from results.records.row_notebook import row_html  # only notebooks need it

        outcome = self.status if self.error is None else f"{self.status}: {self.error}"
        title = f"{self.task}, {self.architecture}, seed {self.seed}: {outcome}"
        return row_html(title, self.columns(), self.points(), self.directions)

    def points(self) -> list[dict[str, Any]]:
        """Return the curve as flat records: identification, step and validation metrics, the final metrics last.

        A metric with a reserved name becomes `metric_<name>`.
        """
        identification = {name: getattr(self, name) for name in ("task", "preset", "seed")}
        identification |= {
            "identity": self.identity(),
            "key": self.architecture.key,
            "topology": self.architecture.topology,
        }
        curve = list(self.curve)
        if self.status == "complete" and self.metrics:
            end: CurvePoint = {"step": self.steps, "metrics": self.metrics}
            curve = [point for point in curve if point["step"] != self.steps or point["metrics"] != self.metrics]
            curve.append(end)
        records = []
        for point in curve:
            record = {**identification, "step": point["step"], "seconds": point.get("seconds")}
            add_columns(record, "metric_", point["metrics"])
            records.append(record)
        return records

    def columns(self) -> dict[str, Any]:
        """Return the row of a flat table: one scalar a column, with unique names.

        Identity, architecture, costs and provenance have fixed names. Metrics, profile and extra metrics keep their
        names if these are free; else they become `metric_<name>`, `profile_<name>` and `extra_metric_<name>`. All
        others have a prefix: `test_`, `speed_`, `recipe_` and `version_`.
        """
        versions = self.provenance.get("versions")
        groups: list[Mapping[str, Any]] = [
            self.metrics,
            self.test,
            self.extra_metrics,
            self.speeds,
            self.profile,
            self.recipe,
        ]
        if isinstance(versions, Mapping):
            groups.append(versions)
        shape = self.architecture
        values = (
            *_leading(self),
            self.identity(),
            shape.key,
            *_architecture_cells(shape),
            *_counts(self.costs),
            *_trailing(self),
            *map(self.provenance.get, PROVENANCE_COLUMNS),
            *(value if type(value) in _SCALARS else cell(value) for group in groups for value in group.values()),
        )
        return dict(zip(row_columns(tuple(self.directions), *map(tuple, groups)), values, strict=True))


def _check_version(record: Any) -> Any:
    """Return a parsed record of version ROW_VERSION. Raises BadRow for any other."""
    if not isinstance(record, dict):
        raise BadRow("wrong-type", f"it must be an object, got {type(record).__name__}", **value_fields(record))
    version = record.get("row_version", ROW_VERSION)
    if version != ROW_VERSION:
        message = f"'row_version' must be {ROW_VERSION}, got {version!r:.60}"
        raise BadRow("mismatch", message, option="row_version", **value_fields(version), expected=ROW_VERSION)
    return record


_leading, _architecture_cells, _counts, _trailing = (
    attrgetter(*names) for names in (LEADING_COLUMNS, ARCHITECTURE_COLUMNS, COUNT_COLUMNS, TRAILING_COLUMNS)
)
_SCALARS = frozenset({int, float, str, type(None)})
_EMPTY: Mapping[str, Callable[[], Any]] = {
    row_field.name: row_field.default_factory for row_field in fields(Row) if row_field.default_factory is not MISSING
}
"""Factories of fields that a record lacks; plain defaults come from the class."""
