"""Rows of which several are of one training: each once, and whether they agree."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from math import hypot

from results.records.row import Row

ERRORS = 5.0
"""Standard errors by which two Rows of one training may differ."""


def deduplicate(rows: Iterable[Row], key: Callable[[Row], Hashable] = Row.identity) -> list[Row]:
    """Rows of which each evaluation stands once: its last complete Row or else its last, where that one stood."""
    unique: dict[Hashable, Row] = {}
    for row in rows:
        name = key(row)
        if name not in unique or unique[name].status != "complete" or row.status == "complete":
            unique.pop(name, None)
            unique[name] = row
    return [*unique.values()]


def contradictions(rows: Iterable[Row]) -> list[str]:
    """Complete Rows that a later one of the same training contradicts, a line each.

    Trained on another machine a network is another one, and as good: what it measures differs by chance.
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
    """Whether two trainings' metrics lie further apart than errors leave open, or where none is known a twentieth."""
    if name not in first or name not in second:
        return False
    errors = [metrics[f"{name}_se"] for metrics in (first, second) if f"{name}_se" in metrics]
    tolerance = ERRORS * hypot(*errors) if len(errors) == 2 else abs(first[name]) / 20
    return abs(first[name] - second[name]) > tolerance
