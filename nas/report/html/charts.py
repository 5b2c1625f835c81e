"""Charts of a report as Vega-Lite specifications; `chart_records` computes their data. Loads altair.

Text and lines that belong to no topology have the color of the page's text, which works in light and dark mode.
Records of a topology have the field `topology`; the page's parameter `hidden` filters them out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import altair as alt

from nas.budget.objectives import COSTS
from nas.report import tables
from nas.report.axes import axis_names, front_corners, is_wide
from nas.report.colors import TopologyStyle
from nas.report.html import chart_records
from results.records.cell_text import cell_text
from results.records.row import Direction
from results.stats.architecture_summary import ArchitectureSummary

Record = Mapping[str, Any]
Spec = dict[str, Any]

TEXT = "currentColor"
_HIDDEN = alt.param(name="hidden", value=[])
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"
_ROW = 22
"""Height in pixels of one line of a chart with one line for each name."""
_SIDE_BY_SIDE = 30
"""Total length of labels, with separators, that fits side by side on a narrow screen."""


def front(
    architectures: Sequence[ArchitectureSummary],
    objectives: Mapping[str, Direction],
    looks: Mapping[str, TopologyStyle],
    baselines: Mapping[str, float],
    published: Sequence[Record],
) -> Spec:
    """Draw every architecture with its error, the front of posterior means, baselines and published results."""
    across, up = axis_names(objectives)
    corners = [
        {"x": x, "y": y, "low": y - error, "high": y + error}
        for x, y, error in front_corners(architectures, objectives)
    ]
    step: Literal["step-before", "step-after"]
    step = "step-before" if objectives[across] == "max" else "step-after"
    x = _x_axis(
        [architecture.record[across] for architecture in architectures] + [point["x"] for point in published], across
    )
    y = alt.Y("y:Q", title=_title(up), scale=alt.Scale(zero=False))
    line = alt.Chart(data(corners)).encode(x=x, y=y)
    levels = alt.Chart(data([{"name": name, "y": value} for name, value in baselines.items()])).encode(y=y)
    papers = alt.Chart(data(published)).mark_point(shape="cross", size=60, color=TEXT, opacity=0.7)
    tooltip = [alt.Tooltip(name, title=name) for name in ("model:N", "paper:N")]
    layers = [
        line.mark_area(interpolate=step, opacity=0.12, color=TEXT).encode(y="low:Q", y2="high:Q"),
        line.mark_line(interpolate=step, strokeWidth=1.2, color=TEXT),
        *_points(
            [_point(architecture, across, up) for architecture in architectures], x, y, looks, _shape_tips(across, up)
        ),
    ]
    if baselines:
        layers.append(levels.mark_rule(strokeDash=[5, 4], color=TEXT, opacity=0.6).encode(tooltip="name:N"))
        text = levels.mark_text(align="left", dx=4, dy=-6, color=TEXT, opacity=0.8, fontSize=11)
        layers.append(text.encode(x=alt.value(0), text="name:N"))
    if published:
        layers.append(papers.encode(x=x, y=y, tooltip=[*tooltip, alt.Tooltip("x:Q", format=",.4~s"), "y:Q"]))
    return spec(alt.layer(*layers), 380, f"{up} against {across}: all architectures and the front")


def hypervolume(shares: Sequence[Record], trainings: int) -> Spec:
    """Draw the share of the final hypervolume over the number of trainings."""
    share = alt.Y("share:Q", title="share of the final hypervolume", axis=alt.Axis(format="%"))
    x = alt.X("trainings:Q", scale=alt.Scale(domain=[1, max(trainings, 2)]), axis=_sparse_axis(tickMinStep=1))
    chart = alt.Chart(data(shares)).encode(x=x, y=share)
    tooltip = ["trainings:Q", alt.Tooltip("share:Q", format=".1%")]
    points = chart.mark_circle(size=36, color=TEXT, opacity=0.9).encode(tooltip=tooltip)
    line = chart.mark_line(interpolate="step-after", color=TEXT)
    return spec(alt.layer(line, points), 240, "hypervolume over trainings")


def curves(points: Sequence[Record], metric: str, looks: Mapping[str, TopologyStyle]) -> Spec:
    """Draw the learning curve of every training."""
    chart = _visible_chart(points).encode(
        x=alt.X("step:Q", title="steps", axis=alt.Axis(format="~s", tickCount=6)),
        y=alt.Y("value:Q", title=_title(metric), scale=alt.Scale(zero=False)),
        color=_color(looks),
    )
    tooltip = ["topology:N", "key:N", "seed:Q", "step:Q", alt.Tooltip("value:Q", title=metric, format=".4~g")]
    lines = chart.mark_line(opacity=0.55, strokeWidth=1.3).encode(detail="identity:N")
    marks = chart.mark_circle(size=28, opacity=0.75).encode(tooltip=tooltip)
    return spec(alt.layer(lines, marks), 320, "training curves")


def cost_parts_chart(records: Sequence[Record], whole: str) -> Spec:
    """Draw the parameters, or the operations, of each architecture by part."""
    bars = [{**bar, "name": f"{bar['topology']} {str(bar['key'] or '')[:6]}"} for bar in records]
    order = [*chart_records.PARTS[whole]]
    opacity = alt.Opacity(
        "part:N",
        scale=alt.Scale(type="ordinal", domain=order, range=[0.95, 0.55, 0.25]),
        sort=order,
        legend=alt.Legend(title=None, orient="top", columns=1),
    )
    chart = _visible_chart(bars).mark_bar(color=TEXT).transform_calculate(rank=f"indexof({order}, datum.part)")
    chart = chart.encode(
        x=alt.X("sum(value):Q", title=whole, axis=alt.Axis(format="~s", tickCount=5)),
        y=alt.Y("name:N", title=None, sort=[*dict.fromkeys(bar["name"] for bar in bars)]),
        opacity=opacity,
        order="rank:Q",
        tooltip=[*_SHAPE, "part:N", alt.Tooltip("value:Q", format=",")],
    )
    return spec(chart, _ROW * len({bar["name"] for bar in bars}) + 20, f"{whole} by part")


def axis(
    architectures: Sequence[ArchitectureSummary], name: str, metric: str, looks: Mapping[str, TopologyStyle]
) -> Spec:
    """Draw a metric by the values of an axis: every architecture, and each value's mean and standard deviation.

    Long labels are placed one below the other, so that they do not overlap on a narrow screen.
    """
    means = chart_records.means_by_value(architectures, name, metric)
    values = [
        {
            **chart_records.shape_of(architecture),
            "at": str(architecture.record.get(name)),
            "of": architecture.record[metric],
        }
        for architecture in architectures
    ]
    order = [mean["at"] for mean in means]
    are_long = sum(len(label) + 1 for label in order) > _SIDE_BY_SIDE
    scale, title = alt.Scale(zero=False), _title(metric)
    tooltip = [*_SHAPE, alt.Tooltip("of:Q", title=metric, format=".4~g")]
    summary = [*("at:N", "number:Q"), *(alt.Tooltip(f"{part}:Q", format=".4~g") for part in ("mean", "spread"))]
    points, ends = _visible_chart(values).mark_circle(size=40, opacity=0.9), _with_ends(means, "spread")
    several = alt.Chart(data(ends))
    bar, tick = several.mark_rule(color=TEXT, strokeWidth=1.5), several.mark_tick(color=TEXT, thickness=3, width=16)
    if are_long:
        ticks = _sparse_axis(tickCount=5)
        below = alt.Y("at:N", title=None, sort=order, axis=alt.Axis(labelLimit=180))
        points = points.encode(x=alt.X("of:Q", title=title, scale=scale, axis=ticks), y=below)
        bar = bar.encode(x="low:Q", x2="high:Q", y=below)
        tick = several.mark_tick(color=TEXT, thickness=3, height=14).encode(x="mean:Q", y=below)
    else:
        across = alt.X("at:N", title=name, sort=order, axis=alt.Axis(labelAngle=0))
        points = points.encode(x=across, y=alt.Y("of:Q", title=title, scale=scale))
        bar, tick = bar.encode(x=across, y="low:Q", y2="high:Q"), tick.encode(x=across, y="mean:Q")
    layers = [
        points.encode(color=_color(looks), tooltip=tooltip),
        *([bar, tick.encode(tooltip=summary)] if ends else []),
    ]
    return spec(alt.layer(*layers), _ROW * len(order) + 20 if are_long else 230, f"{metric} by {name}")


def equal_cost(differences: Sequence[Record], cost: str, metric: str, looks: Mapping[str, TopologyStyle]) -> Spec:
    """Draw how far each architecture lies above others of equal cost, and each topology's mean and standard error."""
    means = chart_records.by_topology(differences)
    row = alt.Y("topology:N", title=None, sort=[means_record["topology"] for means_record in means])
    x = alt.X("above:Q", title=f"{metric} minus that of others", axis=alt.Axis(tickCount=5))
    tooltip = [*_SHAPE, alt.Tooltip("cost:Q", title=cost, format=",.4~s"), "neighbours:Q"]
    tooltip.append(alt.Tooltip("above:Q", title="minus their mean", format="+.4~g"))
    summary = ["topology:N", "number:Q", *(alt.Tooltip(f"{part}:Q", format="+.3~g") for part in ("mean", "error"))]
    zero = alt.Chart(data([{"above": 0}])).mark_rule(color=TEXT, strokeDash=[4, 4], opacity=0.6).encode(x=x)
    points = _visible_chart(differences).mark_circle(size=40, opacity=0.9)
    points = points.encode(x=x, y=row, color=_color(looks), tooltip=tooltip)
    ends = _with_ends(means, "error")
    several = _visible_chart(ends).encode(y=row)
    bars = several.mark_rule(color=TEXT, strokeWidth=1.5).encode(x=alt.X("low:Q"), x2="high:Q")
    ticks = several.mark_tick(color=TEXT, thickness=3, height=14).encode(x="mean:Q", tooltip=summary)
    return spec(
        alt.layer(zero, points, *([bars, ticks] if ends else [])), _ROW * len(means) + 20, "topologies at equal cost"
    )


def _with_ends(means: Sequence[Record], error: str) -> list[dict[str, Any]]:
    """Return the means of several values, with the ends of their intervals."""
    several = (record for record in means if record[error] is not None)
    return [
        {**record, "low": record["mean"] - record[error], "high": record["mean"] + record[error]} for record in several
    ]


_SHAPE = ("topology:N", "key:N", "depth:Q", "heads:Q", "head_dim:Q")


def _shape_tips(across: str, up: str) -> list[Any]:
    tooltip = (alt.Tooltip("reading:N", title=up), alt.Tooltip("x:Q", title=across, format=",.5~s"))
    return [*_SHAPE, *tooltip, alt.Tooltip("seeds:N"), alt.Tooltip("front:N", title="p_front")]


def _point(architecture: ArchitectureSummary, across: str, up: str) -> dict[str, Any]:
    """Return the data of one architecture's point and tooltip."""
    value, error = architecture.record[up], architecture.record.get(f"{up}_se") or 0.0
    record = tables.summary_record(architecture)
    return {
        **chart_records.shape_of(architecture),
        "x": architecture.record[across],
        "y": value,
        "low": value - error,
        "high": value + error,
        "reading": cell_text(architecture.record, up),
        "seeds": record["seeds"],
        "front": cell_text(record, "p_front"),
        "fresh": architecture.is_held_out,
    }


def _points(
    records: Sequence[Record], x: Any, y: Any, looks: Mapping[str, TopologyStyle], tooltip: Sequence[Any]
) -> list[Any]:
    """Draw markers with error bars; hollow without held-out seeds if other architectures have them."""
    hollow = any(record["fresh"] for record in records)
    shape = alt.Shape("topology:N", legend=None, scale=_scale(looks, [look.marker.path for look in looks.values()]))
    fill_opacity = alt.condition("datum.fresh", alt.value(0.9), alt.value(0)) if hollow else alt.value(0.9)
    chart = _visible_chart(records).encode(x=x)
    bars = chart.mark_rule(opacity=0.85).encode(y=alt.Y("low:Q"), y2="high:Q", color=_color(looks))
    fill = alt.Fill("topology:N", legend=None, scale=_scale(looks, [look.color for look in looks.values()]))
    marks = chart.mark_point(size=90, strokeWidth=1.5, filled=False)
    return [
        bars,
        marks.encode(y=y, shape=shape, color=_color(looks), fill=fill, fillOpacity=fill_opacity, tooltip=[*tooltip]),
    ]


def _visible_chart(records: Iterable[Record]) -> alt.Chart:
    """Return a chart of the records whose topology is not hidden."""
    return alt.Chart(data(records)).transform_filter("indexof(hidden, datum.topology) < 0")


def data(records: Iterable[Record]) -> alt.InlineData:
    return alt.InlineData(values=[dict(record) for record in records])


def _color(looks: Mapping[str, TopologyStyle]) -> alt.Color:
    return alt.Color("topology:N", legend=None, scale=_scale(looks, [look.color for look in looks.values()]))


def _scale(looks: Mapping[str, TopologyStyle], values: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=[*looks], range=[*values])


def _x_axis(values: Sequence[float], name: str) -> alt.X:
    scale = alt.Scale(type="log", nice=False, padding=12) if is_wide(values) else alt.Scale(zero=False, padding=12)
    return alt.X("x:Q", title=name, scale=scale, axis=alt.Axis(format="~s", tickCount=5))


def _sparse_axis(**more: Any) -> alt.Axis:
    """Return an axis whose labels do not overlap on a narrow page."""
    return alt.Axis(labelOverlap=True, labelSeparation=6, **more)


def _title(name: str) -> str:
    return name if name in COSTS else f"{name} (validation)"


def spec(chart: Any, height: int, description: str) -> Spec:
    """Return the chart as JSON, `height` pixels high and as wide as the page; screen readers read `description`."""
    lines = dict.fromkeys(("domainColor", "tickColor", "gridColor", "labelColor", "titleColor"), TEXT)
    faint = {"domainOpacity": 0.4, "tickOpacity": 0.4, "gridOpacity": 0.12}
    text = {"labelFont": _FONT, "titleFont": _FONT, "labelFontSize": 11, "titleFontSize": 12}
    chart = chart.add_params(_HIDDEN)
    chart = chart.properties(width="container", height=height, description=description)
    chart = chart.configure(background="transparent", font=_FONT).configure_view(stroke=None)
    chart = chart.configure_axis(**lines, **faint, **text, titleFontWeight="normal", labelLimit=190)
    chart = chart.configure_legend(labelColor=TEXT, labelFont=_FONT, symbolFillColor=TEXT, symbolStrokeWidth=0)
    with alt.data_transformers.enable("default", max_rows=None):  # bounded by the number of trainings
        vega_lite: Spec = chart.to_dict()
    return vega_lite
