"""`nas effects`: what each value of an axis is worth, a table a task, and whether tasks agree. Loads no torch."""

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas.report.format import Format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nas.report.study import Study
    from results.stats.effects import Effects


def show(
    study: "Study",
    axis: str,
    metric: str | None = None,
    at: str | None = None,
    where: str | None = None,
    format: Format = Format.TABLE,
    output: Path | None = None,
    plot: Path | None = None,
) -> None:
    """What each value of AXIS is worth with all else equal, over resnet or the first of them, by all rows of a study.

    Architectures of one shape are held against each other, or with --at those of one cost. Intervals hold 95 % for all
    values together. Of several tasks it says as well whether they put the values in one order (Kendall's tau).
    """
    from nas.report import plots, tables
    from results.records import export, table

    found = (study if where is None else study.where(where)).effects(axis, metric, at=at)
    if tables.for_a_terminal(format, output):
        _print(found, format)
    else:
        lines = [
            {"task": name, "metric": one.metric, "axis": one.axis} | line | {"value": str(line["value"])}
            for name, one in found.items()
            for line in one.records()
        ]
        export.write(table.from_records(lines), format.value, output)
    if plot is not None:
        plots.save_figure(plots.draw_effects(found), plot)
    tables.say_path(output, plot)


def agreements(found: "Mapping[str, Effects]") -> list[dict[str, Any]]:
    """A line for each two tasks that have three values in common."""
    from results.stats.effects import agreement

    pairs = ((one, other, agreement(found[one], found[other])) for one, other in combinations(found, 2))
    return [{"task": one, "and": other} | tau for one, other, tau in pairs if tau is not None]


def _print(found: "Mapping[str, Effects]", format: Format) -> None:
    from nas.report import tables
    from results.query.mixtures import few

    console = tables.screen()
    for name, one in found.items():
        named = {"value": one.axis, "mean": one.metric}
        lines = [{named.get(column, column): cell for column, cell in line.items()} for line in one.records()]
        title = f"{name}: {one.metric} of each {one.axis} over {one.values[0]}, of equal {one.at or 'shape'}"
        columns = sorted(lines[0], key=lambda column: column in (one.metric, "n"))  # a narrow terminal drops the last
        tables.print_records(console, lines, columns, title, format)
        if one.apart:
            values = few(one.apart, most=10)
            tables.say(console, f"not held against {one.values[0]}, with which they share nothing: {values}")
        if one.freedom < 1:
            tables.say(
                console,
                "no intervals: as much is asked as was measured. Give rows of more shapes, or of one with more seeds.",
            )
    if taus := agreements(found):
        title = "Kendall's tau of their orders, and 95 % of what it may be"
        tables.print_records(console, taus, list(taus[0]), title, format)
