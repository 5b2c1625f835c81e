"""`nas effects`: the effect of each value of an axis for each task, and whether tasks agree. Loads no torch."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from nas.report import tables
from nas.report.format import Format
from nas.report.record_files import write_records
from nas.report.study import Study
from results.query.mixtures import abbreviate
from results.stats.effects import Effects, agreement


def print_effects(
    study: Study,
    axis: str,
    metric: str | None = None,
    at: str | None = None,
    format: Format = Format.TABLE,
    output: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Print the effect of each value of an axis, one table for each task; draw it if `plot` is given."""
    effects = study.effects(axis, metric, at=at)
    if tables.is_for_terminal(format, output):
        _print(effects, format)
    else:
        lines = [
            {"task": name, "metric": task_effects.metric, "axis": task_effects.axis}
            | line
            | {"value": str(line["value"])}
            for name, task_effects in effects.items()
            for line in task_effects.records()
        ]
        write_records(lines, format, output)
    if plot is not None:
        from nas.report import plots  # Matplotlib takes half a second

        plots.save_figure(plots.draw_effects(effects), plot)
    tables.print_written_files(output, plot)


def agreements(effects: Mapping[str, Effects]) -> list[dict[str, Any]]:
    """Return Kendall's tau for each two tasks with at least three values in common."""
    pairs = ((first, second, agreement(effects[first], effects[second])) for first, second in combinations(effects, 2))
    return [{"task": first, "and": second} | tau for first, second, tau in pairs if tau is not None]


def _print(effects: Mapping[str, Effects], format: Format) -> None:
    console = tables.make_console()
    for name, task_effects in effects.items():
        headings = {"value": task_effects.axis, "mean": task_effects.metric}
        lines = [
            {headings.get(column, column): cell for column, cell in line.items()} for line in task_effects.records()
        ]
        baseline = f"{task_effects.values[0]}, at equal {task_effects.at or 'shape'}"
        title = f"{name}: effect of {task_effects.axis} on {task_effects.metric}, relative to {baseline}"
        # A narrow terminal drops the last columns.
        columns = sorted(lines[0], key=lambda column: column in (task_effects.metric, "n"))
        tables.print_records(console, lines, columns, title, format, drop_order=())
        if task_effects.incomparable:
            values = abbreviate(task_effects.incomparable, most=10)
            tables.print_line(console, f"not comparable with {baseline}: {values}")
        if task_effects.degrees_of_freedom < 1:
            line = "no intervals: too few rows. Add architectures of more shapes, or more seeds of one shape."
            tables.print_line(console, line)
    if taus := agreements(effects):
        title = "Kendall's tau between the orders of two tasks, with its 95 % interval"
        tables.print_records(console, taus, list(taus[0]), title, format)
