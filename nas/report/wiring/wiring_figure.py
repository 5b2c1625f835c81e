"""The figure of `nas show`: who reads what, as matrices and as arcs, and RMS and gradients over depth.

Shapes: R = readers, S = sources; see `nas.report.wiring.influence`.
"""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from matplotlib.patches import Arc
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter

from nas.report.colors import topology_styles
from nas.report.plots import escape_math
from nas.report.wiring.influence import Array
from nas.report.wiring.stack_wiring import HEAD, StackWiring, coefficient_records

MAX_NAMES = 17
"""With more sources than this, axes show numbers instead of names."""

MAX_NUMBERS = 13
"""With at most this many sources, each entry of a matrix shows its number."""

DIVERGING, SEQUENTIAL = "RdBu", "Blues"
"""Color maps that are readable without red or green cones; positive values are blue in both."""

_WEIGHTS_ROW, _ABREAST, _TICKS = 2.4, 4, 8
"""For a topology's own weights: inches of one line of matrices, matrices in a line, most ticks of an axis."""

_SMALL = 7
"""Font size of labels at the axes, in points."""


def draw(title: str, topology: str, stacks: Sequence[StackWiring]) -> Figure:
    """Draw each stack: its weights, the shares of what is read, these as arcs, and RMS and gradients over depth."""
    heights = [_height(stack) + _WEIGHTS_ROW * _lines(stack) for stack in stacks]
    figure = Figure(figsize=(12, sum(heights) + 0.5), layout="constrained")
    figure.suptitle(escape_math(fill(title, 130)), fontsize=9, x=0.01, ha="left")
    parts: Any = figure.subfigures(len(stacks), 1, squeeze=False, height_ratios=heights)
    color = topology_styles([topology])[topology].color
    for part, stack in zip(parts[:, 0], stacks, strict=True):
        _draw_stack(part, stack, color)
    return figure


def _height(stack: StackWiring) -> float:
    """Return the height of a stack in inches, with room for its readers' names."""
    rows = len(stack.readers) if len(stack.sources) <= MAX_NAMES else MAX_NAMES
    return max(6.5, 3.6 + 0.16 * rows)


def _lines(stack: StackWiring) -> int:
    """Return the number of lines that the topology's own weights take."""
    return -(-len(stack.coefficients) // _ABREAST)


def _draw_stack(part: SubFigure, stack: StackWiring, color: str) -> None:
    if stack.name:
        part.suptitle(stack.name, fontsize=9, x=0.01, ha="left")
    height, lines = _height(stack), _lines(stack)
    ratios = [1.6 / 2.6 * height, height / 2.6, *([_WEIGHTS_ROW * lines] if lines else [])]
    halves: Any = part.subfigures(len(ratios), 1, height_ratios=ratios)
    upper, lower, *coefficient_parts = halves
    weights_axes, shares_axes = upper.subplots(1, 2)
    note = "" if stack.influence.fixed else " (full derivatives)"
    _draw_matrix(weights_axes, stack, stack.matrix, f"{stack.quantity} of each source in each layer's input{note}")
    _draw_matrix(
        shares_axes,
        stack,
        stack.influence.shares,
        "share: gain times RMS of a source, divided by the sum",
        sqrt_scale=True,
    )
    few = len(stack.sources) <= MAX_NAMES
    *arcs, sizes, gradients = lower.subplots(1, 2 + few, width_ratios=(1.5, 1, 1)[not few :])
    for axes in arcs:
        _draw_arcs(axes, stack, color)
    _draw_sizes(sizes, stack, color)
    _draw_gradients(gradients, stack, color)
    for coefficient_part in coefficient_parts:
        coefficient_part.suptitle(
            "the topology's own weights, named as in its equations", fontsize=8, x=0.01, ha="left"
        )
        grid: Any = coefficient_part.subplots(lines, _ABREAST, squeeze=False)
        for axes in grid.flat[len(stack.coefficients) :]:
            axes.set_axis_off()
        for axes, (name, coefficients) in zip(grid.flat, stack.coefficients.items(), strict=False):
            _draw_coefficients(axes, name, coefficients)


def _draw_matrix(axes: Axes, stack: StackWiring, matrix: Array, title: str, *, sqrt_scale: bool = False) -> None:
    """Draw a matrix [R, S] with readers down and sources across; sources after the reader are grey.

    `sqrt_scale` colors by the square root, which makes small shares visible.
    """
    reachable = np.arange(len(stack.sources)) < np.array(stack.influence.layers)[:, None]
    most, has_negative = float(np.abs(matrix).max()) or 1.0, matrix.min() < 0
    norm = PowerNorm(0.5 if sqrt_scale else 1.0, -most if has_negative else 0.0, most)
    visible, colors = np.where(reachable, matrix, np.nan), DIVERGING if has_negative else SEQUENTIAL
    image = axes.imshow(visible, cmap=colors, norm=norm, aspect="auto", interpolation="nearest")
    _frame(axes, image, title)
    _name(axes, stack)
    if len(stack.sources) <= MAX_NUMBERS:
        _write_numbers(axes, matrix, reachable, image)


def _draw_coefficients(axes: Axes, name: str, coefficients: Array) -> None:
    """Draw a topology's own weights, one row each; matrices stand side by side, separated by lines."""
    wide = coefficients.reshape(len(coefficients), -1)
    most = float(np.nanmax(np.abs(wide), initial=0.0)) or 1.0
    has_negative = np.nanmin(wide, initial=0.0) < 0
    image = axes.imshow(
        wide, cmap=DIVERGING if has_negative else SEQUENTIAL, vmin=-most if has_negative else 0.0, vmax=most,
        aspect="auto", interpolation="nearest",
    )  # fmt: skip
    for column in range(coefficients.shape[-1], wide.shape[1], coefficients.shape[-1]):
        axes.axvline(column - 0.5, color="black", linewidth=0.5)
    if max(wide.shape) <= MAX_NUMBERS:
        _write_numbers(axes, wide, ~np.isnan(wide), image)
    _frame(axes, image, name)
    first, *_ = records = coefficient_records(coefficients)
    for axis, names in ((axes.yaxis, [record["row"] for record in records]), (axes.xaxis, [*first][1:])):
        ticks = range(0, len(names), -(-len(names) // _TICKS))
        axis.set_ticks(ticks, [str(names[at]) for at in ticks])
    axes.tick_params(labelsize=_SMALL, length=2)


def _frame(axes: Axes, image: AxesImage, title: str) -> None:
    """Add a color bar and a title to a matrix; empty cells are grey, and there is no outline."""
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    bar.ax.tick_params(labelsize=_SMALL)
    bar.outline.set_visible(False)
    axes.set_facecolor("0.95")
    axes.set_title(title, fontsize=8, loc="left")
    axes.spines[:].set_visible(False)


def _name(axes: Axes, stack: StackWiring) -> None:
    """Label both axes of a matrix with names, or with layer numbers if there are many."""
    if len(stack.sources) <= MAX_NAMES:
        axes.set_xticks(range(len(stack.sources)), stack.sources, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(stack.readers)), stack.readers)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        rows = _first_rows(stack)
        step = max(1, len(rows) // MAX_NAMES)
        axes.set_yticks(rows[::step], [str(layer) for layer in range(1, len(rows) + 1)][::step])
        axes.set_xlabel("source: layer, 0 is the embedding", fontsize=_SMALL)
        axes.set_ylabel(f"reader: layer, {len(rows)} is the {HEAD}", fontsize=_SMALL)
    axes.tick_params(labelsize=_SMALL, length=2)


def _first_rows(stack: StackWiring) -> list[int]:
    """Return the first row of each layer."""
    layers = stack.influence.layers
    return [row for row, layer in enumerate(layers) if row == 0 or layers[row - 1] != layer]


def _write_numbers(axes: Axes, matrix: Array, reachable: npt.NDArray[np.bool_], image: AxesImage) -> None:
    """Write the number into each entry, dark on light and light on dark."""
    for row, column in np.argwhere(reachable):
        red, green, blue, _ = image.to_rgba(matrix[row, column])
        light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
        axes.text(
            column, row, _in_short(matrix[row, column]), ha="center", va="center", fontsize=6,
            color="black" if light else "white",
        )  # fmt: skip


def _in_short(value: float) -> str:
    """Return the number with two significant digits and without a leading zero, so that it fits."""
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}".replace("0.", ".", 1)


def _draw_arcs(axes: Axes, stack: StackWiring, color: str) -> None:
    """Draw an arc from each source to each layer that reads it, as thick as its share, averaged over ports."""
    layers, shares = np.array(stack.influence.layers), stack.influence.shares
    last = len(stack.sources)
    for t in range(1, last + 1):
        for i, share in enumerate(shares[layers == t].mean(axis=0)[:t]):
            across, pale = t - i, 0.25 + 0.75 * min(1.0, 2 * share)
            axes.add_patch(
                Arc(((i + t) / 2, 0), across, across, theta2=180, color=color, linewidth=6 * share, alpha=pale)
            )
    axes.plot(range(last + 1), [0] * (last + 1), "o", color="black", markersize=4, zorder=3)
    axes.set_xlim(-0.5, last + 0.5)
    axes.set_ylim(-0.06 * last, 0.53 * (last + 1))
    axes.set_xticks(range(last + 1), [*stack.sources, HEAD], rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(labelsize=_SMALL, length=0)
    axes.set_title("who reads whom; line width: share", fontsize=8, loc="left")


def _draw_sizes(axes: Axes, stack: StackWiring, color: str) -> None:
    inputs, outputs = stack.influence.layer_input_rms, stack.influence.output_rms
    size = _marker_size(stack)
    axes.plot(range(1, len(inputs) + 1), inputs, "o-", color=color, markersize=size, linewidth=1.2, label="input")
    axes.plot(
        range(len(outputs)), outputs, "s:", color=color, markersize=size, linewidth=1.2, markerfacecolor="white",
        label="output",
    )  # fmt: skip
    _over_depth(axes, [*inputs, *outputs], len(inputs))
    axes.legend(fontsize=_SMALL, frameon=False)
    axes.set_title("root mean square of each layer", fontsize=8, loc="left")


def _draw_gradients(axes: Axes, stack: StackWiring, color: str) -> None:
    gradient = stack.influence.gradient
    axes.set_title("gradient norm of the loss by each output", fontsize=8, loc="left")
    if gradient is None:
        axes.text(0.5, 0.5, "the task has no loss of a batch", ha="center", fontsize=_SMALL, transform=axes.transAxes)
        axes.set_axis_off()
        return
    axes.plot(range(len(gradient)), gradient, "D-", color=color, markersize=_marker_size(stack), linewidth=1.2)
    _over_depth(axes, list(gradient), len(gradient))


def _marker_size(stack: StackWiring) -> float:
    return 3 if len(stack.sources) < 3 * MAX_NAMES else 1.5


def _over_depth(axes: Axes, values: Sequence[float], last: int) -> None:
    """Set up the layer axis, and a logarithmic value axis unless a value is zero."""
    if min(values) > 0:
        axes.set_yscale("log")
        wide = max(values) / min(values) > 50
        axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))  # more labels overlap
        axes.yaxis.set_minor_formatter(NullFormatter() if wide else FormatStrFormatter("%g"))
    axes.set_xlim(-0.04 * (last + 1), 1.04 * last)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(f"layer: 0 is the embedding, {last} the {HEAD}", fontsize=_SMALL)
    axes.tick_params(labelsize=_SMALL, which="both")
    axes.grid(alpha=0.25)
