"""Matplotlib figures of fronts, tournaments, effects and coordinate checks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator

from nas.budget.objectives import COSTS
from nas.report.axes import axis_names, front_corners, is_wide, topology_of
from nas.report.colors import TopologyStyle, topology_styles
from nas.report.format import check_figure_path
from results.records.columns import ARCHITECTURE_COLUMNS
from results.records.row import Direction
from results.stats.architecture_summary import ArchitectureSummary
from results.stats.effects import Effects, plain_names
from search_spaces.support.files import atomic_open, unwritable


def draw_front(
    architectures: Sequence[ArchitectureSummary],
    objectives: Mapping[str, Direction],
    title: str,
    baselines: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Draw every architecture colored by topology, the front of posterior means, and baselines as lines.

    Error bars and the band about the front are standard errors of means. Without held-out seeds, markers are hollow.
    """
    x_name, y_name = axis_names(objectives)
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    _draw_points(axes, architectures, x_name, y_name)
    _draw_line(axes, front_corners(architectures, objectives))
    values = [architecture.record[y_name] for architecture in architectures]
    _draw_baselines(axes, {name: columns[y_name] for name, columns in baselines.items() if y_name in columns}, values)
    _style_axes(axes, [architecture.record[x_name] for architecture in architectures], x_name, y_name)
    axes.set_title(escape_math(fill(title, 90)), loc="left", fontsize=9)
    axes.legend(**_BESIDE)
    return figure


_BESIDE: Mapping[str, Any] = {"fontsize": 7, "loc": "center left", "bbox_to_anchor": (1, 0.5), "frameon": False}
"""Legend to the right of the axes, so that it covers no data."""


def escape_math(text: str) -> str:
    """Return the text with dollar signs escaped, so that Matplotlib reads no formula."""
    return text.replace("$", r"\$")


def _draw_baselines(axes: Axes, baselines: Mapping[str, float], values: Sequence[float]) -> None:
    """Draw each baseline as a line; one far from all architectures, which it would squeeze, is in the legend alone."""
    low, high = min(values), max(values)
    for number, (name, value) in enumerate(baselines.items()):
        look: dict[str, Any] = {"color": "grey", "linewidth": 0.8, "linestyle": ("--", ":", "-.")[number % 3]}
        if low - (high - low) <= value <= high + (high - low):
            axes.axhline(value, label=escape_math(name), **look)
        else:
            where = "above" if value > high else "below"
            axes.plot([], [], label=escape_math(f"{name}: {value:.3g}, {where} the picture"), **look)


def _draw_line(axes: Axes, corners: Sequence[tuple[float, float, float]]) -> None:
    """Draw the front as a step with an error band."""
    if not corners:
        return
    across, up, off = zip(*corners, strict=True)
    axes.step(across, up, where="post", color="black", linewidth=1, label="front of posterior means")
    low, high = ([value + side * error for value, error in zip(up, off, strict=True)] for side in (-1, 1))
    band = axes.fill_between(across, low, high, step="post", color="black", alpha=0.1, linewidth=0)
    band.set_label("± standard error")


def _draw_points(axes: Axes, architectures: Sequence[ArchitectureSummary], x_name: str, y_name: str) -> None:
    """Draw each topology with its color and marker, filled where the mean is over held-out seeds."""
    has_held_out = any(architecture.is_held_out for architecture in architectures)
    if has_held_out and not all(architecture.is_held_out for architecture in architectures):
        axes.plot([], [], "o", color="grey", markerfacecolor="none", label="hollow: no held-out seeds")
    for name, look in sorted(topology_styles(topology_of(architecture) for architecture in architectures).items()):
        group = [architecture for architecture in architectures if topology_of(architecture) == name]
        for is_filled in (False, True):
            part = [
                architecture.record
                for architecture in group
                if (architecture.is_held_out or not has_held_out) == is_filled
            ]
            axes.errorbar(
                [record[x_name] for record in part],
                [record[y_name] for record in part],
                yerr=[record.get(f"{y_name}_se") or 0.0 for record in part],
                fmt=look.marker.code,
                color=look.color,
                markerfacecolor=look.color if is_filled else "none",
                elinewidth=0.6,
                alpha=0.85 if is_filled else 0.5,
                label=escape_math(name)
                if part and (is_filled or all(not architecture.is_held_out for architecture in group))
                else None,
            )


def _style_axes(axes: Axes, span: Sequence[float], x_name: str, y_name: str) -> None:
    if is_wide(span):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))  # more labels overlap
        axes.xaxis.set_minor_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.tick_params(axis="x", which="both", length=3.5, pad=3.5)  # minor and major labels on one line
    axes.set_xlabel(escape_math(x_name))
    axes.set_ylabel(escape_math(y_name if y_name in COSTS else f"{y_name} (validation)"))
    axes.grid(alpha=0.25)


def draw_tournament(records: Sequence[Mapping[str, Any]], title: str) -> Figure:
    """Draw each sampler's median hypervolume against trainings, with a band between its quartiles."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for number, sampler in enumerate(dict.fromkeys(record["sampler"] for record in records)):
        curve = [record for record in records if record["sampler"] == sampler]
        across, middle, low, high = (
            [record[name] for record in curve]
            for name in ("trainings", "hypervolume", "hypervolume_q1", "hypervolume_q3")
        )
        axes.plot(
            across,
            middle,
            marker="osD^vP*X"[number % 8],
            color=f"C{number % 10}",
            linewidth=1,
            label=escape_math(sampler),
        )
        axes.fill_between(across, low, high, color=f"C{number % 10}", alpha=0.15, linewidth=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("trainings")
    axes.set_ylabel("test hypervolume, relative to the table's front")
    axes.grid(alpha=0.25)
    axes.set_title(escape_math(fill(title, 90)), loc="left", fontsize=9)
    axes.legend(**_BESIDE, title="median and quartiles", title_fontsize=7)
    return figure


def draw_comparison(records: Sequence[Mapping[str, Any]], metric: str, title: str) -> Figure:
    """Draw each architecture's difference to the first with its interval; the first is at 0."""
    names = _distinct_names(records)
    looks = topology_styles(str(record["topology"]) for record in records)
    figure = Figure(figsize=(7, 1.2 + 0.3 * len(records)), layout="constrained")
    axes = figure.add_subplot()
    for height, record in enumerate(records):
        look, middle = looks[str(record["topology"])], record.get("difference")
        ends = [[middle - record["low"]], [record["high"] - middle]] if record.get("low") is not None else None
        if height == 0 or middle is not None:
            axes.errorbar([middle or 0.0], [height], xerr=ends, fmt=look.marker.code, color=look.color, elinewidth=0.8)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(escape_math(f"{metric} minus that of {names[0]}, 95 % intervals"))
    axes.set_title(escape_math(fill(title, 90)), loc="left", fontsize=9)
    axes.grid(alpha=0.25)
    return figure


def _distinct_names(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a label for each architecture: the fields in which architectures differ, `hidden` only if needed."""

    def labels(fields: Sequence[str]) -> list[str]:
        def text(name: str, value: Any) -> str:
            return str(value) if name == "topology" else f"{name} {value}"

        return [escape_math(", ".join(text(name, record[name]) for name in fields)) for record in records]

    fields = ["topology", *(name for name in ARCHITECTURE_COLUMNS if name not in ("topology", "hidden"))]
    differing = [name for name in fields if len({record[name] for record in records}) > 1]
    names = labels(differing or ["topology"])
    return names if len({*names}) == len(names) else labels([*differing, "hidden"])


def draw_effects(effects: Mapping[str, Effects]) -> Figure:
    """Draw the effect of each value of an axis with its interval: one panel for each task, values in one order."""
    lines = dict(zip(effects, _named_records([*effects.values()]), strict=True))
    order = _heights_by_mean_rank([*lines.values()])
    looks_by_value = _looks_by_name([line for records in lines.values() for line in records])
    columns, rows = min(4, len(effects)), -(-len(effects) // 4)  # more columns would be too small on a page
    figure = Figure(figsize=(2 + 3 * columns, rows * (1.2 + 0.22 * len(order))), layout="constrained")
    panels = [*figure.subplots(rows, columns, sharey=True, squeeze=False).flat]
    for axes in panels[len(effects) :]:
        axes.set_visible(False)
    for axes, (task, task_effects) in zip(panels, effects.items(), strict=False):
        for line in lines[task]:
            name, over = line["name"], line["difference"]
            ends = [[over - line["low"]], [line["high"] - over]] if line["low"] is not None else None
            marker, color = (
                (looks_by_value[name].marker.code, looks_by_value[name].color)
                if task_effects.axis == "topology"
                else ("o", "black")
            )
            axes.errorbar([over], [order[name]], xerr=ends, fmt=marker, color=color, elinewidth=0.8, markersize=5)
        axes.axvline(0, color="grey", linewidth=0.8)
        axes.locator_params(axis="x", nbins=4)  # more labels overlap in so narrow a panel
        axes.xaxis.set_inverted(task_effects.direction == "min")  # better is to the right
        axes.set_xlabel(escape_math(task_effects.metric))
        axes.set_title(
            escape_math(fill(f"{task}{f', at equal {task_effects.at}' if task_effects.at else ''}", 40)),
            loc="left",
            fontsize=9,
        )
        axes.set_yticks([*order.values()], map(escape_math, order), fontsize=8)
        axes.grid(alpha=0.25)
    references = ", ".join(sorted({str(task_effects.values[0]) for task_effects in effects.values()}))
    figure.supxlabel(escape_math(f"difference to {references}; better to the right"), fontsize=9)
    return figure


def draw_coordinates(records: Sequence[Mapping[str, Any]], widths: Sequence[int], title: str) -> Figure:
    """Draw how far steps move each part against width, one panel for each parametrization."""
    kinds = list(dict.fromkeys(record["parametrization"] for record in records))
    figure = Figure(figsize=(8, 4), layout="constrained")
    for axes, kind in zip(figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0], kinds, strict=True):
        for number, record in enumerate(row for row in records if row["parametrization"] == kind):
            moves = [record[f"moved_{width}"] for width in widths]
            axes.plot(widths, moves, marker="osD^vP*X"[number % 8], linewidth=1, label=escape_math(record["part"]))
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(widths, map(str, widths))
        axes.set_xlabel("width")
        axes.set_title(kind, fontsize=9)
        axes.grid(alpha=0.25)
    axes.legend(fontsize=7, frameon=False)
    figure.axes[0].set_ylabel("root mean square of the change")
    figure.suptitle(escape_math(fill(title, 90)), fontsize=9)
    return figure


def _named_records(effects: Sequence[Effects]) -> list[list[dict[str, Any]]]:
    """Return each task's records with a `name`: "mhc(...)" if each task has one mhc, with other options."""
    names = [dict(zip(task_effects.values, plain_names(task_effects.values), strict=True)) for task_effects in effects]
    values: dict[Any, set[Any]] = {}
    for name_of in names:
        for value, name in name_of.items():
            values.setdefault(name, set()).add(value)
    full_names = [str(value) for name_of in names for value, name in name_of.items() if name == value]
    ambiguous_families = {value.partition("(")[0] for value in full_names if "(" in value}
    family_names = {
        name: f"{name}(...)" for name, name_of in values.items() if len(name_of) > 1 and name not in ambiguous_families
    }
    return [
        [
            {**line, "name": str(family_names.get(name_of[line["value"]], line["value"]))}
            for line in task_effects.records()
        ]
        for task_effects, name_of in zip(effects, names, strict=True)
    ]


def _looks_by_name(lines: Sequence[Mapping[str, Any]]) -> dict[str, TopologyStyle]:
    """Return name -> the look of the first value with that name."""
    values = {line["name"]: str(line["value"]) for line in reversed(lines)}
    of_value = topology_styles(values.values())
    return {name: of_value[value] for name, value in values.items()}


def _heights_by_mean_rank(tasks: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, int]:
    """Return name -> its height: the highest has the best mean rank over tasks."""
    shares: dict[str, list[float]] = {}
    for lines in tasks:
        for rank, line in enumerate(lines):
            shares.setdefault(line["name"], []).append(1 - rank / max(len(lines) - 1, 1))
    order = sorted(shares, key=lambda value: sum(shares[value]) / len(shares[value]))
    return {value: height for height, value in enumerate(order)}


def save_figure(figure: "Figure", file: str | Path | None) -> "Figure":
    """Return the figure, saved if `file` is given. Raises UserError if it cannot be written."""
    if file is None:
        return figure
    path = Path(file)
    check_figure_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_open(path) as stream:
            figure.savefig(stream, format=path.suffix[1:].lower(), dpi=150)
    except OSError as error:
        raise unwritable(path, error) from error
    return figure
