"""Tables on the terminal: fronts, comparisons, Rows, lists. Loads no torch."""

import math
import os
import shlex
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nas.environment.passwords import without_passwords
from nas.environment.paths import DEFAULT_STORE
from nas.report.format import Format
from results.records.cell_text import cell_text, markdown_cell
from results.records.columns import ARCHITECTURE_COLUMNS
from search_spaces.support.errors import UserError, printable
from tasks.registry import kind_of

if TYPE_CHECKING:
    from results.records.row import Row
    from results.stats.architecture_summary import ArchitectureSummary

SHAPE_COLUMNS = ("topology", "depth", "heads", "head_dim")
CONTENDER_CHANCE = 0.1
"""An architecture with at least this probability of being on the front is a contender."""

DROP_ORDER = ("data", "status", "head_dim", "key", "params", "seeds", "heads")
"""Columns that a narrow terminal drops before others, in this order."""

_COMPARISON_COLUMNS = ("hidden", "head_dim", "heads", "depth", "difference", "low", "high", "verdict", "topology")
"""Columns of a comparison that a narrow terminal drops last: how architectures differ, and the verdict."""

_FILES = (".csv", ".json", ".jsonl", ".parquet")
"""Suffixes of files of rows."""

MAX_OPERATORS = 10
"""Most operators of a trace that are printed."""


def make_console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal; without one, COLUMNS or else 120 characters wide."""
    console = Console(stderr=stderr)
    return (
        console if console.is_terminal or os.environ.get("COLUMNS", "").isdigit() else Console(stderr=stderr, width=120)
    )


def print_line(console: Console, line: str) -> None:
    """Print a line without markup, highlighting or wrapping."""
    console.print(printable(line), soft_wrap=True, highlight=False, markup=False)


def results_command(name: str, storage: str) -> str:
    """Return the `nas results` command of a study or of files of rows, without a password."""
    if "://" not in storage:
        return f"nas results {' '.join(f'--from {shlex.quote(file)}' for file in storage.split(','))}"
    return f"nas results --study {shlex.quote(name)}{_storage_option(storage)}"


def export_command(name: str, storage: str, task: str) -> str:
    """Return the `nas export` command of a study's network at the knee, without a password.

    A task in a file is named, since a study runs no code.
    """
    file = f" --task {shlex.quote(task)}" if kind_of(task) == "file" else ""
    return f"nas export {shlex.quote(name)}{file}{_storage_option(storage)}"


def load_network_call(name: str, storage: str, task: str) -> str:
    """Return the Python call that loads this network, without a password; a task in a file is named."""
    file = f", task={task!r}" if kind_of(task) == "file" else ""
    store = "" if storage == DEFAULT_STORE else f", storage={without_passwords(storage)!r}"
    return f"nas.load_network({name!r}{file}{store})"


def _storage_option(storage: str) -> str:
    return "" if storage == DEFAULT_STORE else f" --storage {shlex.quote(without_passwords(storage))}"


def is_for_terminal(format: Format, output: Path | None = None) -> bool:
    """Return whether to print a table. Raises UserError if a table is to go to a file."""
    is_table = format in (Format.TABLE, Format.MARKDOWN)
    if is_table and output is not None:
        endings = f"{', '.join(_FILES[:-1])} or {_FILES[-1]}"
        message = f"a file is {endings}, got --output {output}. For another name give --format csv."
        raise UserError("unsupported", message, option="--output", path=str(output), choices=_FILES)
    return is_table


def print_written_files(*files: Path | None) -> None:
    """Print on standard error which files were written; None stands for a file that was not requested."""
    for file in filter(None, files):
        print_line(make_console(stderr=True), f"{file} written")


def readable_columns(row: "Row") -> dict[str, Any]:
    """Return a Row's columns with recipe and versions in one line each."""
    columns = row.columns()
    for prefix, name in (("recipe_", "recipe"), ("version_", "versions")):
        names = [column for column in columns if column.startswith(prefix)]
        values = [f"{column.removeprefix(prefix)} {columns.pop(column)}" for column in names]
        columns[name] = ", ".join(values)
    return columns


def print_comparison(
    console: Console,
    title: str,
    records: Sequence[Mapping[str, Any]],
    notes: Iterable[str],
    format: Format = Format.TABLE,
) -> None:
    """Print a title with the columns that architectures share, a table of those in which they differ, and notes."""
    names = [name for name in records[0] if not name.endswith("_se")]  # a metric's cell includes its standard error
    cells = [{name: (record[name], record.get(f"{name}_se")) for name in names} for record in records]
    same = [name for name in names if len(records) > 1 and all(record[name] == cells[0][name] for record in cells)]
    common = ", ".join(f"{name} {records[0][name]}" for name in same if records[0][name] not in ("", None))
    column_names = [name for name in records[0] if name.removesuffix("_se") not in same]
    columns = [name for name in column_names if any(record[name] not in ("", None) for record in records)]
    drop_order = [
        *(name for name in dict.fromkeys([*DROP_ORDER, *columns]) if name not in _COMPARISON_COLUMNS),
        *_COMPARISON_COLUMNS[:4],
    ]
    print_records(console, records, columns, f"{title}; all: {common}" if common else title, format, drop_order)
    for line in notes:
        print_line(console, line)


def comparison_notes(
    records: Sequence[Mapping[str, Any]], metric: str, baselines: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """Return the legend of a comparison's intervals, if it has any, and one line for each baseline."""
    has_intervals = any(record.get("low") is not None for record in records)
    what = f"difference: {metric} minus the first architecture's, paired by seed"
    legend = [f"{what}; low and high: 95 % intervals that hold for all together"] if has_intervals else []
    return [*legend, *baseline_lines(baselines)]


def front_columns(axes: Iterable[str], objectives: Sequence[str], metrics: Iterable[str]) -> list[str]:
    """Return the columns of a front: architecture, axes of the space, costs, objectives, validation and test metrics.

    Axes of the recipe are last; those of single blocks have no columns.
    """
    axes = [*axes]
    shape = [name for name in axes if name in ARCHITECTURE_COLUMNS]
    recipe = [axis.replace(".", "_", 1) for axis in axes if axis.startswith("recipe.")]
    measured = [*objectives, *(f"{prefix}{name}" for name in metrics for prefix in ("", "test_"))]
    with_errors = [f"{name}{ending}" for name in measured for ending in ("", "_se")]
    return list(dict.fromkeys(("key", *SHAPE_COLUMNS, *shape, "params", "flops", *with_errors, *recipe)))


def summary_columns(names: Iterable[str], objectives: Iterable[str]) -> list[str]:
    """Return the columns of a table of architectures: the mark of those on the front, `names`, and the summary."""
    # Imported here: SciPy's linear algebra takes a quarter of a second.
    from results.stats.architecture_summary import expected_columns

    return ["on_front", *names, "seeds", *expected_columns(objectives), "p_front", "tier"]


def front_drop_order(columns: Sequence[str], needed: Container[str]) -> list[str]:
    """Return the columns of a front that a narrow terminal drops before others, in this order; never the key."""
    groups = (name for prefix in ("test_", "recipe_") for name in columns if name.startswith(prefix))
    shape = (name for name in ARCHITECTURE_COLUMNS if name not in ("depth", "topology"))
    least = ("data", "status", "head_dim", "heads", "params", "seeds", "tier")
    optional = dict.fromkeys((*least, *groups, "flops", "p_front", *shape, "depth", "topology"))
    return [name for name in optional if name not in needed]


def front_records(architectures: "Sequence[ArchitectureSummary]") -> list[dict[str, Any]]:
    """Return one record for each contender of the front."""
    return [*map(summary_record, contenders(architectures))]


def summary_record(architecture: "ArchitectureSummary") -> dict[str, Any]:
    """Return an architecture's columns as a table prints them: seeds as "1+2", and "*" if it is on the front."""
    num_held_out = architecture.record["seeds"] if architecture.is_held_out else 0
    seeds = f"{len(architecture.identities) - num_held_out}{f'+{num_held_out}' if num_held_out else ''}"
    return {**architecture.columns(), "seeds": seeds, "on_front": "*" if architecture.on_front else ""}


def front_notes(architectures: "Sequence[ArchitectureSummary]") -> list[str]:
    """Return the legend below the table of a front: one line for each of on_front, seeds, ±, p_front and tier."""
    candidates = contenders(architectures)
    mark = "on_front: * marks the front of posterior means (expected)"
    if any(math.isnan(architecture.p_front) for architecture in candidates):
        unknown = "±: unknown, since no architecture has two seeds; give --seeds 2 for errors, p_front and tiers"
        return [mark, unknown]
    notes = ["seeds: search + held-out; only held-out seeds enter the mean where there are any"]
    if not all(architecture.is_held_out for architecture in candidates if architecture.on_front):
        notes = ["seeds: search + held-out; means of search seeds are optimistic (more held-out: --reeval-fraction)"]
    if all(len(architecture.identities) == 1 for architecture in architectures):
        notes.append("±: one standard error, over examples alone; --seeds 2 adds the seeds' part")
    else:
        notes.append("±: one standard error, over examples and seeds")
    notes.append("p_front: probability of being on the front")
    groups = max(architecture.tier for architecture in candidates)
    notes.append(
        f"tier: {groups} groups from worst to best; a new one begins at a significant difference"
        if groups > 1
        else "tier: no two architectures on this front differ significantly"
    )
    return [mark, *notes]


def contenders(architectures: "Sequence[ArchitectureSummary]") -> "list[ArchitectureSummary]":
    """Return the architectures that are on the front, or are with probability CONTENDER_CHANCE or more."""
    return [
        architecture
        for architecture in architectures
        if architecture.on_front or architecture.p_front >= CONTENDER_CHANCE
    ]


def print_records(
    console: Console,
    records: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    title: str,
    format: Format = Format.TABLE,
    drop_order: Sequence[str] = DROP_ORDER,
) -> None:
    """Print records as a table; a metric and its standard error share a cell.

    If the terminal is too narrow, the columns of `drop_order` are dropped first, in that order, then the last columns.
    """
    cells = table_texts(records, columns)
    names = list(cells)
    print_line(console, title)
    if format is Format.MARKDOWN:
        _print_markdown(cells)
        return
    headings = {column: printable(column.replace("_", "\n", 1)) for column in names}  # two short lines are narrower
    lines = {column: [*headings[column].split("\n"), *cells[column]] for column in names}
    visible = _columns_that_fit(lines, console.width, drop_order)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), collapse_padding=True, show_edge=False)
    for column in visible:
        numbers = all(isinstance(record.get(column), int | float | None) for record in records)
        table.add_column(escape(headings[column]), justify="right" if numbers else "left", no_wrap=True)
    for line in zip(*(cells[column] for column in visible), strict=True):
        table.add_row(*map(escape, line))
    console.print(table)
    if len(visible) < len(names):
        hidden = ", ".join(name for name in names if name not in visible)
        print_line(console, f"columns that do not fit: {hidden} (set COLUMNS=200)")


def table_texts(records: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Return the printed texts of each column of records; a metric and its standard error share a cell."""
    columns = list(dict.fromkeys(name for record in records for name in record)) if columns is None else columns
    names = [column for column in columns if not column.endswith("_se") or column.removesuffix("_se") not in columns]
    return {column: [printable(cell_text(record, column)) for record in records] for column in names}


def _print_markdown(cells: Mapping[str, Sequence[str]]) -> None:
    """Print all columns as a Markdown table after an empty line."""
    lines = [list(cells), *zip(*cells.values(), strict=True)]
    print()
    for number, line in enumerate(lines):
        print("|", " | ".join(markdown_cell(text) for text in line), "|")
        if number == 0:
            print("|", " | ".join("---" for _ in cells), "|")


def _columns_that_fit(cells: Mapping[str, Sequence[str]], width: int, drop_order: Sequence[str]) -> list[str]:
    """Return the columns that fit: those of `drop_order` go first, then the last; no cell is cut."""
    width += 1  # the last column needs only one space after it
    widths = {column: 2 + max(map(cell_len, lines)) for column, lines in cells.items()}
    last = [column for column in reversed([*cells]) if column not in drop_order]
    for column in [*(column for column in drop_order if column in cells), *last[:-1]]:
        if sum(widths.values()) > width:
            del widths[column]
    return list(widths)


def print_record(console: Console, record: Mapping[str, Any]) -> None:
    """Print one record, one line for each column that is not empty."""
    columns = [column for column in record if not column.endswith("_se") and record[column] not in (None, "")]
    print_pairs(console, [(column, cell_text(record, column)) for column in columns])


def print_pairs(console: Console, pairs: Iterable[tuple[str, str]], title: str | None = None) -> None:
    """Print pairs of a name and a text, one line each."""
    table = Table(title=title, title_justify="left", box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for pair in pairs:
        table.add_row(*(escape(printable(text)) for text in pair))
    console.print(table)


def print_texts(
    console: Console,
    headings: Sequence[str],
    lines: Iterable[Sequence[str]],
    no_wrap_headings: Sequence[str] = (),
    right: Sequence[str] = (),
) -> None:
    """Print a table of texts; long ones are folded, except in the columns of `no_wrap_headings` and `right`.

    Args:
        console: Where to print.
        headings: The columns' headings.
        lines: One text for each column.
        no_wrap_headings: Headings of columns that are never folded.
        right: Headings of columns that are never folded and are aligned to the right.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), collapse_padding=True)
    for heading in headings:
        justify: Literal["left", "right"] = "right" if heading in right else "left"
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=heading in (*no_wrap_headings, *right))
    for line in lines:
        table.add_row(*map(escape, line))
    console.print(table)


def baseline_lines(baselines: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return one line for each baseline."""
    lines = []
    for name, columns in baselines.items():
        cells = (f"{column} {cell_text(columns, column)}" for column in columns if not column.endswith("_se"))
        lines.append(f"{name}: {', '.join(cells)}")
    return lines
