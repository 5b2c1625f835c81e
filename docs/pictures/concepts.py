"""Draw the pictures of the concept pages: python docs/pictures/concepts.py."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nas.costs.count import budget_counts
from tasks.load import load_task

HERE = Path(__file__).parent
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#8a8a8a"


def draw_noise() -> Figure:
    """Draw simulated scores of 24 architectures: one noisy search seed each, and held-out seeds of the best."""
    random = np.random.default_rng(3)
    truth = np.sort(random.normal(0.80, 0.015, 24))
    search = truth + random.normal(0, 0.02, 24)
    best = np.argsort(search)[-5:]
    held_out = truth[best] + random.normal(0, 0.02, 5)
    figure, axes = _axes((7, 3.4))
    axes.plot(range(24), truth, color=GREY, linewidth=1.5, label="true score of the architecture")
    axes.plot(range(24), search, "o", color=BLUE, fillstyle="none", label="search seed")
    axes.plot(best, held_out, "o", color=ORANGE, label="held-out seed of the five best")
    for i, value in zip(best, held_out, strict=True):
        axes.plot([i, i], [search[i], value], color=ORANGE, linewidth=0.8, linestyle=":")
    axes.set_xlabel("architectures, from worst to best (simulated)")
    axes.set_ylabel("accuracy")
    axes.legend(fontsize=8, frameon=False)
    return figure


def draw_budget() -> Figure:
    """Draw depth against heads of digits-vit: what is inside a budget, from counts of the task itself."""
    task = load_task("digits-vit")
    figure, axes = _axes((7, 3.4))
    limit = 30_000
    counts = {
        (depth, heads): budget_counts(task, task.base.with_fields({"depth": depth, "heads": heads}))["params"]
        for depth in range(1, 9)
        for heads in (1, 2, 3, 4, 6, 8)
    }
    for is_inside, color, fill in ((True, BLUE, BLUE), (False, GREY, "none")):
        points = [point for point, params in counts.items() if (params <= limit) == is_inside]
        label = f"{'inside' if is_inside else 'outside'}: {len(points)} members"
        axes.plot(*zip(*points, strict=True), "o", color=color, markerfacecolor=fill, markersize=9, label=label)
    for (depth, heads), params in counts.items():
        axes.annotate(
            f"{params / 1000:.0f}k", (depth, heads), (0, 7), textcoords="offset points", ha="center", fontsize=6.5
        )
    axes.set_xlabel("depth")
    axes.set_ylabel("heads")
    axes.set_ylim(0, 9)
    axes.legend(
        fontsize=8, frameon=False, title="params<=30k", title_fontsize=8, bbox_to_anchor=(1, 0.5), loc="center left"
    )
    return figure


def draw_identity() -> Figure:
    """Draw how an evaluation is looked up before it is trained."""
    figure, axes = _axes((8, 2.6))
    axes.set_axis_off()
    axes.set_xlim(-0.1, 16.1)
    axes.set_ylim(0, 5)
    _box(axes, 0, 1.2, 3.6, 2.6, "task and data\narchitecture\nrecipe, seed\nstart weights", GREY)
    _box(axes, 4.8, 1.9, 2.2, 1.2, "identity", BLUE)
    _box(axes, 8.2, 1.9, 2.2, 1.2, "store", BLUE)
    _box(axes, 12.2, 3.4, 3.6, 1.2, "row: nothing is trained", ORANGE)
    _box(axes, 12.2, 0.4, 3.6, 1.2, "train, then store the row", ORANGE)
    for start, end in (((3.6, 2.5), (4.8, 2.5)), ((7.0, 2.5), (8.2, 2.5))):
        _arrow(axes, start, end)
    _arrow(axes, (10.4, 2.8), (12.2, 4.0), "known")
    _arrow(axes, (10.4, 2.2), (12.2, 1.0), "new")
    return figure


def _axes(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.grid(alpha=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _box(axes: Axes, left: float, bottom: float, width: float, height: float, text: str, color: str) -> None:
    style: dict[str, Any] = {"boxstyle": "round,pad=0.02,rounding_size=0.2", "linewidth": 1.2}
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(FancyBboxPatch((left, bottom), width, height, edgecolor=color, facecolor="white", **style))
    axes.text(left + width / 2, bottom + height / 2, text, ha="center", va="center", fontsize=9)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], text: str = "") -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 1})
    if text:
        middle = ((start[0] + end[0]) / 2 - 0.1, (start[1] + end[1]) / 2)
        axes.text(*middle, text, ha="right", va="bottom" if end[1] > start[1] else "top", fontsize=8)


if __name__ == "__main__":
    for name, draw in (("noise", draw_noise), ("budget", draw_budget), ("identity", draw_identity)):
        draw().savefig(HERE / f"{name}.svg", metadata={"Date": None})
