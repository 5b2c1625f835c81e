"""Plots of figures: panels side by side, log10 losses with a band of one standard error."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from nas.papers.figures import Curve, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "osD^vP*X<>"


def draw_figure(panels: Sequence[Panel]) -> "Figure":
    """Draw one row of panels for each paper."""
    from matplotlib.figure import Figure

    papers = list(dict.fromkeys(panel.paper for panel in panels))
    columns = max(sum(panel.paper == paper for panel in panels) for paper in papers)
    figure = Figure(figsize=(4.8 * columns, 4.4 * len(papers)), layout="constrained")
    for row, paper in enumerate(papers):
        for column, panel in enumerate(panel for panel in panels if panel.paper == paper):
            _draw(figure.add_subplot(len(papers), columns, row * columns + column + 1), panel)
    return figure


def _draw(axes: "Axes", panel: Panel) -> None:
    plain = [curve for curve in panel.curves if not curve.highlight]
    for number, curve in enumerate(plain):
        label = f"{len(plain)} others" if number == 0 else None
        axes.plot(curve.x, curve.means, color="0.8", linewidth=0.6, label=label, zorder=1)
    for number, curve in enumerate(curve for curve in panel.curves if curve.highlight):
        _draw_curve(axes, curve, number)
    axes.set_title(fill(f"{panel.paper}, figure {panel.figure}: {panel.statement}", 52), loc="left", fontsize=8)
    axes.set_xlabel(panel.x_name)
    axes.set_ylabel("log10 of the loss")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=6.5, frameon=False, loc="best")


def _draw_curve(axes: "Axes", curve: Curve, number: int) -> None:
    color, marks = f"C{number % 10}", max(1, len(curve.x) // 5)
    style = {"marker": _MARKERS[number % len(_MARKERS)], "markevery": marks, "markersize": 4, "linewidth": 1.2}
    axes.plot(curve.x, curve.means, color=color, label=curve.network, zorder=2, **style)  # type: ignore[arg-type]
    low, high = (
        [mean + sign * error for mean, error in zip(curve.means, curve.errors, strict=True)] for sign in (-1, 1)
    )
    axes.fill_between(curve.x, low, high, color=color, alpha=0.15, linewidth=0)
