"""Answers from rows: means over groups, the best architectures, and the front of architectures."""

from collections.abc import Collection, Mapping, Sequence
from math import frexp, ldexp
from typing import Any

import pyarrow as pa
from pyarrow import compute

from results.records.arrays import array
from results.records.columns import (
    ARCHITECTURE_COLUMNS,
    COUNT_COLUMNS,
    MUST_MATCH_COLUMNS,
    PROFILE_COLUMNS,
    PROVENANCE_COLUMNS,
    column_names,
)
from results.records.row import Direction
from results.records.table import check_columns, from_records, has_numbers
from results.stats.architecture_summary import (
    ArchitectureSummary,
    expected_columns,
    knees,
    summarize,
    training_key,
)
from results.stats.features import Record
from search_spaces.support.errors import UserError

FRONT_COLUMNS = ("p_front", "on_front", "tier")
"""Columns of the architectures of a front, besides their posterior means."""

_TRAINING_COLUMNS = ("seed", "identity", "status", "error", *(name for name in PROVENANCE_COLUMNS if name != "wall_s"))
"""Columns that describe a training, not its architecture."""

_MEASURED = frozenset({"wall_s", "seconds", *PROFILE_COLUMNS} - {"batch", "trace", "profile_note"})
_MEASURED_PREFIXES = ("speed_", "test_")
"""Columns of times, measurements on a device, throughputs and test metrics."""


def group_columns(schema: pa.Schema, by: Sequence[str]) -> list[str]:
    """Return the columns of an answer that hold its groups: `range_wall_s` for a measured column, such as `wall_s`.

    Measured are times, throughputs and other measurements on a device, and metrics. Groups hold equal values of any
    other column, and values between two powers of two of a measured one.
    """
    check_columns(schema.names, by)
    return [f"range_{name}" if _is_measured(name, schema) else name for name in by]


def means(table: pa.Table, by: Sequence[str], metrics: Sequence[str]) -> pa.Table:
    """Return one line per group: its columns, the number of complete rows, and each metric's mean and standard error.

    Rows of different tasks, task versions, data, presets or starting weights form separate groups. The standard error
    (`_se`) is that of the mean over rows, whatever they differ in; it is null with one row. Counts have no error, and
    their mean is rounded. The number of rows is `n`, or `group_n` if a column has that name.

    Args:
        table: A table from `results.records.table`.
        by: Columns to group by, see `group_columns`.
        metrics: Columns of numbers; those that the table lacks are left out.

    Raises:
        UserError: An unknown column, or a metric that holds no numbers.
    """
    names_of_groups = group_columns(table.schema, by)
    numbers = [name for name in dict.fromkeys(metrics) if name in table.column_names and name not in names_of_groups]
    for name in numbers:
        if not has_numbers(table.field(name)):
            message = f"{name!r} must be a column of numbers to be averaged, got {table[name].type}."
            raise UserError("wrong-type", message, option=name, type=str(table[name].type))
    complete = _with_edges(_complete(table), by)
    keys = [*_group_columns(complete, by), *names_of_groups]
    noisy = [name for name in numbers if name not in COUNT_COLUMNS]
    aggregations = [(name, "mean") for name in numbers] + [
        (name, function) for name in noisy for function in ("stddev", "count")
    ]
    options = {"stddev": compute.VarianceOptions(ddof=1)}
    groups = complete.group_by(keys, use_threads=False).aggregate(
        [([], "count_all"), *((name, function, options.get(function)) for name, function in aggregations)]
    )
    groups = groups.sort_by([(name, "ascending") for name in keys])
    columns = {name: groups[name] for name in keys}
    for name in {*names_of_groups} - {*by}:
        columns[name] = array([*map(_range_text, groups[name].to_pylist())], str)
    names = {*keys, *numbers, *(f"{name}_se" for name in noisy)}
    (number,) = column_names(names, "group_", ["n"])
    columns[number] = groups["count_all"]
    columns |= {
        name: compute.round(groups[f"{name}_mean"]).cast(pa.int64()) for name in numbers if name in COUNT_COLUMNS
    }
    for name in noisy:
        count = compute.cast(groups[f"{name}_count"], pa.float64())
        columns[name] = groups[f"{name}_mean"]
        columns[f"{name}_se"] = compute.divide(groups[f"{name}_stddev"], compute.sqrt(count))
    return pa.table(columns)


def best(
    table: pa.Table,
    metric: str,
    direction: Direction,
    by: Sequence[str] = (),
    held_out: Collection[str] = (),
    averages: Sequence[str] = (),
) -> pa.Table:
    """Return the architectures of a table, best first, or the best one of each group.

    Each has its mean over seeds (`seeds`) with its standard error, its posterior mean (`expected`), and the probability
    that it is the best (`p_best`). Architectures are ordered by `expected`. For a group, `p_best` is the probability
    that the best architecture is in it. It is null if the metric has no errors. Rows that cannot be compared are
    separate, as in `means`.

    Args:
        table: A table from `results.records.table`; only complete rows take part.
        metric: The column to maximize or minimize.
        direction: "max" or "min".
        by: Columns to group by, see `group_columns`; of numbers that differ between seeds, their mean.
        held_out: See `results.stats.architecture_summary.summarize`.
        averages: More columns to average over seeds, if they hold numbers.

    Raises:
        UserError: An unknown column, one that holds no numbers, or a group that does not describe an architecture.
    """
    names = group_columns(table.schema, by)
    summaries = summarize(table, {metric: direction}, held_out, _numbers(table, [*by, *averages]))
    for name in by:
        if name in _TRAINING_COLUMNS or not all(name in summary.record for summary in summaries):
            message = f"--best compares architectures, and {name!r} does not describe one. Remove it from --by."
            raise UserError("conflict", message, option="--by", value=name)
    incomparable = _group_columns(_complete(table), [])
    groups: dict[tuple[Any, ...], list[ArchitectureSummary]] = {}
    for index, summary in enumerate(summaries):
        cells = _cells(summary.record, by, names) if by else {"": index}
        key = (*(summary.record.get(name) for name in incomparable), *cells.values())
        groups.setdefault(key, []).append(summary)
    sign = -1.0 if direction == "max" else 1.0

    def order(group: Sequence[ArchitectureSummary]) -> tuple[Any, ...]:
        values = [sign * summary.expected[metric] for summary in group]
        return *(str(group[0].record.get(name)) for name in incomparable), min(values)

    leaders = (_leader(group, metric, sign) for group in sorted(groups.values(), key=order))
    records = [{**leader, **_cells(leader, by, names)} for leader in leaders]
    return _lines(records, [*incomparable, *names, "expected", "p_best"], table)


def front(
    table: pa.Table,
    objectives: Mapping[str, Direction],
    held_out: Collection[str] = (),
    averages: Sequence[str] = (),
) -> pa.Table:
    """Return the architectures on the front of posterior means; rows that cannot be compared have fronts of their own.

    Each has its mean over seeds with its standard error, and the columns of `ArchitectureSummary.columns`.

    Args:
        table: A table from `results.records.table`; only complete rows take part.
        objectives: Column -> "max" or "min".
        held_out: See `results.stats.architecture_summary.summarize`.
        averages: More columns to average over seeds, if they hold numbers.

    Raises:
        UserError: No objective, an unknown one, or one that holds no numbers.
    """
    return _summary_lines(_front(table, objectives, held_out, averages), objectives, table)


def knee(
    table: pa.Table,
    objectives: Mapping[str, Direction],
    held_out: Collection[str] = (),
    averages: Sequence[str] = (),
) -> pa.Table:
    """Return the knee point of each front of `front`, by posterior means. Arguments and errors as there."""
    return _summary_lines(knees(_front(table, objectives, held_out, averages), objectives), objectives, table)


def trainings(table: pa.Table, architectures: pa.Table) -> pa.Table:
    """Return the complete rows of these architectures, lines of `best`, `front` or `knee`, in the lines' order."""
    complete = _complete(table)
    numbers: dict[tuple[Any, ...], list[int]] = {}
    keys = (*MUST_MATCH_COLUMNS, "key", *ARCHITECTURE_COLUMNS)
    names = [name for name in complete.column_names if name in keys or name.startswith("recipe_")]
    for number, row in enumerate(complete.select(names).to_pylist()):
        numbers.setdefault(training_key(row), []).append(number)
    of_lines = (numbers.get(training_key(line), []) for line in architectures.to_pylist())
    return complete.take(array([number for some in of_lines for number in some], int))


def _front(
    table: pa.Table, objectives: Mapping[str, Direction], held_out: Collection[str], averages: Sequence[str]
) -> list[ArchitectureSummary]:
    summaries = summarize(table, objectives, held_out, _numbers(table, averages))
    return [summary for summary in summaries if summary.on_front]


def _numbers(table: pa.Table, names: Sequence[str]) -> list[str]:
    """Return the columns of numbers among these that may describe an architecture."""
    present = [name for name in names if name in table.column_names and name not in _TRAINING_COLUMNS]
    return [name for name in present if has_numbers(table.field(name))]


def _summary_lines(
    summaries: Sequence[ArchitectureSummary], objectives: Mapping[str, Direction], table: pa.Table
) -> pa.Table:
    leading = [*_group_columns(_complete(table), []), "seeds", *expected_columns(objectives), *FRONT_COLUMNS]
    return _lines([summary.columns() for summary in summaries], leading, table)


def _lines(records: Sequence[Record], leading: Sequence[str], table: pa.Table) -> pa.Table:
    """Return records as a table: the leading columns, and those of the table that any record has; all if none."""
    columns = [name for name in table.column_names if not records or any(name in record for record in records)]
    return from_records(records, dict.fromkeys([*leading, *columns]))


def _leader(group: Sequence[ArchitectureSummary], metric: str, sign: float) -> Record:
    """Return the record of a group's best architecture, with the probability that the best of all is in the group."""
    leader = min(group, key=lambda summary: sign * summary.expected[metric])
    p_best = sum(summary.p_front for summary in group)
    return {**leader.record, "expected": leader.expected[metric], "p_best": min(p_best, 1.0)}


def _is_measured(name: str, schema: pa.Schema) -> bool:
    is_measurement = name in _MEASURED or name.startswith(_MEASURED_PREFIXES) or f"{name}_se" in schema.names
    return is_measurement and has_numbers(schema.field(name))


def _with_edges(table: pa.Table, by: Sequence[str]) -> pa.Table:
    """Return a table with a column of lower edges for each measured column to group by."""
    edges = {
        group: array([*map(_lower_edge, table[name].to_pylist())], float)
        for name, group in zip(by, group_columns(table.schema, by), strict=True)
        if group != name
    }
    return pa.table({**{name: table[name] for name in table.column_names}, **edges})


def _cells(record: Record, by: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
    """Return the cells of a record's group."""
    values = {group: (name, record[name]) for name, group in zip(by, names, strict=True)}
    return {
        group: value if group == name else _range_text(_lower_edge(value)) for group, (name, value) in values.items()
    }


def _lower_edge(value: float | None) -> float | None:
    """Return the nearest power of two at or below a number, with its sign; 0 and null stay."""
    if not value:
        return value
    fraction, exponent = frexp(value)
    return ldexp(0.5 if fraction > 0 else -0.5 if fraction == -0.5 else -1.0, exponent)


def _range_text(edge: float | None) -> str | None:
    """Return the range that starts at a power of two, "16 to 32"; "0" for 0."""
    if not edge:
        return None if edge is None else "0"
    return f"{edge:.4g} to {edge * 2 if edge > 0 else edge / 2:.4g}"


def _complete(table: pa.Table) -> pa.Table:
    if "status" not in table.column_names:
        return table
    return table.filter(compute.is_in(table["status"], array(["complete"], str)))  # compute.equal would import pandas


def _group_columns(table: pa.Table, by: Sequence[str]) -> list[str]:
    """Return the columns that make rows of this table incomparable."""
    columns = [name for name in MUST_MATCH_COLUMNS if name in table.column_names and name not in by]
    return [name for name in columns if len(table[name].unique()) > 1]
