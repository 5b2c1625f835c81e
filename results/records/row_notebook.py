"""How a Row shows itself in a notebook: its outcome, a table of each group, its training curve."""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from results.records.cell_text import cell_text
from results.records.columns import ARCHITECTURE_COLUMNS, COUNT_COLUMNS, PROVENANCE_COLUMNS, Direction
from results.records.notebook import figure_html, pairs_html, title_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def row_html(
    title: str, columns: Mapping[str, Any], curve: list[dict[str, Any]], directions: Mapping[str, Direction]
) -> str:
    """Return a Row as HTML.

    Args:
        title: One line about the Row.
        columns: Its columns, as `Row.columns` returns them.
        curve: Its curve, as `Row.points` returns it.
        directions: Metric -> "max" or "min".
    """
    texts = {name: cell_text(columns, name) for name, value in columns.items() if _is_visible(name, value, columns)}
    hidden = {name for name in texts if name.startswith(("recipe_", "version_")) or name in PROVENANCE_COLUMNS}
    groups = {
        "Architecture": [name for name in ARCHITECTURE_COLUMNS if name in texts],
        "Costs": [name for name in COUNT_COLUMNS if name in texts],
    }
    in_groups = {name for names in groups.values() for name in names}
    first = {name: text for name, text in texts.items() if name not in hidden | in_groups}
    parts = [title_html(title), pairs_html(first)]
    for name, names in groups.items():
        parts.append(f"<p>{escape(name)}</p>{pairs_html({column: texts[column] for column in names})}")
    metric = next(iter(directions), None)
    if metric is not None and sum(metric in point for point in curve) > 1:
        parts.append(figure_html(_draw_curve(curve, metric), f"{metric} against steps"))
    rest = pairs_html({name: text for name, text in texts.items() if name in hidden})
    return "".join([*parts, f"<details><summary>Recipe, versions, provenance</summary>{rest}</details>"])


def _is_visible(name: str, value: Any, columns: Mapping[str, Any]) -> bool:
    return value not in (None, "") and not (name.endswith("_se") and name.removesuffix("_se") in columns)


def _draw_curve(curve: list[dict[str, Any]], metric: str) -> "Figure":
    from matplotlib.figure import Figure  # half a second

    figure = Figure(figsize=(5, 2.5), layout="constrained")
    axes = figure.add_subplot()
    points = [point for point in curve if metric in point]
    axes.plot([point["step"] for point in points], [point[metric] for point in points], marker="o", linewidth=1)
    axes.set_xlabel("step")
    axes.set_ylabel(f"{metric} (validation)")
    axes.grid(alpha=0.25)
    return figure
