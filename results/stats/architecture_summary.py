"""Summaries of the architectures of a table: means over seeds, their errors, the probability of being on the front.

A front of single trainings is one of the luckiest. Here the true values of all architectures are drawn from what their
readings say together (`results.stats.gaussian_process`), and the front is that of what is expected of them.

Shapes: n = architectures, m = objectives, D = draws.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import hypot, isfinite, sqrt
from statistics import NormalDist, fmean
from typing import Any

import numpy as np
import pyarrow as pa

from results.records.columns import COMPARABLE, COUNTS, PROFILE, PROVENANCE, SHAPE
from results.records.row import Direction
from results.stats.features import Record, places_of
from results.stats.gaussian_process import Array, Features, GaussianProcess, Indices, Observations, Scales
from results.stats.pareto import chances, check_objectives, non_dominated

DRAWS = 512
"""Of what may be true."""

MODELLED, CONTENDERS = 384, 128
"""Architectures that a model is fitted to, drawn at random, at most; and those near the front that are looked at."""

APART = 0.95
"""The probability with which one is better than another that it can be told from."""

_DEVIATIONS = NormalDist().inv_cdf(APART)

_COUNTED = frozenset({*COUNTS, *PROFILE})
"""Columns whose noise, if they have any, is not that of training."""

_PASSED_OVER = ("speed_", "version_", "extra_metric_", "profile_")


@dataclass(frozen=True)
class ArchitectureSummary:
    """One architecture and recipe, with all seeds that it was trained with.

    Attributes:
        identities: Of its complete rows.
        record: The columns in which all of these agree; of what is measured the mean over `seeds` seeds, and its
            standard error (`_se`).
        expected: Objective -> its true value as all readings together say.
        confirmed: Whether the means are of seeds that had no part in its being chosen.
        p_front: The probability that it is on the front of all that were trained, on these validation examples: how
            large noise is, is fitted to how readings lie apart, and standard errors say which of them have more of it.
            NaN where a metric has no errors: no standard error, and no architecture two seeds.
        on_front: Whether it is on the front of what is expected.
        tier: Which of the groups that can be told apart by what is measured it belongs to, 1 being the worst: 1 where
            there is no chance.
    """

    identities: tuple[str, ...]
    record: Record
    expected: Mapping[str, float]
    confirmed: bool
    p_front: float
    on_front: bool
    tier: int


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


def summarize(
    table: pa.Table, objectives: Mapping[str, Direction], confirming: Collection[str] = ()
) -> list[ArchitectureSummary]:
    """Summarize each architecture of a table, ordered by the last objective, from less to more.

    Rows of different tasks, versions of these, data, presets or starting weights are not held against each other.

    Args:
        table: What `results.records.table` gives. Only complete rows with a number in every objective take part.
        objectives: Column -> "max" or "min".
        confirming: Identities of the rows whose seeds had no part in choosing what they were trained for. An
            architecture that has some is given their means.

    Raises:
        UserError: An objective that cannot be, see `results.stats.pareto.front`.
    """
    check_objectives(table, objectives)
    asked = {*objectives, *(f"{name}_se" for name in objectives)}
    names = [n for n in table.column_names if n in asked or not (n.startswith(_PASSED_OVER) or n in PROVENANCE)]
    groups: dict[tuple[Any, ...], dict[Any, Record]] = {}
    for number, line in enumerate(table.select(names).to_pylist()):
        whole = line.get("status", "complete") == "complete"
        if whole and all(line[name] is not None and isfinite(line[name]) for name in objectives):
            lines = groups.setdefault(tuple(line.get(name) for name in COMPARABLE), {})
            lines[line.get("identity") or number] = line  # one that stands twice is one
    found = [
        one for lines in groups.values() for one in _summaries([*lines.values()], objectives, frozenset(confirming))
    ]
    return sorted(found, key=lambda one: float(one.record[[*objectives][-1]]))


def tiers_of(drawn: Array, errors: Array, front: Indices) -> Indices:
    """The groups that can be told apart, by draws of a value [D, n] of which less is better: [n] from 1, the worst.

    From the worst of the front on, a group ends where one is better than its first with probability APART, the errors
    of the examples [n] included, as if each had examples of its own. What is not on the front goes with the one there
    whose value is nearest.
    """
    expected = drawn.mean(axis=0)
    order = front[np.argsort(-expected[front])]
    of_front, first = [1], order[0]
    for i in order[1:]:
        ahead = drawn[:, first] - drawn[:, i]
        spread = sqrt(float(ahead.var()) + errors[first] ** 2 + errors[i] ** 2)
        better = float(ahead.mean()) > _DEVIATIONS * spread
        of_front.append(of_front[-1] + better)
        first = i if better else first
    tiers = np.array(of_front)[_nearest(expected, expected[order])]
    tiers[order] = of_front
    return np.asarray(tiers)


def _summaries(
    lines: Sequence[Record], objectives: Mapping[str, Direction], confirming: frozenset[str]
) -> Iterator[ArchitectureSummary]:
    by_architecture: dict[tuple[Any, ...], list[Record]] = {}
    for line in lines:
        by_architecture.setdefault(_candidate(line), []).append(line)
    every, names = list(by_architecture.values()), [*objectives]
    spreads = {name: _spread(name, every) for name in _measured(lines, every, names)}
    confirmed = [[line for line in own if line.get("identity") in confirming] for own in every]
    means = [_means(fresh or own, spreads) for own, fresh in zip(every, confirmed, strict=True)]
    signs = np.array([-1.0 if direction == "max" else 1.0 for direction in objectives.values()])
    noisy = [name in spreads for name in names]
    expected, near, drawn = _believed(every, names, noisy, signs)
    p_front, on_front = np.zeros(len(every)), np.zeros(len(every), dtype=bool)
    known = all(name in spreads or name in _COUNTED for name in names)
    p_front[near], on_front[near] = chances(drawn) if known else np.nan, non_dominated(expected[near])
    first = noisy.index(True) if any(noisy) else 0
    of_first = [means[i].get(names[first]) for i in near]
    errors = np.array([0.0 if mean is None else mean.examples for mean in of_first])
    tier = np.ones(len(every), dtype=np.intp)
    if known:
        of_near = tiers_of(drawn[:, :, first], errors, np.flatnonzero(on_front[near]))
        tier = of_near[_nearest(expected[:, first], expected[near, first])]
        tier[near] = of_near
    for i, own in enumerate(every):
        identities = tuple(str(line.get("identity")) for line in own)
        record = _record(confirmed[i] or own, means[i], names)
        truth = dict(zip(names, (expected[i] * signs).tolist(), strict=True))
        yield ArchitectureSummary(
            identities, record, truth, bool(confirmed[i]), float(p_front[i]), bool(on_front[i]), int(tier[i])
        )


def _candidate(line: Record) -> tuple[Any, ...]:
    """What makes rows of one architecture and recipe alike; a line that does not say its architecture has its own."""
    key = line.get("key") or (tuple(line[name] for name in SHAPE) if {*SHAPE} <= line.keys() else id(line))
    return key, *((name, line[name]) for name in _settings(tuple(line)) if line[name] is not None)


@lru_cache
def _settings(names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a recipe, of those of a line: most lines have the same."""
    return tuple(name for name in names if name.startswith("recipe_"))


def _measured(lines: Sequence[Record], every: Sequence[Sequence[Record]], objectives: Sequence[str]) -> list[str]:
    """The columns that noise is in: with a standard error, or objectives of which there are several readings."""
    read = [name for name in lines[0] if f"{name}_se" in lines[0]]
    names = [name for name in read if any(line[f"{name}_se"] is not None for line in lines)]
    trained = [name for name in objectives if name not in _COUNTED and any(len(own) > 1 for own in every)]
    return list(dict.fromkeys([*names, *trained]))


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


def _record(own: Sequence[Record], means: Mapping[str, Mean], objectives: Sequence[str]) -> Record:
    """The columns in which rows agree, and their means; objectives always."""
    record = dict(own[0])
    for line in own[1:]:
        record = {name: value for name, value in record.items() if line.get(name) == value}
    for name, mean in means.items():
        record |= {name: mean.value, f"{name}_se": mean.error or None}
    for name in objectives:  # a latency, or a count of other files
        record.setdefault(name, fmean(line[name] for line in own))
    return {**record, "seeds": len(own)}


def _believed(
    every: Sequence[Sequence[Record]], names: Sequence[str], noisy: Sequence[bool], signs: Array
) -> tuple[Array, Indices, Array]:
    """What is expected of all architectures [n, m], which of them are near the front, and draws of these [D, c, m].

    Less is better. A model is fitted to architectures drawn at random: those that were measured to be good are so by
    chance as well. What it then expects to be near the front, and what was measured to be, is looked at with the
    readings of its own.
    """
    values = np.array([[fmean(line[name] for line in own) for name in names] for own in every]) * signs
    random, count = np.random.default_rng(0), len(every)
    places = places_of([own[0] for own in every])
    fitted = np.sort(random.permutation(count)[:MODELLED])
    models = {k: _Model(places, every, values[:, k], names[k], fitted) for k in range(len(names)) if noisy[k]}
    expected = values.copy()
    for k, model in models.items():
        expected[:, k] = model.expected(fitted)
    near = np.union1d(_nearest_to_front(expected), _nearest_to_front(values))
    together = np.union1d(fitted, near)
    drawn = np.repeat(values[None, near], DRAWS, axis=0)
    for k, model in models.items():
        expected[:, k] = model.expected(together)
        drawn[:, :, k] = model.draws(together, near, random)
    return expected, near, drawn


class _Model:
    """One metric's Gaussian process: fitted to some architectures, and asked with the readings of others."""

    def __init__(self, places: Features, every: Sequence[Sequence[Record]], values: Array, name: str, fitted: Indices):
        read = [[float(line[name]) for line in own] for own in every]
        errors = [fmean(float(line.get(f"{name}_se") or 0.0) ** 2 for line in own) for own in every]
        self._places, self._values, self._errors = places, values, np.sqrt(errors)
        self._counts = np.array([float(len(own)) for own in read])
        self._squares = np.array([sum((value - fmean(own)) ** 2 for value in own) for own in read])
        self._scales: Scales | None = None
        self._scales = self._process(fitted)[0].scales

    def expected(self, using: Indices) -> Array:
        """What is expected of all architectures by the readings of some: [n]."""
        process, mean, unit = self._process(using)
        return np.asarray(mean + unit * process.expected(self._places)[0])

    def draws(self, using: Indices, at: Indices, random: np.random.Generator) -> Array:
        """What c of them may truly be by these: [D, c]."""
        process, mean, unit = self._process(using)
        return np.asarray(mean + unit * process.draws(self._places.at(at), DRAWS, random))

    def _process(self, using: Indices) -> tuple[GaussianProcess, float, float]:
        of_these = (array[using] for array in (self._values, self._counts, self._errors, self._squares))
        readings, mean, unit = Observations.of(*of_these)
        return GaussianProcess(self._places.at(using), readings, self._scales), mean, unit


def _nearest_to_front(values: Array) -> Indices:
    """About CONTENDERS: all that nothing beats, all that nothing else beats, and so on."""
    left, chosen = np.arange(len(values)), np.zeros(0, dtype=np.intp)
    while len(left) and len(chosen) < CONTENDERS:
        on_front = non_dominated(values[left])
        chosen, left = np.concatenate([chosen, left[on_front]]), left[~on_front]
    return chosen


def _nearest(values: Array, among: Array) -> Indices:
    """Which of some values each is nearest to: [n] and [c] -> [n]."""
    return np.asarray(np.abs(values[:, None] - among).argmin(axis=1))
