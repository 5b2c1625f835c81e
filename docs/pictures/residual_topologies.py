"""Draw residual-topologies.svg: six residual topologies side by side.

Run it with `python docs/pictures/residual_topologies.py`. Coordinates in a panel go from (0, 0) at the bottom left to
(WIDTH, HEIGHT) at the top right; the signal moves upward.
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

Point = tuple[float, float]

WIDTH, HEIGHT = 5.4, 7.6
STREAM, ACCENT, INK, FILL = "#2f6db3", "#d1640a", "#222222", "#eef3fa"
PITCH = 2.05
"""Distance between layers."""

TOP = 7.4
"""Height at which the stream ends."""


def main() -> None:
    """Draw all panels and write the picture beside this file."""
    mpl.rcParams.update({"font.size": 15, "svg.hashsalt": "residual-topologies"})
    panels: dict[str, tuple[str, Callable[[Axes], None]]] = {
        "resnet": ("one sum", resnet),
        "grn, dca": ("weighted sums", weighted_sums),
        "hyper": ("several streams", streams),
        "rmt": ("a matrix stream", matrix),
        "value-residual": ("shared values", values),
        "highway": ("gated skips", gates),
    }
    figure = Figure(figsize=(8.1, 8.6), facecolor="white")
    for number, (title, (subtitle, draw)) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(2, 3, number)
        axes.set(xlim=(0, WIDTH), ylim=(0, HEIGHT), aspect="equal")
        axes.axis("off")
        axes.text(WIDTH / 2, HEIGHT + 0.75, title, ha="center", va="center", weight="bold", size=16, color=INK)
        axes.text(WIDTH / 2, HEIGHT + 0.15, subtitle, ha="center", va="center", size=14, color=INK)
        draw(axes)
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.93, wspace=0.02, hspace=0.17)
    figure.savefig(Path(__file__).with_name("residual-topologies.svg"), facecolor="white", metadata={"Date": None})


def resnet(axes: Axes) -> None:
    """One stream, to which every layer's output is added."""
    x = 1.4
    line(axes, [(x, 0.7), (x, TOP)], STREAM, width=3, arrow=True)
    label(axes, (x, 0.3), "x")
    for y in layers():
        branch(axes, x, y)


def weighted_sums(axes: Axes) -> None:
    """Each layer reads a weighted sum of all earlier outputs; lines are as wide as their weights."""
    x, nodes = 2.8, [0.3, 1.8, 3.45, 5.1, 6.9]
    widths = {(0, 1): 2.0, (1, 2): 3.6, (2, 3): 1.2, (3, 4): 2.4}
    arcs = {(0, 2): 1.0, (1, 3): 3.2, (2, 4): 4.2, (0, 3): 3.2, (1, 4): 1.0, (0, 4): 1.8}
    label(axes, (x, nodes[0]), "x")
    for y in nodes[1:4]:
        box(axes, (x, y), "f")
    label(axes, (x, nodes[4]), "head")
    for (earlier, later), width in widths.items():
        line(axes, [(x, nodes[earlier] + 0.4), (x, nodes[later] - 0.4)], STREAM, width=width, arrow=True)
    for (earlier, later), width in arcs.items():
        side = 1 if later == earlier + 2 else -1
        start = (x + side * (0.55 if earlier else 0.3), nodes[earlier] + 0.12)
        end = (x + side * (0.9 if later == 4 else 0.58), nodes[later] - 0.12)
        arc(axes, start, end, bend=side * (0.55 if side > 0 else 0.4), width=width)


def streams(axes: Axes) -> None:
    """Parallel streams: a layer reads a mix of them, writes to all of them, and they mix with each other."""
    xs, x_box = (0.7, 1.5, 2.3), 4.4
    for x in xs:
        line(axes, [(x, 0.7), (x, TOP)], STREAM, width=3, arrow=True)
        label(axes, (x, 0.3), "x")
    for y in (1.0, 4.1):
        for x in xs:
            line(axes, [(x, y), (x_box, y + 0.77)], ACCENT, width=1.4)
            line(axes, [(x_box, y + 1.57), (x, y + 2.5)], ACCENT, width=1.4, arrow=True)
        for first in xs:
            for second in xs:
                if first != second:
                    line(axes, [(first, y + 0.35), (second, y + 1.5)], STREAM, width=1.2)
        box(axes, (x_box, y + 1.17), "f")


def matrix(axes: Axes) -> None:
    """The stream is a matrix; layers read vectors by key, and add outer products."""
    x, x_box = 1.4, 4.3
    centres = (0.75, 3.65, 6.55)
    for centre in centres:
        grid(axes, (x, centre))
    for low, high in pairwise(centres):
        line(axes, [(x, low + 0.54), (x, high - 0.56)], STREAM, width=3, arrow=True)
        line(axes, [(x + 0.9, low), (x_box, low), (x_box, low + 0.5)], ACCENT, width=1.8, arrow=True)
        box(axes, (x_box, low + 0.9), "f")
        line(axes, [(x_box, low + 1.3), (x_box, low + 1.6), (x + 0.25, low + 1.6)], ACCENT, width=1.8, arrow=True)
        plus(axes, (x, low + 1.6))
        label(axes, (x + 1.75, low + 0.32), "key", size=14, color=ACCENT)
        label(axes, (x + 1.75, low + 1.92), "key", size=14, color=ACCENT)


def values(axes: Axes) -> None:
    """The residual network, whose attention layers also use the first layer's values."""
    x = 1.1
    line(axes, [(x, 0.7), (x, TOP)], STREAM, width=3, arrow=True)
    label(axes, (x, 0.3), "x")
    tops = [branch(axes, x, y, "attn") for y in layers()]
    side = tops[0][0] + 1.35
    line(axes, [(tops[0][0] + 0.75, tops[0][1]), (side, tops[0][1]), (side, tops[-1][1])], ACCENT, width=2.2)
    for point in tops[1:]:
        line(axes, [(side, point[1]), (point[0] + 0.72, point[1])], ACCENT, width=2.2, arrow=True)
    label(axes, (side - 0.05, tops[0][1] - 0.45), "V$_1$", color=ACCENT)


def gates(axes: Axes) -> None:
    """Each skip passes a gate with its own weights."""
    x = 1.6
    line(axes, [(x, 0.7), (x, TOP)], STREAM, width=3, arrow=True)
    label(axes, (x, 0.3), "x")
    for y in layers():
        branch(axes, x, y)
        box(axes, (x, y + 0.72), "gate", edge=ACCENT, fill="#fdf0e4", half=0.75)


def layers() -> list[float]:
    """Return the height at which each layer branches off."""
    return [0.85 + PITCH * number for number in range(3)]


def branch(axes: Axes, x: float, y: float, text: str = "f") -> Point:
    """Draw a layer that reads the stream at height y and is added to it; return the centre of its box."""
    centre = (x + 2.1, y + 0.72)
    line(axes, [(x, y), (centre[0], y), (centre[0], y + 0.32)], INK, arrow=True)
    line(axes, [(centre[0], y + 1.1), (centre[0], y + 1.5), (x + 0.25, y + 1.5)], INK, arrow=True)
    box(axes, centre, text, half=0.75 if len(text) > 1 else 0.55)
    plus(axes, (x, y + 1.5))
    return centre


def box(axes: Axes, centre: Point, text: str, edge: str = INK, fill: str = FILL, half: float = 0.55) -> None:
    """Draw a box with a text."""
    x, y = centre
    style = "round,pad=0,rounding_size=0.15"
    axes.add_patch(FancyBboxPatch((x - half, y - 0.4), 2 * half, 0.8, style, fc=fill, ec=edge, lw=1.6, zorder=3))
    label(axes, centre, text, size=15 if len(text) < 3 else 13)


def plus(axes: Axes, centre: Point) -> None:
    """Draw an addition."""
    axes.add_patch(Circle(centre, 0.25, fc="white", ec=INK, lw=1.6, zorder=4))
    for across, up in ((0.14, 0.0), (0.0, 0.14)):
        ends = ((centre[0] - across, centre[0] + across), (centre[1] - up, centre[1] + up))
        axes.plot(*ends, color=INK, lw=1.6, zorder=5)


def grid(axes: Axes, centre: Point) -> None:
    """Draw a matrix of 3 x 5 cells."""
    side = 0.36
    left, bottom = centre[0] - 2.5 * side, centre[1] - 1.5 * side
    for row in range(3):
        for column in range(5):
            corner = (left + column * side, bottom + row * side)
            axes.add_patch(Rectangle(corner, side, side, fc="#d5e4f5", ec=STREAM, lw=1.2, zorder=3))


def line(axes: Axes, points: list[Point], color: str, width: float = 1.6, *, arrow: bool = False) -> None:
    """Draw a line through points, with an arrow at its end."""
    *inner, last = points
    axes.plot([x for x, _ in inner], [y for _, y in inner], color=color, lw=width, solid_joinstyle="round", zorder=2)
    style = f"-|>,head_length={4 + width},head_width={2 + width / 2}" if arrow else "-"
    axes.add_patch(FancyArrowPatch(inner[-1], last, arrowstyle=style, color=color, lw=width, shrinkA=0, shrinkB=0))


def arc(axes: Axes, start: Point, end: Point, bend: float, width: float) -> None:
    """Draw a curved arrow."""
    style = f"-|>,head_length={4 + width},head_width={2 + width / 2}"
    curve = f"arc3,rad={bend}"
    arrow = FancyArrowPatch(
        start, end, arrowstyle=style, connectionstyle=curve, color=ACCENT, lw=width, shrinkA=0, shrinkB=0
    )
    axes.add_patch(arrow)


def label(axes: Axes, centre: Point, text: str, size: float = 15, color: str = INK) -> None:
    """Write a text."""
    axes.text(*centre, text, ha="center", va="center", size=size, color=color, zorder=6)


if __name__ == "__main__":
    main()
