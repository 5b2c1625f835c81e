"""Duplicate Rows of one training: remove them, and report contradictions."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from math import hypot

from results.records.row import Row

ERRORS = 5.0
"""Standard errors by which two Rows of one training may differ."""


def deduplicate(rows: Iterable[Row], key: Callable[[Row], Hashable] = Row.identity) -> list[Row]:
    """Keep one Row per key, the last complete one or else the last, at that Row's place."""
    unique: dict[Hashable, Row] = {}
    for row in rows:
        name = key(row)
        if name not in unique or unique[name].status != "complete" or row.status == "complete":
            unique.pop(name, None)
            unique[name] = row
    return [*unique.values()]


def contradictions(rows: Iterable[Row]) -> list[str]:
    """Return a line for each complete Row that a later Row of the same training contradicts.

    A training repeated on another machine gives another network of equal quality: its metrics differ by chance.
    """
    latest, messages = dict[str, Row](), []
    for row in rows:
        if row.status != "complete":
            continue
        earlier = latest.get(row.identity(), row).metrics
        differing = [name for name in row.directions if _differ(earlier, row.metrics, name)]
        for name in differing[:1]:
            values = f"{name} {earlier[name]}, a later row of it has {row.metrics[name]}"
            messages.append(f"training {row.identity()} with {values}")
        latest[row.identity()] = row
    return messages


def _differ(first: Mapping[str, float], second: Mapping[str, float], name: str) -> bool:
    """Return whether a metric of two trainings differs by more than ERRORS standard errors, or by 5 % if unknown."""
    if name not in first or name not in second:
        return False
    errors = [metrics[f"{name}_se"] for metrics in (first, second) if f"{name}_se" in metrics]
    tolerance = ERRORS * hypot(*errors) if len(errors) == 2 else abs(first[name]) / 20
    return abs(first[name] - second[name]) > tolerance
