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
from results.stats.features import Record, features_of
from results.stats.front_probability import front_probabilities
from results.stats.gaussian_process import Array, Features, GaussianProcess, Indices, Observations, Scales
from results.stats.pareto import check_objectives, non_dominated

DRAWS = 512
"""Of what may be true."""

SAMPLE_SIZE, CONTENDERS = 384, 128
"""Architectures that a model is fitted to, drawn at random, at most; and those near the front that are looked at."""

CONFIDENCE = 0.95
"""The probability with which one is better than another that it can be told from."""

_DEVIATIONS = NormalDist().inv_cdf(CONFIDENCE)

_NOISE_FREE = frozenset({*COUNTS, *PROFILE})
"""Columns whose noise, if they have any, is not that of training."""

_SKIP_PREFIXES = ("speed_", "version_", "extra_metric_", "profile_")


@dataclass(frozen=True)
class ArchitectureSummary:
    """One architecture and recipe, with all seeds that it was trained with.

    Attributes:
        identities: Of its complete rows.
        record: The columns in which all of these agree; of what is measured the mean over `seeds` seeds, and its
            standard error (`_se`).
        expected: Objective -> its true value as all readings together say.
        is_held_out: Whether the means are of seeds that had no part in its being chosen.
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
    is_held_out: bool
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
    table: pa.Table, objectives: Mapping[str, Direction], held_out: Collection[str] = ()
) -> list[ArchitectureSummary]:
    """Summarize each architecture of a table, ordered by the last objective, from less to more.

    Rows of different tasks, versions of these, data, presets or starting weights are not held against each other.

    Args:
        table: What `results.records.table` gives. Only complete rows with a number in every objective take part.
        objectives: Column -> "max" or "min".
        held_out: Identities of the rows whose seeds had no part in choosing what they were trained for. An
            architecture that has some is given their means.

    Raises:
        UserError: An objective that cannot be, see `results.stats.pareto.front`.
    """
    check_objectives(table, objectives)
    columns = {*objectives, *(f"{name}_se" for name in objectives)}
    names = [n for n in table.column_names if n in columns or not (n.startswith(_SKIP_PREFIXES) or n in PROVENANCE)]
    groups: dict[tuple[Any, ...], dict[Any, Record]] = {}
    for index, row in enumerate(table.select(names).to_pylist()):
        is_complete = row.get("status", "complete") == "complete"
        if is_complete and all(row[name] is not None and isfinite(row[name]) for name in objectives):
            rows = groups.setdefault(tuple(row.get(name) for name in COMPARABLE), {})
            rows[row.get("identity") or index] = row  # one that stands twice is one
    summaries = [
        summary for rows in groups.values() for summary in _summaries([*rows.values()], objectives, frozenset(held_out))
    ]
    return sorted(summaries, key=lambda summary: float(summary.record[[*objectives][-1]]))


def tiers_of(draws: Array, errors: Array, front: Indices) -> Indices:
    """The groups that can be told apart, by draws of a value [D, n] of which less is better: [n] from 1, the worst.

    From the worst of the front on, a group ends where one is better than its first with probability APART, the errors
    of the examples [n] included, as if each had examples of its own. What is not on the front goes with the one there
    whose value is nearest.
    """
    expected = draws.mean(axis=0)
    order = front[np.argsort(-expected[front])]
    front_tiers, first = [1], order[0]
    for i in order[1:]:
        ahead = draws[:, first] - draws[:, i]
        spread = sqrt(float(ahead.var()) + errors[first] ** 2 + errors[i] ** 2)
        better = float(ahead.mean()) > _DEVIATIONS * spread
        front_tiers.append(front_tiers[-1] + better)
        first = i if better else first
    tiers = np.array(front_tiers)[_nearest(expected, expected[order])]
    tiers[order] = front_tiers
    return np.asarray(tiers)


def _summaries(
    rows: Sequence[Record], objectives: Mapping[str, Direction], held_out: frozenset[str]
) -> Iterator[ArchitectureSummary]:
    by_architecture: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        by_architecture.setdefault(_candidate(row), []).append(row)
    groups, names = list(by_architecture.values()), [*objectives]
    spreads = {name: _spread(name, groups) for name in _noisy_columns(rows, groups, names)}
    held_out_rows = [[row for row in group if row.get("identity") in held_out] for group in groups]
    means = [_means(fresh or group, spreads) for group, fresh in zip(groups, held_out_rows, strict=True)]
    signs = np.array([-1.0 if direction == "max" else 1.0 for direction in objectives.values()])
    noisy = [name in spreads for name in names]
    expected, near, draws = _posterior(groups, names, noisy, signs)
    p_front, on_front = np.zeros(len(groups)), np.zeros(len(groups), dtype=bool)
    has_errors = all(name in spreads or name in _NOISE_FREE for name in names)
    p_front[near], on_front[near] = front_probabilities(draws) if has_errors else np.nan, non_dominated(expected[near])
    first = noisy.index(True) if any(noisy) else 0
    first_means = [means[i].get(names[first]) for i in near]
    errors = np.array([0.0 if mean is None else mean.examples for mean in first_means])
    tier = np.ones(len(groups), dtype=np.intp)
    if has_errors:
        near_tiers = tiers_of(draws[:, :, first], errors, np.flatnonzero(on_front[near]))
        tier = near_tiers[_nearest(expected[:, first], expected[near, first])]
        tier[near] = near_tiers
    for i, group in enumerate(groups):
        identities = tuple(str(row.get("identity")) for row in group)
        record = _record(held_out_rows[i] or group, means[i], names)
        posterior_means = dict(zip(names, (expected[i] * signs).tolist(), strict=True))
        yield ArchitectureSummary(
            identities,
            record,
            posterior_means,
            bool(held_out_rows[i]),
            float(p_front[i]),
            bool(on_front[i]),
            int(tier[i]),
        )


def _candidate(row: Record) -> tuple[Any, ...]:
    """What makes rows of one architecture and recipe alike; a line that does not say its architecture has its own."""
    key = row.get("key") or (tuple(row[name] for name in SHAPE) if {*SHAPE} <= row.keys() else id(row))
    return key, *((name, row[name]) for name in _settings(tuple(row)) if row[name] is not None)


@lru_cache
def _settings(names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a recipe, of those of a line: most lines have the same."""
    return tuple(name for name in names if name.startswith("recipe_"))


def _noisy_columns(rows: Sequence[Record], groups: Sequence[Sequence[Record]], objectives: Sequence[str]) -> list[str]:
    """The columns that noise is in: with a standard error, or objectives of which there are several readings."""
    candidates = [name for name in rows[0] if f"{name}_se" in rows[0]]
    names = [name for name in candidates if any(row[f"{name}_se"] is not None for row in rows)]
    repeats = [name for name in objectives if name not in _NOISE_FREE and any(len(group) > 1 for group in groups)]
    return list(dict.fromkeys([*names, *repeats]))


def _spread(name: str, groups_of_rows: Sequence[Sequence[Record]]) -> float | None:
    """The standard deviation between seeds of an architecture, from all that have several; None where none has."""
    samples = [[float(row[name]) for row in group if row.get(name) is not None] for group in groups_of_rows]
    freedom = sum(len(readings) - 1 for readings in samples if readings)
    squares = sum((value - fmean(readings)) ** 2 for readings in samples if readings for value in readings)
    return sqrt(squares / freedom) if freedom else None


def _means(rows: Sequence[Record], spreads: Mapping[str, float | None]) -> dict[str, Mean]:
    """The means over an architecture's rows of all that is measured in one of them."""
    means = {}
    for name, spread in spreads.items():
        readings = [row for row in rows if row.get(name) is not None]
        if readings:
            examples = fmean(float(row.get(f"{name}_se") or 0.0) ** 2 for row in readings)
            seeds = (spread or 0.0) / sqrt(len(readings))
            means[name] = Mean(fmean(float(row[name]) for row in readings), sqrt(examples), seeds)
    return means


def _record(rows: Sequence[Record], means: Mapping[str, Mean], objectives: Sequence[str]) -> Record:
    """The columns in which rows agree, and their means; objectives always."""
    record = dict(rows[0])
    for row in rows[1:]:
        record = {name: value for name, value in record.items() if row.get(name) == value}
    for name, mean in means.items():
        record |= {name: mean.value, f"{name}_se": mean.error or None}
    for name in objectives:  # a latency, or a count of other files
        record.setdefault(name, fmean(row[name] for row in rows))
    return {**record, "seeds": len(rows)}


def _posterior(
    groups: Sequence[Sequence[Record]], names: Sequence[str], noisy: Sequence[bool], signs: Array
) -> tuple[Array, Indices, Array]:
    """What is expected of all architectures [n, m], which of them are near the front, and draws of these [D, c, m].

    Less is better. A model is fitted to architectures drawn at random: those that were measured to be good are so by
    chance as well. What it then expects to be near the front, and what was measured to be, is looked at with the
    readings of its own.
    """
    values = np.array([[fmean(row[name] for row in group) for name in names] for group in groups]) * signs
    random, count = np.random.default_rng(0), len(groups)
    features = features_of([group[0] for group in groups])
    sample = np.sort(random.permutation(count)[:SAMPLE_SIZE])
    models = {k: _Model(features, groups, values[:, k], names[k], sample) for k in range(len(names)) if noisy[k]}
    expected = values.copy()
    for k, model in models.items():
        expected[:, k] = model.predict(sample)
    near = np.union1d(_nearest_to_front(expected), _nearest_to_front(values))
    union = np.union1d(sample, near)
    draws = np.repeat(values[None, near], DRAWS, axis=0)
    for k, model in models.items():
        expected[:, k] = model.predict(union)
        draws[:, :, k] = model.draws(union, near, random)
    return expected, near, draws


class _Model:
    """One metric's Gaussian process: fitted to some architectures, and asked with the readings of others."""

    def __init__(
        self, features: Features, groups: Sequence[Sequence[Record]], values: Array, name: str, sample: Indices
    ):
        readings = [[float(row[name]) for row in group] for group in groups]
        errors = [fmean(float(row.get(f"{name}_se") or 0.0) ** 2 for row in group) for group in groups]
        self._features, self._values, self._errors = features, values, np.sqrt(errors)
        self._counts = np.array([float(len(group)) for group in readings])
        self._squares = np.array([sum((value - fmean(group)) ** 2 for value in group) for group in readings])
        self._scales: Scales | None = None
        self._scales = self._process(sample)[0].scales

    def predict(self, sample: Indices) -> Array:
        """What is expected of all architectures by the readings of some: [n]."""
        process, mean, unit = self._process(sample)
        return np.asarray(mean + unit * process.predict(self._features)[0])

    def draws(self, sample: Indices, at: Indices, random: np.random.Generator) -> Array:
        """What c of them may truly be by these: [D, c]."""
        process, mean, unit = self._process(sample)
        return np.asarray(mean + unit * process.draws(self._features.at(at), DRAWS, random))

    def _process(self, sample: Indices) -> tuple[GaussianProcess, float, float]:
        arrays = (array[sample] for array in (self._values, self._counts, self._errors, self._squares))
        readings, mean, unit = Observations.of(*arrays)
        return GaussianProcess(self._features.at(sample), readings, self._scales), mean, unit


def _nearest_to_front(values: Array) -> Indices:
    """About CONTENDERS: all that nothing beats, all that nothing else beats, and so on."""
    remaining, near = np.arange(len(values)), np.zeros(0, dtype=np.intp)
    while len(remaining) and len(near) < CONTENDERS:
        on_front = non_dominated(values[remaining])
        near, remaining = np.concatenate([near, remaining[on_front]]), remaining[~on_front]
    return near


def _nearest(values: Array, among: Array) -> Indices:
    """Which of some values each is nearest to: [n] and [c] -> [n]."""
    return np.asarray(np.abs(values[:, None] - among).argmin(axis=1))
