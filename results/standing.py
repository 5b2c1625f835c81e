"""How the architectures of a table stand: means over seeds, their errors, and the chance of each to be on the front.

A front of single trainings is one of the luckiest. Here the true values of all architectures are drawn from what their
readings say together (`results.process`), and the front is that of what is expected of them.

Shapes: n = architectures, m = objectives, D = draws.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa

from results.columns import COUNTS, PROFILE, PROVENANCE
from results.features import Record, places_of
from results.pareto import chances, check_objectives, non_dominated
from results.process import Array, Indices, Process, Readings
from results.row import Direction

DRAWS = 512
"""Of what may be true."""

MODELLED = 256
"""Architectures that a model is made of, at most: those that nothing beats, then those that nothing else beats, ..."""

APART = 0.95
"""The probability with which one is better than another that it can be told from."""

_COUNTED = frozenset({*COUNTS, *PROFILE})
"""Columns whose noise, if they have any, is not that of training."""

_PASSED_OVER = ("speed_", "version_", "measure_", "profile_", *PROVENANCE)
_COMPARABLE = ("task", "task_version", "data", "preset", "start")


@dataclass(frozen=True)
class Standing:
    """One architecture and recipe, with all seeds that it was trained with.

    Attributes:
        identities: Of its complete rows.
        record: The columns in which all of these agree; of what is measured the mean over `seeds` seeds, and its
            standard error (`_se`).
        confirmed: Whether these are seeds that had no part in its being chosen.
        chance: The probability that it is on the front of all that were trained; NaN where a metric has no errors: no
            standard error, and no architecture two seeds.
        stands: Whether it is on the front of what is expected.
        level: Which of the groups that can be told apart by what is measured it belongs to, 1 being the worst.
    """

    identities: tuple[str, ...]
    record: Record
    confirmed: bool
    chance: float
    stands: bool
    level: int


@dataclass(frozen=True)
class Mean:
    """A mean over seeds.

    Attributes:
        value: The mean.
        examples: The standard error that is due to the examples: the same, however many seeds.
        seeds: That which is due to the seeds.
    """

    value: float
    examples: float
    seeds: float

    @property
    def error(self) -> float:
        """Both together."""
        return hypot(self.examples, self.seeds)


def standings(table: pa.Table, objectives: Mapping[str, Direction], confirming: Collection[str] = ()) -> list[Standing]:
    """How each architecture of a table stands, ordered by the last objective, from less to more.

    Rows of different tasks, versions of these, data, presets or starting weights are not held against each other.

    Args:
        table: What `results.table` gives. Only complete rows with a number in every objective take part.
        objectives: Column -> "max" or "min".
        confirming: Identities of the rows whose seeds had no part in choosing what they were trained for. An
            architecture that has some is given their means.

    Raises:
        UserError: An objective that cannot be, see `results.pareto.front`.
    """
    check_objectives(table, objectives)
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for line in table.select([name for name in table.column_names if not name.startswith(_PASSED_OVER)]).to_pylist():
        whole = line.get("status", "complete") == "complete"
        if whole and all(line[name] is not None and line[name] == line[name] for name in objectives):
            groups.setdefault(tuple(line.get(name) for name in _COMPARABLE), []).append(line)
    found = [one for lines in groups.values() for one in _standings(lines, objectives, frozenset(confirming))]
    return sorted(found, key=lambda one: float(one.record[[*objectives][-1]]))


def levels_of(drawn: Array, errors: Array, front: Indices) -> Indices:
    """The groups that can be told apart, by draws of a value [D, n] of which less is better: [n] from 1, the worst.

    From the worst of the front on, a group ends where one is better than its first with probability APART, the errors
    of the examples [n] included. What is not on the front goes with the one there whose value is nearest.
    """
    expected = drawn.mean(axis=0)
    seen = drawn + errors * np.random.default_rng(0).standard_normal(drawn.shape)
    order = front[np.argsort(-expected[front])]
    of_front, first = [1], order[0]
    for i in order[1:]:
        better = (seen[:, i] < seen[:, first]).mean() >= APART
        of_front.append(of_front[-1] + better)
        first = i if better else first
    nearest = np.abs(expected[:, None] - expected[order]).argmin(axis=1)
    levels = np.array(of_front)[nearest]
    levels[order] = of_front
    return np.asarray(levels)


def _standings(
    lines: Sequence[Record], objectives: Mapping[str, Direction], confirming: frozenset[str]
) -> Iterator[Standing]:
    """How architectures stand whose rows can be held against each other."""
    by_architecture: dict[tuple[Any, ...], list[Record]] = {}
    for line in lines:
        by_architecture.setdefault(_candidate(line), []).append(line)
    every = list(by_architecture.values())
    spreads = {name: _spread(name, every) for name in _measured(lines, every, objectives)}
    confirmed = [[line for line in own if line.get("identity") in confirming] for own in every]
    means = [_means(fresh or own, spreads) for own, fresh in zip(every, confirmed, strict=True)]
    signs = np.array([-1.0 if direction == "max" else 1.0 for direction in objectives.values()])
    values = np.array([[fmean(line[name] for line in own) for name in objectives] for own in every])
    near = _nearest_to_front(values * signs)
    names, noisy = [*objectives], [name in spreads for name in objectives]
    drawn = signs * _drawn([every[i] for i in near], values[near], names, noisy)
    chance, stands, level = np.zeros(len(every)), np.zeros(len(every), dtype=bool), np.ones(len(every), dtype=int)
    known = all(name in spreads or name in _COUNTED for name in names)
    chance[near], stands[near] = chances(drawn) if known else np.nan, non_dominated(drawn.mean(axis=0))
    first = noisy.index(True) if any(noisy) else 0
    of_first = [means[i].get(names[first]) for i in near]
    errors = np.array([0.0 if mean is None else mean.examples for mean in of_first])
    level[near] = levels_of(drawn[:, :, first], errors, np.flatnonzero(stands[near]))
    for i, own in enumerate(every):
        identities = tuple(str(line.get("identity")) for line in own)
        record = _record(confirmed[i] or own, means[i])
        yield Standing(identities, record, bool(confirmed[i]), float(chance[i]), bool(stands[i]), int(level[i]))


def _candidate(line: Record) -> tuple[Any, ...]:
    """What makes rows of one architecture and recipe alike."""
    return line.get("key"), *((name, value) for name, value in line.items() if name.startswith("recipe_"))


def _measured(
    lines: Sequence[Record], every: Sequence[Sequence[Record]], objectives: Mapping[str, Direction]
) -> list[str]:
    """The columns that noise is in: those with a standard error, and objectives in which seeds differ."""
    names = {name.removesuffix("_se"): None for line in lines for name in line if name.endswith("_se")}
    differing = [name for name in objectives if any(len({line[name] for line in own}) > 1 for own in every)]
    return list(dict.fromkeys([*(name for name in names if name in lines[0]), *differing]))


def _spread(name: str, every: Sequence[Sequence[Record]]) -> float | None:
    """The standard deviation between seeds of an architecture, from all that have several; None where none has."""
    groups = [[float(line[name]) for line in own if line.get(name) is not None] for own in every]
    freedom = sum(len(group) - 1 for group in groups if group)
    squares = sum((value - fmean(group)) ** 2 for group in groups if group for value in group)
    return sqrt(squares / freedom) if freedom else None


def _means(own: Sequence[Record], spreads: Mapping[str, float | None]) -> dict[str, Mean]:
    """The means over an architecture's rows of all that is measured in one of them."""
    means = {}
    for name, spread in spreads.items():
        measured = [line for line in own if line.get(name) is not None]
        if measured:
            examples = fmean(float(line.get(f"{name}_se") or 0.0) ** 2 for line in measured)
            seeds = (spread or 0.0) / sqrt(len(measured))
            means[name] = Mean(fmean(float(line[name]) for line in measured), sqrt(examples), seeds)
    return means


def _record(own: Sequence[Record], means: Mapping[str, Mean]) -> Record:
    """The columns in which rows agree, and their means."""
    first, *others = own
    record = {name: value for name, value in first.items() if all(line.get(name) == value for line in others)}
    for name, mean in means.items():
        record |= {name: mean.value, f"{name}_se": mean.error or None}
    return {**record, "seeds": len(own)}


def _nearest_to_front(values: Array) -> list[int]:
    """At most MODELLED architectures: those that nothing beats, those that nothing else beats, and so on."""
    left, chosen = list(range(len(values))), list[int]()
    while left and len(chosen) < MODELLED:
        stands = non_dominated(values[left])
        chosen += [i for i, one in zip(left, stands, strict=True) if one]
        left = [i for i, one in zip(left, stands, strict=True) if not one]
    return sorted(chosen[:MODELLED])


def _drawn(every: Sequence[Sequence[Record]], values: Array, names: Sequence[str], noisy: Sequence[bool]) -> Array:
    """The architectures' true values as they may be, together: [D, n, m]."""
    drawn = np.repeat(values[None].astype(float), DRAWS, axis=0)
    places, random = places_of([own[0] for own in every]), np.random.default_rng(0)
    counts = np.array([float(len(own)) for own in every])
    for k, name in enumerate(names):
        if not noisy[k]:
            continue
        mean, unit = values[:, k].mean(), max(float(values[:, k].std()), 1e-12)
        errors = np.array([sqrt(fmean(float(line.get(f"{name}_se") or 0.0) ** 2 for line in own)) for own in every])
        shares = noise_shares(errors)
        within = [
            sum((line[name] - value) ** 2 for line in own) for own, value in zip(every, values[:, k], strict=True)
        ]
        readings = Readings((values[:, k] - mean) / unit, counts, shares, float((within / shares).sum()) / unit**2)
        drawn[:, :, k] = mean + unit * Process(places, readings).draws(places, DRAWS, random)
    return drawn


def noise_shares(errors: Array) -> Array:
    """Variances of readings' noise as shares of their mean; all the same where they are not known of all: [n]."""
    squares = errors**2
    if not (np.isfinite(squares).all() and (squares > 0).all()):
        return np.ones(len(errors))
    return np.asarray(np.clip(squares / squares.mean(), 0.1, 10.0))
