"""Column names of a flat table: those of every Row, and unique names for all others."""

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, Literal

from results.records.costs import Costs
from search_spaces.architecture.architecture import Architecture

Direction = Literal["max", "min"]
"""Which values of a metric are better."""

LEADING_COLUMNS = ("task", "task_version", "space", "preset", "seed", "status")
ARCHITECTURE_COLUMNS = tuple(field.name for field in fields(Architecture))
COUNT_COLUMNS = tuple(field.name for field in fields(Costs) if field.name != "uncounted")
TRAILING_COLUMNS = ("steps", "start", "data", "error")
PROVENANCE_COLUMNS = ("started", "wall_s", "commit", "command", "device", "threads")
ROW_COLUMNS = (
    *LEADING_COLUMNS,
    "identity",
    "key",
    *ARCHITECTURE_COLUMNS,
    *COUNT_COLUMNS,
    *TRAILING_COLUMNS,
    *PROVENANCE_COLUMNS,
)
"""The columns that every Row has, in order."""

_QUARTILES = ("latency_ms", "latency_ms_q1", "latency_ms_q3", "step_ms", "step_ms_q1", "step_ms_q3")
_SHARES = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loading", "cpu", "other")
_ON_GPU = ("gpu_utilisation", "sm_efficiency", "occupancy", "tensor_core_share")
PROFILE_COLUMNS = (
    *("batch", *_QUARTILES, "examples_per_s", "peak_memory_bytes", "energy_j", "trace", "profile_note"),
    *(f"time_{share}" for share in _SHARES),
    *_ON_GPU,
)
"""The columns of a profile."""

_WHOLE = ("task_version", "seed", "steps", "threads", "step", *ARCHITECTURE_COLUMNS, *COUNT_COLUMNS)
TYPES: Mapping[str, type] = {
    **dict.fromkeys(ROW_COLUMNS, str),
    **dict.fromkeys(_WHOLE, int),
    **dict.fromkeys(("topology", "model", "blocks", "counter"), str),
    **dict.fromkeys(("wall_s", "seconds", *PROFILE_COLUMNS), float),
    **dict.fromkeys(("trace", "profile_note"), str),
}
"""Types of known columns where they are not null."""

MUST_MATCH_COLUMNS = ("task", "task_version", "data", "preset", "start")
"""Rows that differ in one of these columns are not compared."""

CURVE_COLUMNS = ("task", "preset", "seed", "identity", "key", "topology", "step", "seconds")
"""The columns that every point of a curve has, in order."""

PREFIXES = ("test_", "speed_", "recipe_", "version_", "metric_", "extra_metric_", "profile_")
"""Prefixes of generated column names; no metric may start with one."""

RESERVED = frozenset({*ROW_COLUMNS, *PROFILE_COLUMNS, *CURVE_COLUMNS, "uncounted"})
"""Names that no metric may have, in any case."""

_encode = json.JSONEncoder().encode  # json.dumps without its argument checks

_METRIC = re.compile("[A-Za-z][A-Za-z0-9_]*")


def is_reserved(name: str) -> bool:
    """Return whether a metric may not have this name; case is ignored."""
    return name.lower() in RESERVED or name.lower().startswith(PREFIXES)


def metric_name_problem(metrics: Sequence[str]) -> str | None:
    """Return why metrics cannot have these names, without full stop, or None.

    Each metric is a column beside those of every Row, and column names are case-insensitive.
    """
    earlier: set[str] = set()
    for name in metrics:
        if not isinstance(name, str) or not _METRIC.fullmatch(name):
            return f"a metric's name must be a letter, then letters, digits or _, got {name!r}"
        if is_reserved(name):
            return f"metric name {name!r} is reserved: rows have a column of that name or prefix"
        if name.lower() in earlier:
            return f"metric names must differ, ignoring case, got {name!r} twice"
        earlier.add(name.lower())
    for name in metrics:
        if name.lower().endswith("_se") and name.lower().removesuffix("_se") in earlier:
            return f"{name} is reserved for the standard error of metric {name[:-3]!r}"
    return None


def add_columns(
    columns: dict[str, Any],
    prefix: str,
    values: Mapping[str, Any],
    *,
    always: bool = False,
    allow: Container[str] = (),
    exclude: Container[str] = (),
) -> None:
    """Add values as columns, under the names from `column_names`."""
    names = column_names(columns, prefix, values, always=always, allow=allow, exclude=exclude)
    columns.update(zip(names, map(cell, values.values()), strict=True))


def column_names(
    columns: Container[str],
    prefix: str,
    names: Iterable[str],
    *,
    always: bool = False,
    allow: Container[str] = (),
    exclude: Container[str] = (),
) -> list[str]:
    """Return unique column names: the given name if it is free, else (or with `always`) with the prefix.

    Args:
        columns: Names already in use.
        prefix: Put before a name that is reserved, in `exclude` or in `columns`, repeated until the name is free.
        names: The names of the values.
        always: Whether every name gets the prefix.
        allow: Reserved names that these values may have.
        exclude: Lower-case names that belong to others; case is ignored.
    """
    free_names: list[str] = []
    for name in names:
        free = name in allow or not (always or is_reserved(name) or name.lower() in exclude)
        column = name if free else prefix + name
        while column in columns or column in free_names:
            column = prefix + column
        free_names.append(column)
    return free_names


def cell(value: Any) -> Any:
    """Convert a value for a table cell: lists and objects to JSON, booleans to "true" and "false"."""
    if value is True or value is False:
        return "true" if value else "false"
    return _encode(value) if isinstance(value, list | dict) else value


@lru_cache(maxsize=1024)
def row_columns(
    directions: tuple[str, ...],
    metrics: tuple[str, ...],
    test: tuple[str, ...],
    extra_metrics: tuple[str, ...],
    speeds: tuple[str, ...],
    profile: tuple[str, ...],
    recipe: tuple[str, ...],
    versions: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return the columns, in order, of Rows whose groups have these names. Cached, since many Rows share them."""
    metric_names = {name.lower() for metric in (*directions, *metrics) for name in (metric, f"{metric}_se")}
    columns = [*ROW_COLUMNS]
    columns += column_names(columns, "metric_", metrics)
    columns += column_names(columns, "test_", test, always=True)
    columns += column_names(columns, "extra_metric_", extra_metrics, exclude=metric_names)
    columns += column_names(columns, "speed_", speeds, always=True)
    columns += column_names(columns, "profile_", profile, allow=PROFILE_COLUMNS, exclude=metric_names)
    columns += column_names(columns, "recipe_", recipe, always=True)
    columns += column_names(columns, "version_", [name.replace("-", "_") for name in versions], always=True)
    return tuple(columns)
