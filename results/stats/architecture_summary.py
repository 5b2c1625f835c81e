"""Summaries of architectures: means over seeds, standard errors, the probability of being on the front.

A front of single trainings favors lucky seeds. Here, the front is that of posterior means
(`results.stats.front_probability`).

Shapes: n = architectures, m = objectives, D = posterior draws.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import hypot, isfinite, isnan, sqrt
from statistics import NormalDist, fmean
from typing import Any

import numpy as np
import pyarrow as pa

from results.records.columns import ARCHITECTURE_COLUMNS, MUST_MATCH_COLUMNS, PROVENANCE_COLUMNS, TYPES
from results.records.row import Direction
from results.records.table import from_records
from results.stats.features import Record
from results.stats.front_probability import NOISE_FREE, front_posterior
from results.stats.gaussian_process import Array, Indices, noise_ratios
from results.stats.pareto import check_objectives, knee

CONFIDENCE = 0.95
"""Probability at which one architecture counts as distinguishably better than another."""

_DEVIATIONS = NormalDist().inv_cdf(CONFIDENCE)

_SKIP_PREFIXES = ("speed_", "version_", "extra_metric_", "profile_")


@dataclass(frozen=True)
class ArchitectureSummary:
    """One architecture and recipe, with all seeds that it was trained with.

    Attributes:
        identities: Identities of its complete rows.
        record: The columns that are equal in all of these; for measurements, the mean over `seeds` seeds and its
            standard error (`_se`).
        expected: Objective -> its posterior mean.
        is_held_out: Whether the means are over held-out seeds only.
        p_front: The probability that it is on the front of all trained architectures, on these validation examples. NaN
            if a metric has no errors: no standard error, and no architecture with two seeds.
        on_front: Whether it is on the front of the posterior means.
        tier: Its group of architectures that cannot be told apart, from 1, the worst. Always 1 if `p_front` is NaN.
    """

    identities: tuple[str, ...]
    record: Record
    expected: Mapping[str, float]
    is_held_out: bool
    p_front: float
    on_front: bool
    tier: int

    def columns(self) -> dict[str, Any]:
        """Return its record as columns, with those of `expected_columns`, `p_front`, `on_front` and `tier`."""
        return {
            **self.record,
            **{column: self.expected[name] for column, name in expected_columns(self.expected).items()},
            "p_front": None if isnan(self.p_front) else self.p_front,
            "on_front": "true" if self.on_front else "false",
            "tier": self.tier,
        }


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, with its errors.

    Attributes:
        value: The mean.
        example_error: Standard error due to the validation examples, the same for any number of seeds.
        seed_error: Standard error due to the seeds.
    """

    value: float
    example_error: float
    seed_error: float

    @property
    def error(self) -> float:
        """The total standard error."""
        return hypot(self.example_error, self.seed_error)


def expected_columns(objectives: Iterable[str]) -> dict[str, str]:
    """Return the columns of posterior means -> their objectives: `expected`, or `expected_NAME` of each of several.

    Costs have none, since they have no noise.
    """
    metrics = [name for name in objectives if name not in NOISE_FREE]
    return {"expected" if len(metrics) == 1 else f"expected_{name}": name for name in metrics}


def summarize(
    table: pa.Table,
    objectives: Mapping[str, Direction],
    held_out: Collection[str] = (),
    averages: Collection[str] = (),
) -> list[ArchitectureSummary]:
    """Summarize each architecture of a table, ordered by the last objective from low to high.

    Rows of different tasks, task versions, data, presets or starting weights are not compared.

    Args:
        table: A table from `results.records.table`. Only complete rows with a number in every objective take part.
        objectives: Column -> "max" or "min".
        held_out: Identities of rows with held-out seeds. If an architecture has some, its means are over these.
        averages: More columns of numbers whose means over seeds are in the records.

    Raises:
        UserError: An invalid objective, see `results.stats.pareto.front`.
    """
    check_objectives(table, objectives)
    columns = {*objectives, *(f"{name}_se" for name in objectives), *averages}
    names = [
        n for n in table.column_names if n in columns or not (n.startswith(_SKIP_PREFIXES) or n in PROVENANCE_COLUMNS)
    ]
    groups: dict[tuple[Any, ...], dict[Any, Record]] = {}
    for index, row in enumerate(table.select(names).to_pylist()):
        is_complete = row.get("status", "complete") == "complete"
        if is_complete and all(row[name] is not None and isfinite(row[name]) for name in objectives):
            rows = groups.setdefault(tuple(row.get(name) for name in MUST_MATCH_COLUMNS), {})
            rows[row.get("identity") or index] = row  # duplicates count once
    summaries = [
        summary
        for rows in groups.values()
        for summary in _summaries([*rows.values()], objectives, frozenset(held_out), averages)
    ]
    return sorted(summaries, key=lambda summary: float(summary.record[[*objectives][-1]]))


def knees(front: Sequence[ArchitectureSummary], objectives: Mapping[str, Direction]) -> list[ArchitectureSummary]:
    """Return the knee point of each front by posterior means: see `results.stats.pareto.knee`."""
    if not front:
        return []
    # Under new names, since the posterior mean of a count is no integer.
    directions = {str(k): direction for k, direction in enumerate(objectives.values())}
    lines: list[dict[str, Any]] = [
        {name: one.record.get(name) for name in MUST_MATCH_COLUMNS}
        | dict(zip(directions, map(one.expected.get, objectives), strict=True))
        | {"identity": str(i)}
        for i, one in enumerate(front)
    ]
    return [front[int(i)] for i in knee(from_records(lines), directions)["identity"].to_pylist()]


def training_key(row: Record) -> tuple[Any, ...]:
    """Return what the trainings of one architecture have in common: the columns that must match, key and recipe."""
    return *(row.get(name) for name in MUST_MATCH_COLUMNS), _candidate(row)


def tiers_of(draws: Array, errors: Array, front: Indices) -> Indices:
    """Divide architectures into tiers, by draws of a value [D, n] of which less is better: [n] from 1, the worst.

    From the worst of the front on, a new tier starts where an architecture beats the first of the current tier with
    probability CONFIDENCE. The errors of the examples [n] are added, as if each architecture had its own examples. An
    architecture off the front gets the tier of the one on it with the nearest value.
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
    rows: Sequence[Record],
    objectives: Mapping[str, Direction],
    held_out: frozenset[str],
    averages: Collection[str],
) -> Iterator[ArchitectureSummary]:
    by_architecture: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        by_architecture.setdefault(_candidate(row), []).append(row)
    groups, names = list(by_architecture.values()), [*objectives]
    seed_errors = {name: _seed_errors(name, groups) for name in _noisy_columns(rows, groups, names)}
    held_out_rows = [[row for row in group if row.get("identity") in held_out] for group in groups]
    means = [
        _means(fresh or group, {name: float(errors[i]) for name, errors in seed_errors.items()})
        for i, (group, fresh) in enumerate(zip(groups, held_out_rows, strict=True))
    ]
    signs = np.array([-1.0 if direction == "max" else 1.0 for direction in objectives.values()])
    posterior = front_posterior(groups, names, seed_errors, signs)
    tier = np.ones(len(groups), dtype=np.intp)
    if posterior.has_errors:
        near, first = posterior.near, next((k for k, name in enumerate(names) if name in seed_errors), 0)
        first_means = [means[i].get(names[first]) for i in near]
        errors = np.array([0.0 if mean is None else mean.example_error for mean in first_means])
        near_tiers = tiers_of(posterior.draws[:, :, first], errors, np.flatnonzero(posterior.on_front[near]))
        expected = posterior.expected[:, first]
        tier = near_tiers[_nearest(expected, expected[near])]
        tier[near] = near_tiers
    for i, group in enumerate(groups):
        identities = tuple(str(row.get("identity")) for row in group)
        record = _record(held_out_rows[i] or group, means[i], [*names, *averages])
        posterior_means = dict(zip(names, (posterior.expected[i] * signs).tolist(), strict=True))
        yield ArchitectureSummary(
            identities,
            record,
            posterior_means,
            bool(held_out_rows[i]),
            float(posterior.p_front[i]),
            bool(posterior.on_front[i]),
            int(tier[i]),
        )


def _candidate(row: Record) -> tuple[Any, ...]:
    """Return the key of a row's architecture and recipe; a row without an architecture is its own."""
    key = row.get("key") or (
        tuple(row[name] for name in ARCHITECTURE_COLUMNS) if {*ARCHITECTURE_COLUMNS} <= row.keys() else id(row)
    )
    return key, *((name, row[name]) for name in _settings(tuple(row)) if row[name] is not None)


@lru_cache
def _settings(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of a recipe. Cached, since most rows share them."""
    return tuple(sorted(name for name in names if name.startswith("recipe_")))


def _noisy_columns(rows: Sequence[Record], groups: Sequence[Sequence[Record]], objectives: Sequence[str]) -> list[str]:
    """Return the noisy columns: those with a standard error, and objectives with several seeds."""
    candidates = [name for name in rows[0] if f"{name}_se" in rows[0]]
    names = [name for name in candidates if any(row[f"{name}_se"] is not None for row in rows)]
    repeats = [name for name in objectives if name not in NOISE_FREE and any(len(group) > 1 for group in groups)]
    return list(dict.fromkeys([*names, *repeats]))


def _seed_errors(name: str, groups: Sequence[Sequence[Record]]) -> Array:
    """Return the standard deviation between an architecture's seeds: [n]. 0 if no architecture has several.

    It is pooled over all architectures, as a multiple of the example error if all rows have one: accuracies near 1
    vary less in both.
    """
    samples = [[float(row[name]) for row in group if row.get(name) is not None] for group in groups]
    ratios = np.ones(len(groups))
    ratios[[bool(values) for values in samples]] = noise_ratios(
        np.array([_example_error(name, group) for group, values in zip(groups, samples, strict=True) if values])
    )
    freedom = sum(len(values) - 1 for values in samples if values)
    squares = [sum((value - fmean(values)) ** 2 for value in values) if values else 0.0 for values in samples]
    return np.sqrt(ratios * float((squares / ratios).sum()) / max(freedom, 1))


def _example_error(name: str, rows: Sequence[Record]) -> float:
    """Return the standard error of a metric due to the examples; 0 if unknown."""
    return sqrt(fmean(float(row.get(f"{name}_se") or 0.0) ** 2 for row in rows if row.get(name) is not None))


def _means(rows: Sequence[Record], seed_errors: Mapping[str, float]) -> dict[str, Mean]:
    """Return the means over an architecture's rows of each noisy column that they have."""
    means = {}
    for name, seed_error in seed_errors.items():
        readings = [float(row[name]) for row in rows if row.get(name) is not None]
        if readings:
            means[name] = Mean(fmean(readings), _example_error(name, rows), seed_error / sqrt(len(readings)))
    return means


def _record(rows: Sequence[Record], means: Mapping[str, Mean], averages: Sequence[str]) -> Record:
    """Return the columns that are equal in all rows, and their means; `averages` always."""
    record = dict(rows[0])
    for row in rows[1:]:
        record = {name: value for name, value in record.items() if row.get(name) == value}
    for name, mean in means.items():
        record |= {name: mean.value, f"{name}_se": mean.error or None}
    for name in averages:  # not noisy, but different: a latency, or a count from other files
        record.setdefault(name, _mean_of([row[name] for row in rows if row[name] is not None], TYPES.get(name, float)))
    return {**record, "seeds": len(rows)}


def _mean_of(readings: Sequence[float], kind: type) -> float | None:
    """Return the mean of numbers, rounded in a column of integers; None without any."""
    return None if not readings else round(fmean(readings)) if kind is int else fmean(readings)


def _nearest(values: Array, among: Array) -> Indices:
    """Return the index of the nearest candidate of each value: [n] and [c] -> [n]."""
    return np.asarray(np.abs(values[:, None] - among).argmin(axis=1))
