"""Group rows by columns: means over each group, and the best architecture of each."""

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import compute

from results.records.columns import COUNT_COLUMNS, MUST_MATCH_COLUMNS, PROVENANCE_COLUMNS, column_names
from results.records.row import Direction
from results.records.table import check_columns, from_records, has_numbers
from results.stats.architecture_summary import ArchitectureSummary, summarize
from results.stats.features import Record
from search_spaces.support.errors import UserError

_TRAINING_COLUMNS = ("seed", "identity", "status", "error", *PROVENANCE_COLUMNS)
"""Columns that describe a training, not its architecture."""


def means(table: pa.Table, by: Sequence[str], metrics: Sequence[str]) -> pa.Table:
    """Return one line per group: its columns, the number of complete rows, and each metric's mean and standard error.

    Rows of different tasks, task versions, data, presets or starting weights form separate groups. The standard error
    (`_se`) is that of the mean over rows, whatever they differ in; it is null with one row. Counts have no error, and
    their mean is rounded. The number of rows is `n`, or `group_n` if a column has that name.

    Args:
        table: A table from `results.records.table`.
        by: Columns to group by.
        metrics: Columns of numbers; those that the table lacks are left out.

    Raises:
        UserError: An unknown column, or a metric that holds no numbers.
    """
    check_columns(table.column_names, by)
    numbers = [name for name in dict.fromkeys(metrics) if name in table.column_names and name not in by]
    for name in numbers:
        if not has_numbers(table.field(name)):
            message = f"{name!r} must be a column of numbers to be averaged, got {table[name].type}."
            raise UserError("wrong-type", message, option=name, type=str(table[name].type))
    complete = _complete(table)
    keys = [*_group_columns(complete, by), *by]
    noisy = [name for name in numbers if name not in COUNT_COLUMNS]
    aggregations = [(name, "mean") for name in numbers] + [
        (name, function) for name in noisy for function in ("stddev", "count")
    ]
    options = {"stddev": compute.VarianceOptions(ddof=1)}
    groups = complete.group_by(keys, use_threads=False).aggregate(
        [([], "count_all"), *((name, function, options.get(function)) for name, function in aggregations)]
    )
    columns = {name: groups[name] for name in keys}
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
    return pa.table(columns).sort_by([(name, "ascending") for name in keys])


def best(
    table: pa.Table, metric: str, direction: Direction, by: Sequence[str] = (), held_out: Collection[str] = ()
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
        by: Columns to group by.
        held_out: See `results.stats.architecture_summary.summarize`.

    Raises:
        UserError: An unknown column, or one that holds no numbers.
    """
    check_columns(table.column_names, by)
    summaries, group_columns = summarize(table, {metric: direction}, held_out), _group_columns(_complete(table), [])
    for name in by:
        if name in _TRAINING_COLUMNS or not all(name in summary.record for summary in summaries):
            message = f"--best compares architectures, and {name!r} does not describe one. Remove it from --by."
            raise UserError("conflict", message, option="--by", value=name)
    groups: dict[tuple[Any, ...], list[ArchitectureSummary]] = {}
    for index, summary in enumerate(summaries):
        key = [summary.record.get(name) for name in by] if by else [index]
        groups.setdefault((*(summary.record.get(name) for name in group_columns), *key), []).append(summary)
    sign = -1.0 if direction == "max" else 1.0

    def order(group: Sequence[ArchitectureSummary]) -> tuple[Any, ...]:
        values = [sign * summary.expected[metric] for summary in group]
        return *(str(group[0].record.get(name)) for name in group_columns), min(values)

    records = [_leader(group, metric, sign) for group in sorted(groups.values(), key=order)]
    columns = (name for name in table.column_names if any(name in record for record in records))
    return from_records(records, dict.fromkeys([*group_columns, *by, "expected", "p_best", *columns]))


def _leader(group: Sequence[ArchitectureSummary], metric: str, sign: float) -> Record:
    """Return the record of a group's best architecture, with the probability that the best of all is in the group."""
    leader = min(group, key=lambda summary: sign * summary.expected[metric])
    p_best = sum(summary.p_front for summary in group)
    return {**leader.record, "expected": leader.expected[metric], "p_best": min(p_best, 1.0)}


def _complete(table: pa.Table) -> pa.Table:
    return table.filter(compute.equal(table["status"], "complete")) if "status" in table.column_names else table


def _group_columns(table: pa.Table, by: Sequence[str]) -> list[str]:
    """Return the columns that make rows of this table incomparable."""
    columns = [name for name in MUST_MATCH_COLUMNS if name in table.column_names and name not in by]
    return [name for name in columns if len(table[name].unique()) > 1]
