"""Records that earlier versions of this project wrote, as this one writes them: a small function for each version."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from results.records.strict_json import NUMBER, NUMBERS, POINTS, TEXTS, BadRow, is_integer, shaped
from search_spaces.support.errors import Kind, value_of

ROW_VERSION = 2

_RECIPE = re.compile("goals_of_others")
_MEASURE = re.compile("env_steps|skipped_documents|condition_(number(_[0-9]+)?|heads|rank_share)")
_SPEED = re.compile(".*_per_second")


def upgraded(record: object) -> dict[str, Any]:
    """A record of any version as one of this version. Raises BadRow for a version that is none, or a newer one."""
    if not isinstance(record, dict):
        got = type(record).__name__
        raise BadRow("wrong-type", f"it must be an object, got {got}", **value_of(record))
    version = record.get("row_version", 1)
    if not is_integer(version) or version < 1:
        message = f"'row_version' must be an integer of at least 1, got {version!r:.60}"
        kind: Kind = "out-of-range" if is_integer(version) else "wrong-type"
        raise BadRow(kind, message, option="row_version", **value_of(version), least=1)
    if version > ROW_VERSION:
        message = f"it is of row_version {version}, this nas reads up to {ROW_VERSION}: install a newer one"
        raise BadRow("mismatch", message, option="row_version", value=version, most=ROW_VERSION)
    for older in range(version, ROW_VERSION):
        record = _STEPS[older](record)
    return record


def _from_version_1(record: Mapping[str, Any]) -> dict[str, Any]:
    """Group what stood together in `validation`, and the times and versions that stood alone.

    What is on the test split or on the curve as well is a metric whatever its name; any other is told by it. The
    recipe was not recorded, but for `goals_of_others`: `recipe_known` says so.
    """
    for name in _NEW:
        if name in record:
            message = f"it has {name!r}, which is of version 2, and no 'row_version'"
            raise BadRow("missing-value", message, option="row_version", column=name)
    current = {**record, "row_version": 2}
    old = {name: current.pop(name) for name in ("validation", "curve", "versions", "wall_s") if name in current}
    curve = [_point(point) for point in _listed(old.get("curve", []))]
    shaped({**old, "curve": curve}, _VERSION_1, (), "it")
    values, test = old.get("validation", {}), record.get("test", {})
    surely = {*(test if isinstance(test, dict) else ()), *(name for point in curve for name in point["metrics"])}
    groups: dict[str, dict[str, Any]] = {"metrics": {}, "measures": {}, "speeds": {}, "recipe": {}}
    for name, value in values.items():
        groups["metrics" if name in surely else _group(name)][name] = value
    provenance: dict[str, Any] = {"upgraded_from": 1, "recipe_known": False}
    return current | groups | {"curve": curve, "provenance": provenance | {n: old[n] for n in _KEPT if n in old}}


def _point(point: Any) -> dict[str, Any]:
    if not isinstance(point, dict) or "step" not in point:
        message = f"'curve' must be a list of points, each with its step, got {point!r:.60}"
        raise BadRow("wrong-type", message, option="curve", **value_of(point))
    return {"step": point["step"], "metrics": {name: value for name, value in point.items() if name != "step"}}


def _listed(curve: Any) -> list[Any]:
    if not isinstance(curve, list):
        message = f"'curve' must be {POINTS.words}, got {curve!r:.60}"
        raise BadRow("wrong-type", message, option="curve", **value_of(curve))
    return curve


def _group(name: str) -> str:
    for group, pattern in (("recipe", _RECIPE), ("measures", _MEASURE), ("speeds", _SPEED)):
        if pattern.fullmatch(name):
            return group
    return "metrics"


_NEW = ("metrics", "measures", "speeds", "recipe", "provenance")
_KEPT = ("wall_s", "versions")
_VERSION_1 = {"validation": NUMBERS, "curve": POINTS, "versions": TEXTS, "wall_s": NUMBER}
_STEPS: Mapping[int, Callable[[Mapping[str, Any]], dict[str, Any]]] = {1: _from_version_1}
"""Version -> what makes a record of the next version of it."""
