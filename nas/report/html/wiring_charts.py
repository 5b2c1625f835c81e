"""Charts of a network's topology as Vega-Lite specifications, drawn from the records of `wirings`. Loads altair.

Larger shares have a stronger shade of the topology's color, which works in light and dark mode.
"""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt

from nas.report.html.charts import TEXT, Record, Spec, data, spec

_ROW, _LEAST, _MOST = 18, 220, 420
"""Pixels: height of one line of the heat map, its least height, its greatest height."""

FULL = 0.5
"""The share at which a cell has full opacity; with many sources, most shares are a few per cent."""

_SIZES = 240
"""Height of the chart over depth in pixels."""

_QUANTITIES = {"read": "input", "made": "output", "gradient": "gradient (right axis)"}
"""Field of a record -> its name in the legend."""


def heat_map(pairs: Sequence[Record], color: str) -> Spec:
    """Draw the share of each source (across) in what each reader (down) reads; unreachable cells stay empty."""
    readers, sources = _by_number(pairs, "reader", "reads"), _by_number(pairs, "source", "of")
    legend = alt.Legend(
        title=None, orient="top", values=[0, 0.05, 0.2, FULL], columns=4,
        labelExpr=f"(datum.value < {FULL} ? '' : '≥ ') + format(datum.value, '.0%')",
        symbolType="square", symbolSize=150, symbolFillColor=color,
    )  # fmt: skip
    scale = alt.Scale(type="sqrt", domain=[0, FULL], clamp=True, range=[0.04, 1])
    numbers = [name for name in ("weight", "gain") if any(pair[name] is not None for pair in pairs)]
    tooltip = [
        alt.Tooltip("reads:N", title="reader"),
        alt.Tooltip("of:N", title="source"),
        alt.Tooltip("share:Q", format=".3~p"),
        *(alt.Tooltip(f"{name}:Q", format=".4~g") for name in numbers),
    ]
    chart = alt.Chart(data(pairs)).mark_rect(color=color, stroke=TEXT, strokeOpacity=0.2, strokeWidth=0.5)
    chart = chart.encode(
        x=alt.X("source:O", title="source", axis=_name_axis(sources, labelAngle=-45, minExtent=_label_extent(sources))),
        y=alt.Y("reader:O", title="reader", axis=_name_axis(readers)),
        opacity=alt.Opacity("share:Q", scale=scale, legend=legend),
        tooltip=tooltip,
    )
    height = min(max(_ROW * len(readers), _LEAST), _MOST)
    return spec(chart, height, "the share of each source in each layer's input")


def depth_chart(depths: Sequence[Record], color: str) -> Spec:
    """Draw the RMS of what each layer reads and makes and, on a second axis, the gradient's norm."""
    quantities = [name for name in _QUANTITIES if any(name in record for record in depths)]
    points = [
        {"number": record["number"], "layer": record["layer"], "what": _QUANTITIES[name], "value": record[name]}
        for name in quantities
        for record in depths
        if name in record
    ]
    gradient = [record for record in points if record["what"] == _QUANTITIES["gradient"]]
    sizes = [record for record in points if record not in gradient]
    layers = [_line(sizes, "root mean square", quantities, color)]
    layers += [_line(gradient, "gradient norm", quantities, color, orient="right", grid=False)] if gradient else []
    return spec(alt.layer(*layers).resolve_scale(y="independent"), _SIZES, "sizes and gradients over depth")


def coefficient_map(name: str, weights: Sequence[Record], color: str) -> Spec:
    """Draw a topology's own weights, one row each: larger is stronger, negative is grey."""
    cells = [{**cell, "size": abs(cell["weight"]), "below": cell["weight"] < 0} for cell in weights]
    most, rows = max(cell["size"] for cell in cells) or 1.0, len({cell["row"] for cell in weights})
    tooltip = ["row:O", alt.Tooltip("column:N"), alt.Tooltip("weight:Q", title=name, format=".4~g")]
    chart = alt.Chart(data(cells)).mark_rect(stroke=TEXT, strokeOpacity=0.2, strokeWidth=0.5)
    chart = chart.encode(
        x=alt.X("column:O", title=name, sort=None, axis=alt.Axis(labelAngle=0, labelOverlap="greedy", ticks=False)),
        y=alt.Y("row:O", title=None, axis=alt.Axis(labelOverlap="greedy", ticks=False)),
        color=alt.Color("below:N", legend=None, scale=alt.Scale(domain=[False, True], range=[color, TEXT])),
        opacity=alt.Opacity("size:Q", legend=None, scale=alt.Scale(domain=[0, most], range=[0.04, 1])),
        tooltip=tooltip,
    )
    return spec(chart, min(max(_ROW * rows, _LEAST // 2), _MOST), f"{name}, the topology's own weights")


def _line(points: Sequence[Record], title: str, quantities: Sequence[str], color: str, **axis: Any) -> Any:
    """Draw the lines and points of one axis."""
    names = [_QUANTITIES[name] for name in quantities]
    log = all(point["value"] > 0 for point in points)  # a zero has no logarithm
    legend = alt.Legend(title=None, orient="top", columns=3, symbolFillColor=color)
    dashes = alt.Scale(domain=names, range=[[1, 0], [5, 3], [1, 3]])
    shapes = alt.Scale(domain=names, range=["circle", "square", "diamond"])
    chart = alt.Chart(data(points)).encode(
        x=alt.X("number:Q", title="layer", axis=alt.Axis(format="d", tickMinStep=1), scale=alt.Scale(nice=False)),
        y=alt.Y(
            "value:Q",
            title=title,
            scale=alt.Scale(type="log", nice=False, padding=8) if log else alt.Scale(),
            axis=alt.Axis(format="~g", tickCount=7, **axis),
        ),
        detail="what:N",
    )
    tooltip = ["layer:N", alt.Tooltip("what:N", title="quantity"), alt.Tooltip("value:Q", title=title, format=".4~g")]
    marks = chart.mark_point(color=color, size=30, filled=True, opacity=1)
    return alt.layer(
        chart.mark_line(color=color, strokeWidth=1.5).encode(
            strokeDash=alt.StrokeDash("what:N", scale=dashes, legend=legend)
        ),
        marks.encode(shape=alt.Shape("what:N", scale=shapes, legend=legend), tooltip=tooltip),
    )


def _by_number(pairs: Sequence[Record], number: str, name: str) -> list[str]:
    """Return names in the order of their numbers; two names may be equal."""
    names = {pair[number]: str(pair[name]) for pair in pairs}
    return [names[index] for index in sorted(names)]


def _label_extent(names: Sequence[str]) -> float:
    """Return the height in pixels of the longest rotated label; Vega ignores labels that it leaves out."""
    return 5.0 * max(map(len, names))


def _name_axis(names: Sequence[str], **more: Any) -> alt.Axis:
    """Return an axis that shows names for numbers, as many as fit."""
    return alt.Axis(labelExpr=f"{json.dumps(names)}[datum.value]", labelOverlap="greedy", ticks=False, **more)
