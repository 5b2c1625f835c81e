"""What each value of an axis is worth with all else equal, and whether tasks put these values in one order.

By least squares: what an architecture measured is the sum of what its value of the axis is worth and of what is due to
its shape - all that is not the axis - so that only architectures of one shape are held against each other, whatever
else was trained. Or, at equal cost, of a cubic of the logarithm of that cost and what its topology is worth, if that is
not the axis. Seeds are averaged first. Where there is but one shape, each row counts and what is due to its seed is
taken out: the differences are paired.

Shapes: n = architectures or rows, v = values, D = draws.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from math import isfinite, log, sqrt
from statistics import fmean
from typing import Any, final

import numpy as np

from results.records.columns import COMPARABLE, FIXED, SHAPE
from results.records.row import Direction
from results.stats.features import Record
from results.stats.gaussian_process import Array
from results.stats.intervals import reached
from search_spaces.support.errors import UserError

REFERENCE = "resnet"
"""What others are held against where it is among them; else it is the first value."""

DRAWS = 4000

_DEGREE = 3
_SEEN = 1e-6
"""How far a coefficient may be from what the equations say of it, and be determined by them."""

_EXACT = 1e-9
"""As a share of the largest reading: less is the computer's rounding, as where costs are what is measured."""


@final
@dataclass(frozen=True, eq=False)
class Effects:
    """What each value of an axis is worth over the first of `values`, in the units of a metric.

    Attributes:
        axis: The column.
        metric: That which was measured.
        direction: Whether more or less of it is better.
        at: The cost at which architectures are equal; None where it is their shape.
        values: Of the axis, what others are held against first.
        means: Of all that was measured with each, whatever its shape: [v].
        numbers: How many architectures, or rows where there is one shape, have each: [v].
        over: What each is worth over the first: [v], 0 of the first.
        covariance: Of these: [v, v].
        freedom: Degrees of freedom that are left to tell errors by; without any there are no intervals.
        apart: Values that no shape connects with the first; they are not among `values`.
    """

    axis: str
    metric: str
    direction: Direction
    at: str | None
    values: tuple[Any, ...]
    means: Array
    numbers: tuple[int, ...]
    over: Array
    covariance: Array
    freedom: int
    apart: tuple[Any, ...]

    def records(self) -> list[dict[str, Any]]:
        """A line a value, the best first, with intervals at 95 % for all of them together (Bonferroni)."""
        sign = -1 if self.direction == "max" else 1
        lines = [self._record(i) for i in range(len(self.values))]
        return sorted(lines, key=lambda line: float(sign * line["over"]))

    def _record(self, i: int) -> dict[str, Any]:
        over = float(self.over[i])
        line = {"value": self.values[i], "n": self.numbers[i], "mean": float(self.means[i]), "over": over}
        if i == 0 or self.freedom < 1:
            return {**line, "low": None, "high": None, "than": None}
        reach = reached(sqrt(self.covariance[i, i]), self.freedom, len(self.values) - 1)
        low, high = over - reach, over + reach
        better = "better" if (low > 0) == (self.direction == "max") else "worse"
        return {**line, "low": low, "high": high, "than": better if low > 0 or high < 0 else "not distinguishable"}

    def draws(self, random: np.random.Generator) -> Array:
        """What the values may be worth, more being better: [D, v], by Student's distribution."""
        sign = 1.0 if self.direction == "max" else -1.0
        values, vectors = np.linalg.eigh(self.covariance)
        normal = random.standard_normal((DRAWS, len(values))) * np.sqrt(np.maximum(values, 0)) @ vectors.T
        spread = np.sqrt(random.chisquare(self.freedom, (DRAWS, 1)) / self.freedom)
        return np.asarray(sign * (self.over + normal / spread))


def check_axis(axis: str, measured: Container[str]) -> None:
    """Raise UserError for a column of every Row that tells no architectures apart, and for what was measured."""
    if (axis in FIXED and axis not in SHAPE) or axis.removesuffix("_se").removeprefix("test_") in measured:
        message = f"an axis tells architectures apart, and {axis!r} is none. Ask topology, depth or recipe_lr."
        raise UserError("unsupported", message, option="axis", value=axis)


def comparable(lines: Sequence[Record]) -> dict[str, list[Record]]:
    """Lines that can be held against each other, under their task's name and what tells them from others of it."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for line in lines:
        groups.setdefault(_place(line, COMPARABLE), []).append(line)
    named = {}
    for group, own in groups.items():
        others = [other for other in groups if other[0] == group[0]]
        telling = [value for value, *all_of in zip(group, *others, strict=True) if len({*all_of}) > 1]
        named[", ".join(map(str, [group[0] or "rows", *telling]))] = own
    return named


def effects(lines: Sequence[Record], axis: str, metric: str, direction: Direction, at: str | None = None) -> Effects:
    """What the values of an axis are worth.

    Args:
        lines: Rows that can be held against each other, as records of columns; only complete ones with both columns
            take part.
        axis: A column that tells architectures apart: `topology`, `depth`, `recipe_lr` ...
        metric: A column of numbers.
        direction: Whether more or less of it is better.
        at: A cost, `flops` or `params`, at which architectures are equal in place of their shape.

    Raises:
        UserError: No two values of the axis to be held against each other.
    """
    told = [line for line in lines if _is_told(line, axis, metric)]
    units, design = _at_cost(told, axis, metric, at) if at else _at_shape(told, axis, metric)
    values = sorted({unit[axis] for unit in units}, key=lambda value: (value != REFERENCE, value))
    worth = _indicators([unit[axis] for unit in units], values)[:, 1:]
    matrix, measured = np.hstack([worth, design]), np.array([unit[metric] for unit in units])
    squares = matrix.T @ matrix
    inverse = np.linalg.pinv(squares, hermitian=True)
    seen = np.abs(inverse @ squares - np.eye(len(squares))).max(axis=1, initial=0.0) < _SEEN
    kept = [i for i in range(len(values) - 1) if seen[i]]
    if not kept:
        raise _nothing_to_hold(told, axis, metric, at)
    nothing = _EXACT * np.abs(measured).max()
    fitted = inverse @ matrix.T @ measured
    fitted[np.abs(fitted) < nothing] = 0.0
    freedom = len(units) - int(np.linalg.matrix_rank(matrix))
    error = float(((measured - matrix @ fitted) ** 2).sum() / freedom) ** 0.5 if freedom else 0.0
    variance = error**2 if error > nothing else 0.0
    named = [values[0], *(values[i + 1] for i in kept)]
    own = [[unit[metric] for unit in units if unit[axis] == value] for value in named]
    return Effects(
        axis=axis,
        metric=metric,
        direction=direction,
        at=at,
        values=tuple(named),
        means=np.array([fmean(each) for each in own]),
        numbers=tuple(map(len, own)),
        over=np.array([0.0, *fitted[kept]]),
        covariance=np.pad(variance * inverse[np.ix_(kept, kept)], ((1, 0), (1, 0))),
        freedom=freedom,
        apart=tuple(sorted({line[axis] for line in told} - {*named})),
    )


def _nothing_to_hold(told: Sequence[Record], axis: str, metric: str, at: str | None) -> UserError:
    values = {line[axis] for line in told}
    if len(values) < 2:
        have = (
            f"of rows with {metric!r} all have {axis} = {next(iter(values))!r}" if values else f"no row has {metric!r}"
        )
        remedy = "Give rows that differ, or ask for another axis or metric."
        message = f"{have}: there is nothing to hold it against. {remedy}"
    else:
        need = "Give rows of more architectures, or leave --at out." if at else "Give rows that have, or --at flops."
        reason = f"no two values of {axis!r} have {metric!r} with all else equal"
        message = f"{reason}: nothing is held against anything. {need}"
    return UserError("missing-rows", message, axis=axis, metric=metric, at=at, values=len(values))


def agreement(one: Effects, other: Effects) -> dict[str, Any] | None:
    """Kendall's tau between the orders of the values that both have: 1 where they are one order, -1 where reversed.

    A topology with other options is the same one, where each has it once. `low` and `high` hold 95 % of the taus
    between what the values may be worth by their errors, which lie nearer to 0 than `tau` where these are large.
    None where they have fewer than three values in common.
    """
    common = _in_common(one.values, other.values)
    if len(common) < 3:
        return None
    signs = [1.0 if each.direction == "max" else -1.0 for each in (one, other)]
    places = [list(own) for own in zip(*common, strict=True)]
    tau = _tau(*(sign * each.over[place] for sign, each, place in zip(signs, (one, other), places, strict=True)))
    found: dict[str, Any] = {"values": len(common), "tau": float(tau), "low": None, "high": None}
    if min(one.freedom, other.freedom) > 0:
        random = np.random.default_rng(0)
        drawn = _tau(*(each.draws(random)[:, place] for each, place in zip((one, other), places, strict=True)))
        low, high = np.quantile(drawn, (0.025, 0.975))
        found |= {"low": float(low), "high": float(high)}
    return found


def plain_names(values: Sequence[Any]) -> list[Any]:
    """The values; of topologies that are one run the names without options, where no other of these values has that."""
    plain = [value.partition("(")[0] if _is_one_topology(value) else value for value in values]
    return [name if plain.count(name) == 1 else value for name, value in zip(plain, values, strict=True)]


def _is_one_topology(value: Any) -> bool:
    """Whether it is a text of no runs of blocks, `dca/resnet` or `dca[:2]+resnet`."""
    return isinstance(value, str) and "/" not in value and "[" not in value


def _in_common(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[int, int]]:
    """The places of each value that both have: the same, or else one of the same plain name."""
    same = {value: other.index(value) for value in one if value in other}
    names = plain_names(other)
    for value, name in zip(one, plain_names(one), strict=True):
        if value not in same and name in names and names.index(name) not in same.values():
            same[value] = names.index(name)
    return [(one.index(value), place) for value, place in same.items()]


def _tau(one: Array, other: Array) -> Array:
    """Kendall's tau along the last axis: [..., v] -> [...]."""
    first, second = np.triu_indices(one.shape[-1], 1)
    together = np.sign(one[..., first] - one[..., second]) * np.sign(other[..., first] - other[..., second])
    return np.asarray(together.mean(axis=-1))


def _is_told(line: Record, axis: str, metric: str) -> bool:
    value = line.get(metric)
    is_complete = line.get("status", "complete") == "complete" and line.get(axis) is not None
    return is_complete and isinstance(value, int | float) and isfinite(value)


def _others(lines: Sequence[Record], axis: str) -> list[str]:
    """The columns in which architectures are to be equal.

    What follows from the axis and the rest is none of them: hidden features that make parameters equal, or a learning
    rate that each topology was given. What has the fewest values is asked first: of two lengths of training each may
    have rates of its own.
    """
    names = dict.fromkeys(name for line in lines for name in line if name != axis)
    others = [name for name in names if name in SHAPE and name != "hidden"]
    open_yet = [name for name in names if name == "hidden" or name.startswith("recipe_")]
    for name in sorted(open_yet, key=lambda name: len({_place(line, [name]) for line in lines})):
        groups: dict[tuple[Any, ...], set[Any]] = {}
        for line in lines:
            groups.setdefault(_place(line, [axis, *others]), set()).update(_place(line, [name]))
        if any(len(found) > 1 for found in groups.values()):
            others.append(name)
    return others


def _place(line: Record, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(line.get(name) for name in names)


def _averaged(lines: Sequence[Record], metric: str, names: Sequence[str]) -> list[Record]:
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for line in lines:
        groups.setdefault(_place(line, names), []).append(line)
    return [{**group[0], metric: fmean(line[metric] for line in group)} for group in groups.values()]


def _at_shape(lines: Sequence[Record], axis: str, metric: str) -> tuple[Sequence[Record], Array]:
    """What counts once, and which shape it is of, or with which seed it was trained: n, [n, shapes or seeds]."""
    others = _others(lines, axis)
    values: dict[tuple[Any, ...], set[Any]] = {}
    for line in lines:
        values.setdefault(_place(line, others), set()).add(line[axis])
    shapes = [shape for shape, found in values.items() if len(found) > 1]
    told = [line for line in lines if _place(line, others) in shapes]
    if len(shapes) == 1:
        return told, _indicators([line.get("seed") for line in told])
    units = _averaged(told, metric, [axis, *others])
    return units, _indicators([_place(unit, others) for unit in units])


def _at_cost(lines: Sequence[Record], axis: str, metric: str, cost: str) -> tuple[Sequence[Record], Array]:
    """What counts once, and what is expected of its cost, its topology and, of one shape, its seed: n, [n, terms]."""
    others, told = _others(lines, axis), [line for line in lines if line.get(cost)]
    is_one_shape = len({_place(line, others) for line in told}) == 1
    units = told if is_one_shape else _averaged(told, metric, [axis, *others])
    logs = np.array([log(unit[cost]) for unit in units])
    line = (logs - logs.mean()) / (logs.std() or 1.0) if len(logs) else logs
    terms = np.stack([line**power for power in range(_DEGREE + 1)], axis=1)
    topologies = [unit.get("topology") for unit in units] if axis != "topology" else []
    seeds = [unit.get("seed") for unit in units] if is_one_shape else []
    due = [_indicators(keys)[:, 1:] for keys in (topologies, seeds) if keys]
    return units, np.hstack([terms, *due])


def _indicators(keys: Sequence[Any], known: Sequence[Any] | None = None) -> Array:
    """One where a line has a key of those that are known, or of its own: [n, keys]."""
    columns = list(dict.fromkeys(keys)) if known is None else known
    return np.array([[float(key == one) for one in columns] for key in keys]).reshape(len(keys), len(columns))
