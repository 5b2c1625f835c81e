"""Axes of plots and charts of architectures. Draws nothing."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nas.budget.objectives import COSTS
from results.records.row import Direction

if TYPE_CHECKING:
    from results.stats.architecture_summary import ArchitectureSummary


def axis_names(objectives: Mapping[str, Direction]) -> tuple[str, str]:
    """The objectives of the x axis, which is the first cost or else the second of them, and of the y axis."""
    x_name = next((name for name in objectives if name in COSTS), [*objectives, *objectives][1])
    return x_name, next((name for name in objectives if name != x_name), x_name)


def topology_of(architecture: "ArchitectureSummary") -> str:
    """An architecture's topology; a dash where a line of a file has none, as in tables."""
    return str(architecture.record.get("topology") or "-")


def front_corners(
    architectures: "Sequence[ArchitectureSummary]", objectives: Mapping[str, Direction]
) -> list[tuple[float, float, float]]:
    """The corners of the front through what is expected: where a step begins, its height and that one's error.

    A step goes from its corner towards what is worse across: what costs more than a corner, and less than the next, is
    no better. Of other than two objectives it is no line.
    """
    if len(objectives) != 2:
        return []
    x_name, y_name = axis_names(objectives)
    descending = objectives[x_name] == "max"
    best = sorted(
        (architecture for architecture in architectures if architecture.on_front),
        key=lambda architecture: architecture.expected[x_name],
        reverse=descending,
    )
    corners = [
        (architecture.expected[x_name], architecture.expected[y_name], architecture.record.get(f"{y_name}_se") or 0.0)
        for architecture in best
    ]
    ends = [architecture.expected[x_name] for architecture in architectures]
    return [*corners, (min(ends) if descending else max(ends), *corners[-1][1:])]


def is_wide(values: Sequence[float]) -> bool:
    """Whether an axis through these is to be logarithmic."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > 5
