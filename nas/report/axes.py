"""Axes of plots and charts, shared by Matplotlib and Vega-Lite."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nas.budget.objectives import COSTS
from results.records.row import Direction

if TYPE_CHECKING:
    from results.stats.architecture_summary import ArchitectureSummary


def axis_names(objectives: Mapping[str, Direction]) -> tuple[str, str]:
    """Return the x objective (the first cost, or else the second objective) and the y objective."""
    x_name = next((name for name in objectives if name in COSTS), [*objectives, *objectives][1])
    return x_name, next((name for name in objectives if name != x_name), x_name)


def topology_of(architecture: "ArchitectureSummary") -> str:
    """Return an architecture's topology, or a dash if a line of a file has none."""
    return str(architecture.record.get("topology") or "-")


def front_corners(
    architectures: "Sequence[ArchitectureSummary]", objectives: Mapping[str, Direction]
) -> list[tuple[float, float, float]]:
    """Return the corners (x, y, standard error of y) of the front of posterior means, best x first.

    A step extends from its corner towards worse x. The last corner repeats the height at the worst x of all
    architectures. Empty unless there are two objectives.
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
    """Return whether an axis through these values should be logarithmic."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > 5
