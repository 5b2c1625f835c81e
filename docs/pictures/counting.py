"""Draw counting.svg: which column counts which part of a network, and what no column counts.

python docs/pictures/counting.py
"""

from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

BLUE, ORANGE, GREEN, GREY = "#4c78a8", "#e08a2e", "#4f9d69", "#8a8a8a"
LEFT, MIDDLE, RIGHT = 0.0, 6.3, 11.4
PART = 5.6  # width of a box on the left
HEIGHT = 0.62


def box(
    ax: Axes, x: float, y: float, width: float, text: str, color: str, *, filled: bool, dashed: bool = False
) -> None:
    """Draw a rounded box with its lower left corner at x, y."""
    style = FancyBboxPatch(
        (x, y),
        width,
        HEIGHT,
        boxstyle="round,pad=0,rounding_size=0.12",
        facecolor=color if filled else "white",
        edgecolor=color,
        linewidth=1.4,
        linestyle="--" if dashed else "-",
    )
    ax.add_patch(style)
    face = {"color": "white", "family": "monospace", "weight": "bold"} if filled else {"color": "#222222"}
    ax.text(x + width / 2, y + HEIGHT / 2, text, ha="center", va="center", fontsize=10, **face)


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], color: str, label: str = "") -> None:
    """Draw an arrow between two points, with a label over its middle."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 1.4, "shrinkA": 0})
    ax.text((start[0] + end[0]) / 2, start[1] + 0.1, label, ha="center", va="bottom", fontsize=10, color=color)


def part_to_column(ax: Axes, y: float, part: str, column: str, color: str) -> None:
    """Draw a part of a network, and an arrow to the column that counts it."""
    box(ax, LEFT, y, PART, part, color, filled=False)
    box(ax, MIDDLE, y, 4.0, column, color, filled=True)
    arrow(ax, (LEFT + PART, y + HEIGHT / 2), (MIDDLE, y + HEIGHT / 2), color)


def title(ax: Axes, y: float, text: str) -> None:
    ax.text(LEFT, y, text, fontsize=12, weight="bold", color="#222222", va="bottom")


def parameters(ax: Axes, top: float) -> None:
    title(ax, top + 0.85, "Parameters")
    parts = (("embedding", "embedding_params"), ("layers, norms, head, topology", "non_embedding_params"))
    for row, (part, column) in enumerate(parts):
        y = top - 0.85 * row
        part_to_column(ax, y, part, column, BLUE)
        arrow(ax, (MIDDLE + 4.0, y + HEIGHT / 2), (RIGHT, top - 0.425 + HEIGHT / 2), BLUE)
    box(ax, RIGHT, top - 0.425, 2.6, "params", BLUE, filled=True)
    part_to_column(ax, top - 1.7, "of these, the topology's own", "topology_params", BLUE)


def operations(ax: Axes, top: float) -> None:
    title(ax, top + 0.85, "Operations of one forward pass of one example")
    work = (
        "linear maps, convolutions",
        "attention products, masked half included",
        "projection to the vocabulary",
    )
    centre = top - 0.85 + HEIGHT / 2
    for row, part in enumerate(work):
        y = top - 0.85 * row
        box(ax, LEFT, y, PART, part, ORANGE, filled=False)
        arrow(ax, (LEFT + PART, y + HEIGHT / 2), (MIDDLE, centre), ORANGE)
    for x, width, column in ((MIDDLE, 1.3, "macs"), (MIDDLE + 2.5, 1.5, "flops"), (RIGHT, 2.6, "train_flops")):
        box(ax, x, top - 0.85, width, column, ORANGE, filled=True)
    arrow(ax, (MIDDLE + 1.3, centre), (MIDDLE + 2.5, centre), ORANGE, "x 2")
    arrow(ax, (MIDDLE + 4.0, centre), (RIGHT, centre), ORANGE, "x 3")
    part_to_column(ax, top - 2.55, "elementwise mixing by the topology", "elementwise_flops", GREEN)


def uncounted(ax: Axes, top: float) -> None:
    title(ax, top + 0.85, "In no column")
    parts = ((LEFT, PART, "norms, activations, softmax"), (MIDDLE, 4.0, "sum of the embeddings"))
    for x, width, part in (*parts, (RIGHT, 2.6, "backward pass")):
        box(ax, x, top, width, part, GREY, filled=False, dashed=True)
    box(ax, LEFT, top - 0.85, PART, "elementwise work inside layers", GREY, filled=False, dashed=True)


def main() -> None:
    mpl.rcParams["svg.hashsalt"] = "counting"  # equal files from equal drawings
    figure, ax = plt.subplots(figsize=(10.4, 7.4))
    parameters(ax, 8.0)
    operations(ax, 4.4)
    uncounted(ax, 0.0)
    ax.set(xlim=(-0.1, 14.1), ylim=(-1.0, 9.4))
    ax.set_aspect("equal")
    ax.axis("off")
    figure.savefig(Path(__file__).with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
