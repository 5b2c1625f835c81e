"""What people see: the front as a table and a picture, a Row, the lists. Loads no torch."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nas.objectives import COSTS
from nas.options import Format
from results.row import Direction
from search_spaces.errors import UserError, printable
from search_spaces.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from results.row import Row

SHAPE_COLUMNS = ("topology", "depth", "heads", "head_dim")
MOST_OPERATORS = 10
"""How many operators of a trace are shown."""

_PICTURES = (".png", ".pdf", ".svg")


def screen(*, stderr: bool = False) -> Console:
    """Where tables go: the terminal, or 120 columns where there is none to fit into."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=120)


def say(console: Console, line: str) -> None:
    """Print a line as it is."""
    console.print(printable(line), soft_wrap=True, highlight=False, markup=False)


def say_bad(lines: Sequence[str]) -> None:
    """Name what could not be read as a Row, on standard error."""
    for line in lines:
        say(screen(stderr=True), f"passed over, {line}")


def for_a_terminal(format: Format, output: Path | None) -> bool:
    """Whether to print a table. Raises UserError where a table is to go to a file."""
    if format is Format.TABLE and output is not None:
        raise UserError(f"a table is for the terminal; --output {output} needs --format csv, json, jsonl or parquet.")
    return format is Format.TABLE


def write_rows(rows: "Sequence[Row]", format: Format, output: Path | None) -> None:
    """Write Rows to a file or to standard output: whole as JSON Lines, and as a flat table in any other format."""
    from results import export, lines, table

    if format is Format.JSONL:
        lines.write(rows, output)
    else:
        export.write(table.from_rows(rows), format.value, output)


def readable(row: "Row") -> dict[str, Any]:
    """A Row's columns as somebody reads them: its recipe and its versions a line each."""
    columns = row.columns()
    for prefix, name in (("recipe_", "recipe"), ("version_", "versions")):
        own = [column for column in columns if column.startswith(prefix)]
        values = [f"{column.removeprefix(prefix)} {columns.pop(column)}" for column in own]
        columns[name] = ", ".join(values)
    return columns


def print_comparison(
    console: Console,
    title: str,
    records: Sequence[Mapping[str, Any]],
    baselines: Mapping[str, Mapping[str, float]],
) -> None:
    """Print what architectures do not have in common as a table, and the rest above it."""
    same = [name for name in records[0] if len(records) > 1 and all(one[name] == records[0][name] for one in records)]
    shared = ", ".join(f"{name} {records[0][name]}" for name in same if records[0][name] not in ("", None))
    columns = [name for name in records[0] if name not in same]
    print_records(console, records, columns, f"{title}; all: {shared or 'nothing'}")
    for line in baseline_lines(baselines):
        say(console, line)


def front_columns(objectives: Sequence[str], metrics: Sequence[str]) -> list[str]:
    """The columns a front is shown with: architecture, costs, objectives, validation and test metrics apart."""
    shown = [f"{prefix}{name}{ending}" for name in metrics[:1] for prefix in ("", "test_") for ending in ("", "_se")]
    return list(dict.fromkeys(("key", *SHAPE_COLUMNS, "params", "flops", *objectives, *shown)))


def print_records(console: Console, records: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str) -> None:
    """Print records as a table; a metric and its standard error share a cell."""
    shown = [column for column in columns if not column.endswith("_se")]
    say(console, title)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), collapse_padding=True)
    for column in shown:
        numbers = all(isinstance(record.get(column), int | float | None) for record in records)
        heading = escape(printable(column.replace("_", "\n", 1)))  # two short lines leave room for the numbers
        table.add_column(heading, justify="right" if numbers else "left", no_wrap=True)
    for record in records:
        table.add_row(*(escape(printable(_cell(record, column))) for column in shown))
    console.print(table)


def _cell(record: Mapping[str, Any], column: str) -> str:
    value, error = record.get(column), record.get(f"{column}_se")
    for field, _, runs in (part.partition("=") for part in (record.get("blocks") or "").split(",")):
        if field == column:
            return runs
    if value is None:
        return "-"
    if isinstance(value, float):
        return (
            f"{value:.{decimals(error)}f}±{error:.{decimals(error)}f}" if isinstance(error, float) else f"{value:.4g}"
        )
    if column in COSTS:
        return short(value)
    return str(value)


def decimals(error: float) -> int:
    """Digits behind the point that show a standard error: three, and more of one that they would show as nothing."""
    return min(max(3, -math.floor(math.log10(error))), 6) if error > 0 else 3


def short(number: int) -> str:
    """Three digits and a suffix: 371k, 1.27M."""
    for size, suffix in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{float(f'{number / size:.3g}'):g}{suffix}"
    return str(number)


def print_record(console: Console, record: Mapping[str, Any]) -> None:
    """Print one record, a line a column; what is empty is left out."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for column in record:
        if not column.endswith("_se") and record[column] not in (None, ""):
            table.add_row(*(escape(printable(text)) for text in (column, _cell(record, column))))
    console.print(table)


def baseline_lines(baselines: Mapping[str, Mapping[str, float]]) -> list[str]:
    """One line for each simple method that results are held against."""
    lines = []
    for name, columns in baselines.items():
        cells = (f"{column} {_cell(columns, column)}" for column in columns if not column.endswith("_se"))
        lines.append(f"{name}: {', '.join(cells)}")
    return lines


def check_picture(path: Path | None) -> None:
    """Raise UserError where a picture cannot be of that kind: before a search and not after it."""
    if path is not None and path.suffix.lower() not in _PICTURES:
        raise UserError(f"a picture must end in {', '.join(_PICTURES)}, got {str(path)!r}.")


def draw_front(records: Sequence[Mapping[str, Any]], objectives: Mapping[str, Direction], title: str) -> "Figure":
    """Draw every architecture, coloured by topology, and the front through those whose record says `stands`.

    The first cost among the objectives, or else the second of them, is the x axis; error bars are standard errors.
    """
    from matplotlib.figure import Figure  # half a second that only a picture needs

    x_name = next((name for name in objectives if name in COSTS), [*objectives, *objectives][1])
    y_name = next((name for name in objectives if name != x_name), x_name)
    points = [record for record in records if record.get(x_name) is not None and record.get(y_name) is not None]
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    _draw_points(axes, points, x_name, y_name)
    best = sorted((record for record in points if record["stands"]), key=lambda record: record[x_name])
    across, up = ([record[name] for record in best] for name in (x_name, y_name))
    axes.step(across, up, where="post", color="black", linewidth=1, label="front")
    axes.plot(across, up, "o", markersize=13, markerfacecolor="none", markeredgecolor="black", markeredgewidth=0.8)
    _label(axes, [record[x_name] for record in points], x_name, y_name)
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def _draw_points(axes: "Axes", points: Sequence[Mapping[str, Any]], x_name: str, y_name: str) -> None:
    """Each topology with a colour and a marker of its own."""
    names = sorted({record["topology"] for record in points})
    for i, name in enumerate(names):
        own = [record for record in points if record["topology"] == name]
        axes.errorbar(
            [record[x_name] for record in own],
            [record[y_name] for record in own],
            yerr=[record.get(f"{y_name}_se") or 0 for record in own],
            fmt="osD^vP*X<>"[(i // 10 + i) % 10],
            color=f"C{i % 10}",
            elinewidth=0.6,
            alpha=0.85,
            label=name,
        )


def _label(axes: "Axes", span: Sequence[float], x_name: str, y_name: str) -> None:
    from matplotlib.ticker import EngFormatter, LogLocator

    if span and min(span) > 0 and max(span) / min(span) > 5:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))  # more of them overlap
        axes.xaxis.set_minor_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name if y_name in COSTS else f"{y_name} (validation)")
    axes.grid(alpha=0.25)


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a picture. Raises UserError where that cannot be."""
    check_picture(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)
    except OSError as error:
        raise UserError(f"the picture cannot be written to {path}: {error.strerror}. Give another --plot.") from error
