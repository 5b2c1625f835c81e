"""Effects of an axis on a metric with all else equal, and whether tasks agree on the order of its values.

A least-squares model explains each measurement by its value of the axis and by its shape: all other columns of the
architecture and recipe. Only architectures of one shape are compared, whatever else was trained. At equal cost, a cubic
of the logarithm of the cost replaces the shape; the topology is added unless it is the axis. Seeds are averaged first.
With only one shape, each row counts and the effect of its seed is removed: differences are paired.

Shapes: n = architectures or rows, v = values, p = pairs of values, D = draws.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log, sqrt
from statistics import fmean
from typing import Any, final

import numpy as np

from results.records.columns import ARCHITECTURE_COLUMNS, MUST_MATCH_COLUMNS, ROW_COLUMNS
from results.records.row import Direction
from results.stats.features import Record
from results.stats.gaussian_process import Array
from results.stats.intervals import half_width
from search_spaces.support.errors import UserError

REFERENCE = "resnet"
"""The value that others are compared with; if absent, the first value is."""

COSTS: Mapping[str, str] = {"params": "params", "flops": "flops", "time": "wall_s"}
"""Cost of each value relative to that of the reference -> its column."""

DRAWS = 4000

_DEGREE = 3
_TOLERANCE = 1e-6
"""Tolerance below which a coefficient counts as determined by the equations."""

_EXACT = 1e-9
"""Relative to the largest measurement: smaller differences are rounding errors, as when the metric is a cost."""


@final
@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of the values of an axis relative to the first of `values`, in units of the metric.

    Attributes:
        axis: The column.
        metric: The measured column.
        direction: "max" or "min": which is better.
        at: The cost at which architectures are equal; None if their shape is.
        values: Values of the axis, the reference first.
        means: Mean of all measurements with each value, whatever the shape: [v].
        numbers: Number of architectures (of rows, if there is one shape) with each value: [v].
        effects: Effect of each value relative to the first: [v], 0 for the first.
        covariance: Covariance of `effects`: [v, v].
        degrees_of_freedom: Residual degrees of freedom; without any there are no intervals.
        incomparable: Values that no shape connects with the first; they are not in `values`.
        rounding: Smaller differences are rounding errors.
        costs: Cost -> its ratio to that of the first value, all else equal: [v], 1 for the first. Without costs that
            are not known of all measurements; time only if all were made on one device with equally many threads.
    """

    axis: str
    metric: str
    direction: Direction
    at: str | None
    values: tuple[Any, ...]
    means: Array
    numbers: tuple[int, ...]
    effects: Array
    covariance: Array
    degrees_of_freedom: int
    incomparable: tuple[Any, ...]
    rounding: float
    costs: Mapping[str, Array]

    def records(self) -> list[dict[str, Any]]:
        """Return one record per value, the best first: simultaneous 95 % intervals (Bonferroni) and cost ratios."""
        sign = -1 if self.direction == "max" else 1
        records = [self._record(i) for i in range(len(self.values))]
        return sorted(records, key=lambda record: float(sign * record["difference"]))

    def _record(self, i: int) -> dict[str, Any]:
        difference = float(self.effects[i])
        record = {"value": self.values[i], "n": self.numbers[i], "mean": float(self.means[i]), "difference": difference}
        ratios = {f"{name}_ratio": float(values[i]) for name, values in self.costs.items()}
        if i == 0 or self.degrees_of_freedom < 1:
            return {**record, "low": None, "high": None, "verdict": None, **ratios}
        reach = half_width(sqrt(self.covariance[i, i]), self.degrees_of_freedom, len(self.values) - 1)
        low, high = difference - reach, difference + reach
        better = "better" if (low > 0) == (self.direction == "max") else "worse"
        verdict = better if low > 0 or high < 0 else "not distinguishable"
        return {**record, "low": low, "high": high, "verdict": verdict, **ratios}

    def draws(self, random: np.random.Generator) -> Array:
        """Draw effects from Student's distribution, more being better: [D, v]."""
        sign = 1.0 if self.direction == "max" else -1.0
        values, vectors = np.linalg.eigh(self.covariance)
        normal = random.standard_normal((DRAWS, len(values))) * np.sqrt(np.maximum(values, 0)) @ vectors.T
        spread = np.sqrt(random.chisquare(self.degrees_of_freedom, (DRAWS, 1)) / self.degrees_of_freedom)
        return np.asarray(sign * (self.effects + normal / spread))


def check_axis(axis: str, metrics: Container[str]) -> None:
    """Raise UserError for a metric, and for a column of every Row that does not describe the architecture."""
    if (axis in ROW_COLUMNS and axis not in ARCHITECTURE_COLUMNS) or axis.removesuffix("_se").removeprefix(
        "test_"
    ) in metrics:
        message = (
            f"an axis must distinguish architectures, got {axis!r}. Choose for example topology, depth or recipe_lr."
        )
        raise UserError("unsupported", message, option="axis", value=axis)


def comparable(rows: Sequence[Record]) -> dict[str, list[Record]]:
    """Group comparable rows, by task and the values in which its groups differ."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        groups.setdefault(_key(row, MUST_MATCH_COLUMNS), []).append(row)
    by_name = {}
    for group, members in groups.items():
        siblings = [key for key in groups if key[0] == group[0]]
        differences = [value for value, *rest in zip(group, *siblings, strict=True) if len({*rest}) > 1]
        by_name[", ".join(map(str, [group[0] or "rows", *differences]))] = members
    return by_name


def effects(records: Sequence[Record], axis: str, metric: str, direction: Direction, at: str | None = None) -> Effects:
    """Estimate the effects of an axis.

    Args:
        records: Comparable rows as records of columns; only complete ones with both columns take part.
        axis: A column that describes the architecture or recipe: `topology`, `depth`, `recipe_lr` ...
        metric: A column of numbers.
        direction: "max" or "min": which is better.
        at: A cost, `flops` or `params`, at which architectures are equal instead of by shape.

    Raises:
        UserError: No two values of the axis are comparable.
    """
    complete = [row for row in records if _is_complete(row, axis, metric)]
    units, design = _at_cost(complete, axis, metric, at) if at else _at_shape(complete, axis, metric)
    values = sorted({unit[axis] for unit in units}, key=lambda value: (value != REFERENCE, value))
    indicators = _indicators([unit[axis] for unit in units], values)[:, 1:]
    matrix, response = np.hstack([indicators, design]), np.array([unit[metric] for unit in units])
    squares = matrix.T @ matrix
    inverse = np.linalg.pinv(squares, hermitian=True)
    estimable = np.abs(inverse @ squares - np.eye(len(squares))).max(axis=1, initial=0.0) < _TOLERANCE
    columns = [i for i in range(len(values) - 1) if estimable[i]]
    if not columns:
        raise _no_comparison(complete, axis, metric, at)
    rounding = _EXACT * float(np.abs(response).max())
    projection = inverse @ matrix.T
    coefficients = projection @ response
    coefficients[np.abs(coefficients) < rounding] = 0.0
    degrees_of_freedom = len(units) - int(np.linalg.matrix_rank(matrix))
    error = (
        float(((response - matrix @ coefficients) ** 2).sum() / degrees_of_freedom) ** 0.5
        if degrees_of_freedom
        else 0.0
    )
    variance = error**2 if error > rounding else 0.0
    levels = [values[0], *(values[i + 1] for i in columns)]
    readings = [[unit[metric] for unit in units if unit[axis] == value] for value in levels]
    return Effects(
        axis=axis,
        metric=metric,
        direction=direction,
        at=at,
        values=tuple(levels),
        means=np.array([fmean(group) for group in readings]),
        numbers=tuple(map(len, readings)),
        effects=np.array([0.0, *coefficients[columns]]),
        covariance=np.pad(variance * inverse[np.ix_(columns, columns)], ((1, 0), (1, 0))),
        degrees_of_freedom=degrees_of_freedom,
        incomparable=tuple(sorted({row[axis] for row in complete} - {*levels})),
        rounding=rounding,
        costs={
            name: np.exp([0.0, *np.round(projection @ np.log([unit[COSTS[name]] for unit in units]), 9)[columns]])
            for name in _known_costs(units, complete)
        },
    )


def _known_costs(units: Sequence[Record], rows: Sequence[Record]) -> list[str]:
    """Return the costs that all units have; time only if all rows are of one device and number of threads."""
    places = {(row.get("device"), row.get("threads")) for row in rows}
    is_one_place = len(places) == 1 and None not in next(iter(places))
    names = [name for name in COSTS if name != "time" or is_one_place]
    return [name for name in names if all((unit.get(COSTS[name]) or 0) > 0 for unit in units)]


def _no_comparison(rows: Sequence[Record], axis: str, metric: str, at: str | None) -> UserError:
    values = {row[axis] for row in rows}
    if len(values) < 2:
        have = f"all rows with {metric!r} have {axis} = {next(iter(values))!r}" if values else f"no row has {metric!r}"
        remedy = "Give rows that differ, or choose another axis or metric."
        message = f"{have}: there is nothing to compare. {remedy}"
    else:
        need = "Give rows of more architectures, or leave --at out." if at else "Give more rows, or --at flops."
        reason = f"no two values of {axis!r} have {metric!r} with all else equal"
        message = f"{reason}: there is nothing to compare. {need}"
    return UserError("missing-rows", message, axis=axis, metric=metric, at=at, values=len(values))


def agreement(first: Effects, second: Effects) -> dict[str, Any] | None:
    """Return Kendall's tau between two orders of the common values: 1 for equal orders, -1 for reversed ones.

    A pair of equal values counts 0, as between networks that a task makes the same. Topologies that differ only in
    options match if each side has one of that name. `low` and `high` contain 95 % of the
    taus between draws of both effects. They lie nearer to 0 than `tau` if the errors are large. None if there are fewer
    than three common values.
    """
    common = _in_common(first.values, second.values)
    if len(common) < 3:
        return None
    sides = [(fit, list(indices)) for fit, indices in zip((first, second), zip(*common, strict=True), strict=True)]
    signs = [1.0 if fit.direction == "max" else -1.0 for fit in (first, second)]
    tau = _tau(*(sign * _order(fit.effects[side], fit) for sign, (fit, side) in zip(signs, sides, strict=True)))
    record: dict[str, Any] = {"values": len(common), "tau": float(tau), "low": None, "high": None}
    if min(first.degrees_of_freedom, second.degrees_of_freedom) > 0:
        random = np.random.default_rng(0)
        taus = _tau(*(_order(fit.draws(random)[:, side], fit) for fit, side in sides))
        low, high = np.quantile(taus, (0.025, 0.975))
        record |= {"low": float(low), "high": float(high)}
    return record


def plain_names(values: Sequence[Any]) -> list[Any]:
    """Return the values, topologies without their options if the name stays unique among the values."""
    plain = [value.partition("(")[0] if _is_one_topology(value) else value for value in values]
    return [name if plain.count(name) == 1 else value for name, value in zip(plain, values, strict=True)]


def _is_one_topology(value: Any) -> bool:
    """Return whether a value names one topology, with no runs of blocks such as `dca/resnet` or `dca[:2]+resnet`."""
    return isinstance(value, str) and "/" not in value and "[" not in value


def _in_common(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the index pairs of common values: equal values first, then equal plain names."""
    same = {value: second.index(value) for value in first if value in second}
    names = plain_names(second)
    for value, name in zip(first, plain_names(first), strict=True):
        if value not in same and name in names and names.index(name) not in same.values():
            same[value] = names.index(name)
    return [(first.index(value), position) for value, position in same.items()]


def _order(effects: Array, fit: Effects) -> Array:
    """Return the sign of the difference of each two effects, 0 for a rounding error: [..., v] -> [..., p]."""
    first, second = np.triu_indices(effects.shape[-1], 1)
    differences = effects[..., first] - effects[..., second]
    return np.asarray(np.sign(differences) * (np.abs(differences) >= fit.rounding))


def _tau(first: Array, second: Array) -> Array:
    """Compute Kendall's tau of two orders along the last axis: [..., p] -> [...]."""
    return np.asarray((first * second).mean(axis=-1))


def _is_complete(row: Record, axis: str, metric: str) -> bool:
    value = row.get(metric)
    is_complete = row.get("status", "complete") == "complete" and row.get(axis) is not None
    return is_complete and isinstance(value, int | float) and isfinite(value)


def _control_columns(rows: Sequence[Record], axis: str) -> list[str]:
    """Return the columns that must be equal in compared architectures.

    Columns that follow from the axis and the rest are left out: hidden features that equalize parameters, or a learning
    rate per topology. Columns with few values are tested first, since two training lengths may each have learning rates
    of their own.
    """
    names = dict.fromkeys(name for row in rows for name in row if name != axis)
    controls = [name for name in names if name in ARCHITECTURE_COLUMNS and name != "hidden"]
    candidates = [name for name in names if name == "hidden" or name.startswith("recipe_")]
    for name in sorted(candidates, key=lambda name: len({_key(row, [name]) for row in rows})):
        groups: dict[tuple[Any, ...], set[Any]] = {}
        for row in rows:
            groups.setdefault(_key(row, [axis, *controls]), set()).update(_key(row, [name]))
        if any(len(values) > 1 for values in groups.values()):
            controls.append(name)
    return controls


def _key(row: Record, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in names)


def _average(rows: Sequence[Record], metric: str, names: Sequence[str]) -> list[Record]:
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        groups.setdefault(_key(row, names), []).append(row)
    averages = (metric, *COSTS.values())
    return [{**group[0], **{name: _mean(group, name) for name in averages}} for group in groups.values()]


def _mean(rows: Sequence[Record], name: str) -> float | None:
    readings = [row[name] for row in rows if row.get(name) is not None]
    return fmean(readings) if len(readings) == len(rows) else None


def _at_shape(records: Sequence[Record], axis: str, metric: str) -> tuple[Sequence[Record], Array]:
    """Return the units that are compared, and one-hot columns of their shapes or seeds: n, [n, shapes or seeds]."""
    controls = _control_columns(records, axis)
    values: dict[tuple[Any, ...], set[Any]] = {}
    for row in records:
        values.setdefault(_key(row, controls), set()).add(row[axis])
    shapes = [shape for shape, levels in values.items() if len(levels) > 1]
    comparable_rows = [row for row in records if _key(row, controls) in shapes]
    if len(shapes) == 1:
        return comparable_rows, _indicators([row.get("seed") for row in comparable_rows])
    units = _average(comparable_rows, metric, [axis, *controls])
    return units, _indicators([_key(unit, controls) for unit in units])


def _at_cost(records: Sequence[Record], axis: str, metric: str, cost: str) -> tuple[Sequence[Record], Array]:
    """Return the units that are compared, and terms of cost, topology and (with one shape) seed: n, [n, terms]."""
    controls, with_cost = _control_columns(records, axis), [row for row in records if row.get(cost)]
    is_one_shape = len({_key(row, controls) for row in with_cost}) == 1
    units = with_cost if is_one_shape else _average(with_cost, metric, [axis, *controls])
    logs = np.array([log(unit[cost]) for unit in units])
    size = (logs - logs.mean()) / (logs.std() or 1.0) if len(logs) else logs
    terms = np.stack([size**power for power in range(_DEGREE + 1)], axis=1)
    topologies = [unit.get("topology") for unit in units] if axis != "topology" else []
    seeds = [unit.get("seed") for unit in units] if is_one_shape else []
    factors = [_indicators(keys)[:, 1:] for keys in (topologies, seeds) if keys]
    return units, np.hstack([terms, *factors])


def _indicators(keys: Sequence[Any], categories: Sequence[Any] | None = None) -> Array:
    """One-hot encode keys, by these categories or by all that occur: [n, categories]."""
    levels = list(dict.fromkeys(keys)) if categories is None else categories
    return np.array([[float(key == column) for column in levels] for key in keys]).reshape(len(keys), len(levels))
