"""The Pareto front: the rows that no other row dominates.

Shapes: n = rows, m = objectives.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from results.records.columns import MUST_MATCH_COLUMNS
from results.records.row import Direction
from results.records.table import check_columns, has_numbers, keep
from search_spaces.support.errors import UserError

GROUP_COLUMNS = ("status", *MUST_MATCH_COLUMNS)
"""Columns that define groups of comparable rows."""


def front(table: pa.Table, objectives: Mapping[str, Direction]) -> pa.Table:
    """Return the rows of a table that are on its front, in the table's order.

    Equal rows all stay. Only complete rows with a number in every objective take part. Rows of different tasks, task
    versions, data, presets or starting weights are not comparable, so each such group has its own front.

    Raises:
        UserError: No objective, an unknown one, one that holds no numbers, or a direction that is neither max nor min.
    """
    check_objectives(table, objectives)
    candidates = _candidates(table, objectives)
    if not len(candidates):
        return candidates
    values = _less_is_better(candidates, objectives)
    mask = np.zeros(len(values), dtype=bool)
    for members in _groups(candidates):
        mask[members] = non_dominated(values[members])
    return keep(candidates, mask)


def knee(table: pa.Table, objectives: Mapping[str, Direction]) -> pa.Table:
    """Return the knee point of a front: the row with the least sum of normalized objectives.

    Each objective is scaled from its best (0) to its worst (1) on the front. With two objectives, the knee is farthest
    beyond the line through the front's ends, or an end if no row lies beyond it (I. Das, "On characterizing the knee of
    the Pareto curve", 1999). With more, it need not be the farthest from the plane through the best rows of each.
    Fronts that cannot be compared have one knee each.

    Args:
        table: A front from `front`.
        objectives: Column -> "max" or "min".
    """
    values = _less_is_better(table, objectives)
    mask = np.zeros(len(values), dtype=bool)
    for members in _groups(table) if len(values) else ():
        points = values[members]
        spread = np.ptp(points, axis=0)
        shares = (points - points.min(axis=0)) / np.where(spread == 0, 1.0, spread)
        mask[members[shares.sum(axis=1).argmin()]] = True
    return keep(table, mask)


def check_objectives(table: pa.Table, objectives: Mapping[str, Direction]) -> None:
    """Raise UserError if a table has no front in these objectives."""
    if not objectives:
        raise UserError("missing-value", "a front needs at least one objective.", option="objectives")
    check_columns(table.column_names, objectives)
    for name, direction in objectives.items():
        if direction not in ("max", "min"):
            message = f"the direction of objective {name!r} must be max or min, got {direction!r}."
            raise UserError("unknown-name", message, option=name, value=direction, choices=("max", "min"))
        if not has_numbers(table.field(name)):
            message = f"objective {name!r} must be a column of numbers, got {table[name].type}."
            raise UserError("wrong-type", message, option=name, type=str(table[name].type))


def non_dominated(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each of n points is on the front, where less is better in each of m values: [n, m] -> [n].

    A point is dominated if another is no worse in every value and better in one. Equal points are on the front together
    or not at all. A point with a NaN is not on the front and dominates nothing.

    Two values take a sort and a scan, O(n log n). More take O(n f) for a front of f points, at worst O(n^2).
    """
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(f"values must have the shape [n, m] with m > 0, got {values.shape}.")
    mask = np.zeros(len(values), dtype=bool)
    numbers = np.flatnonzero(~np.isnan(values).any(axis=1))
    if numbers.size:
        values = values[numbers]
        mask[numbers] = _of_two(values) if values.shape[1] == 2 else _of_many(values)
    return mask


def not_surely_dominated(values: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each of n points is undominated if it were two standard errors better: [n, m] and [n, m] -> [n].

    Only points on the front need to be tested: O(n f) for a front of f points.
    """
    mask = np.ones(len(values), dtype=bool)
    optimistic = values - 2 * errors
    for point in np.unique(values[non_dominated(values)], axis=0):
        mask &= ~((point <= optimistic).all(axis=1) & (point < optimistic).any(axis=1))
    return mask


def _of_two(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    order = np.argsort(values[:, 0])
    first, second = values[order].T  # [n] each
    starts = np.flatnonzero(np.r_[True, first[1:] > first[:-1]])  # where each run of equal first values starts
    best = np.minimum.reduceat(second, starts)  # the least second value of each run
    on_front = np.r_[True, best[1:] < np.minimum.accumulate(best)[:-1]]
    lengths = np.diff(np.r_[starts, len(first)])
    mask = np.empty(len(values), dtype=bool)
    mask[order] = np.repeat(on_front, lengths) & (second == np.repeat(best, lengths))
    return mask


def _of_many(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    order = np.lexsort(values.T[::-1])
    points = np.ascontiguousarray(values[order].T)  # [m, n]
    starts = np.r_[True, (points[:, 1:] != points[:, :-1]).any(axis=0)]  # equal points are adjacent: take one of each
    rest = points[:, starts]
    numbers = np.arange(rest.shape[1])
    on_front = np.zeros(rest.shape[1], dtype=bool)
    while numbers.size:
        # The first remaining point in lexicographic order is dominated by no other. Remove the points that it
        # dominates.
        on_front[numbers[0]] = True
        better = np.zeros(numbers.size, dtype=bool)
        for value in rest[1:]:
            better |= value < value[0]
        stay = np.flatnonzero(better)
        if stay.size == numbers.size - 1:
            rest, numbers = rest[:, 1:], numbers[1:]  # a view: only the point itself was removed
        else:
            rest, numbers = rest.take(stay, axis=1), numbers[stay]
    mask = np.empty(len(values), dtype=bool)
    mask[order] = on_front[np.cumsum(starts) - 1]
    return mask


def _candidates(table: pa.Table, objectives: Mapping[str, Direction]) -> pa.Table:
    mask = np.ones(len(table), dtype=bool)
    for name in objectives:
        mask &= _numbers(table[name].is_null(nan_is_null=True)) == 0
    if "status" in table.column_names:
        codes, names = _codes(table["status"])
        mask &= codes == (names.index("complete") if "complete" in names else -1)
    return keep(table, mask)


def _less_is_better(table: pa.Table, objectives: Mapping[str, Direction]) -> NDArray[np.float64]:
    """Return the objectives of a table's rows, with signs such that less is better: [n, m]."""
    signs = [-1.0 if direction == "max" else 1.0 for direction in objectives.values()]
    return np.stack([_numbers(table[name]) for name in objectives], axis=1) * signs


def _groups(table: pa.Table) -> Iterator[NDArray[np.intp]]:
    code = np.zeros(len(table))
    for name in MUST_MATCH_COLUMNS:
        if name in table.column_names:
            codes, values = _codes(table[name])
            code = code * len(values) + codes
    order = np.argsort(code, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(code[order])) + 1)


def _codes(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], list[Any]]:
    """Encode values as numbers, null being a value too; return the codes and the values by code."""
    encoding = column.combine_chunks().dictionary_encode("encode")
    return _numbers(encoding.indices), encoding.dictionary.to_pylist()


def _numbers(column: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    # to_numpy would import pandas, which takes longer than a query.
    array = column.cast(pa.float64(), safe=False)  # integers beyond 2^53 are rounded
    contiguous = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return np.asarray(np.from_dlpack(contiguous), dtype=np.float64)
