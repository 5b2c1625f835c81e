"""Warnings about rows that should not be read as one table. Loads no torch."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from results.records.columns import MUST_MATCH_COLUMNS
from results.records.table import condition_of

_REASONS = {
    "task_version": "different versions of a task are not comparable",
    "data": "results on different data are not comparable",
    "preset": "presets train for different lengths",
    "start": "pre-trained weights have had more training steps",
    "counter": "counters may count FLOPs differently",
}
"""Column -> why rows that differ in it should not be read as one table."""


def mixture_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns that `mixtures` looks at."""
    return [name for name in columns if name in ("task", "seed", *_REASONS) or name.startswith("recipe_")]


def mixtures(table: pa.Table) -> list[str]:
    """Return a warning for each mixture of rows in a table, with a condition that keeps one kind."""
    notes = []
    for column, reason in _REASONS.items():
        if {"task", column} <= set(table.column_names) and len(table[column].unique()) > 1:
            for (task,), values in _values(table, ["task"], column).items():
                if len(values) > 1:
                    notes.append(_describe(task, column, values, reason))
    return notes + _recipes(table, _settings(table)) + _seeds(table)


def mixtures_within(table: pa.Table, by: Sequence[str]) -> list[str]:
    """Return a warning for each preset whose groups mix recipes.

    Rows that cannot be compared are no mixture: `results.query.grouping.means` groups them separately.
    """
    keys = [name for name in (*MUST_MATCH_COLUMNS, *by) if name in table.column_names]
    settings = [name for name in _settings(table) if name not in keys]
    return _recipes(table, [n for n in settings if any(len(values) > 1 for values in _values(table, keys, n).values())])


def _settings(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name.startswith("recipe_") and len(table[name].unique()) > 1]


def _seeds(table: pa.Table) -> list[str]:
    """Return a warning for each task with rows of several seeds."""
    if not {"task", "seed"} <= set(table.column_names):
        return []
    by_task = {task: values for (task,), values in _values(table, ["task"], "seed").items() if len(values) > 1}
    advice = "in one table; single seeds differ by chance. Average over them with --best METRIC or --by key"
    return [
        f"{task}: {len(values)} values of seed ({abbreviate(values)}) {advice}." for task, values in by_task.items()
    ]


def _recipes(table: pa.Table, settings: Sequence[str]) -> list[str]:
    """Return a warning for each preset of a task whose rows differ in these settings."""
    if not {"task", "preset"} <= set(table.column_names):
        return []
    differing: dict[tuple[Any, ...], dict[str, list[Any]]] = {}
    for column in settings:
        for key, values in _values(table, ["task", "preset"], column).items():
            if len(values) > 1:
                differing.setdefault(key, {})[column] = values
    notes = []
    for (task, preset), columns in sorted(differing.items()):
        texts = [f"{column.removeprefix('recipe_')} ({abbreviate(values)})" for column, values in columns.items()]
        first = next(iter(columns))
        keep = f"Select one: {condition_of(first, columns[first][0])}."
        notes.append(f"{task}: several recipes of preset {preset} in one table: {abbreviate(texts)}. {keep}")
    return notes


def _values(table: pa.Table, by: Sequence[str], column: str) -> dict[tuple[Any, ...], list[Any]]:
    """Return the sorted values of a column per combination of the `by` columns; null counts only for `start`."""
    values: dict[tuple[Any, ...], list[Any]] = {}
    lists = [table[name].to_pylist() for name in (*by, column)]
    for *key, value in sorted(set(zip(*lists, strict=True)), key=repr):
        if value is not None or column == "start":  # a row that failed early may have no data
            values.setdefault(tuple(map(str, key)), []).append(value)
    return {key: sorted(values[key], key=lambda value: (value is not None, value)) for key in sorted(values)}


def _describe(task: str, column: str, values: Sequence[Any], reason: str) -> str:
    mixture = f"{len(values)} values of {column} in one table ({abbreviate(values)})"
    return f"{task}: {mixture}; {reason}. Select one: {condition_of(column, values[0])}."


def abbreviate(values: Sequence[Any], most: int = 3) -> str:
    """Return the first values as text, and how many more there are."""
    text = ", ".join("none" if value is None else str(value) for value in values[:most])
    return text + (f" and {len(values) - most} more" if len(values) > most else "")
