"""Audits: how noisy a task's metrics are, by architectures spread over a space by cost, with several seeds each."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import nan, sqrt
from statistics import fmean
from typing import Any, final

import numpy as np

from nas.budget.bounds import Budget, Feasible, parse_budget
from nas.budget.implicit.budget_dp import BudgetDP
from nas.costs.count import budget_counts
from nas.environment.paths import safe_name
from nas.report.records_result import RecordsResult
from nas.request.job import task_of
from nas.request.resolve import RecipeOverrides
from nas.store.search_config import SearchConfig
from nas.store.store import Store
from results.records.row import Row
from results.stats.gaussian_process import Array
from results.stats.reliability import (
    Estimate,
    components,
    jackknife,
    num_distinct_tiers,
    rank_correlation,
    seed_rank_correlation,
    seeds_for,
)
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError, number_error_kind
from tasks.base import Task

LEAST_ARCHITECTURES, LEAST_SEEDS = 4, 2
"""Least numbers from which variances can be estimated."""

REPORT_FRACTIONS = (0.1, 0.25, 0.5)
"""Fractions of a training at which early reports are correlated with the final metric."""

_DRAWS = 500  # candidates drawn from an implicit space before those spread by cost are picked

RowsByArchitecture = Mapping[Architecture, Sequence[Row]]
"""Architecture -> its complete Rows by increasing seed; the seeds are the same for all."""


@final
@dataclass(frozen=True)
class Audit(RecordsResult):
    """The result of an audit.

    Attributes:
        title: One line about what was audited.
        records: One flat record for each metric, the most reliable first: see `metric_record`.
        resolutions: One flat record for each number of levels of the most reliable metric: see `resolutions_of`.
        training_rows: The Rows.
    """

    resolutions: tuple[Mapping[str, Any], ...]
    training_rows: tuple[Row, ...]

    def rows(self) -> list[Row]:
        """Return every Row, failures included."""
        return list(self.training_rows)


def check_audit(architectures: int, seeds: int) -> None:
    """Raise UserError if there are too few architectures or seeds."""
    for option, value, least in (("architectures", architectures, LEAST_ARCHITECTURES), ("seeds", seeds, LEAST_SEEDS)):
        kind = number_error_kind(value, whole=True)
        if kind == "wrong-type" or value < least:
            message = f"--{option} must be a whole number of at least {least} in an audit, got {value!r:.40}."
            raise UserError(kind, message, option=f"--{option}", value=value, least=least)


def study_of(task: str, preset: str, changes: RecipeOverrides = ()) -> str:
    """Return the name of the study with the audits of a task, a preset and overrides of its recipe."""
    name = f"audit-{safe_name(task)}-{safe_name(preset)}"
    return f"{name}-{hashlib.sha256(repr(changes).encode()).hexdigest()[:6]}" if changes else name


def rows_of_other_presets(store: Store, task: Task, preset: str) -> dict[str, list[Row]]:
    """Return preset -> Rows of the task's audits under other presets."""
    names = {study_of(task.name, other): other for other in task.presets if other != preset}
    rows_by_preset = {names[name]: store.read([name]).rows for name in store.studies() if name in names}
    return {other: [row for row in rows if row.task_version == task.version] for other, rows in rows_by_preset.items()}


def audit_for(config: SearchConfig, store: Store) -> Audit | None:
    """Return the stored audit of a search's task, preset, settings and data, or None.

    Reliability depends on the range of architectures, so only those within the search's budget count.
    """
    task = task_of(config.task, config.data)
    name = study_of(task.name, config.preset, tuple(sorted(config.settings.items())))
    if name not in store.studies():
        return None
    within = parse_budget([config.budget] if config.budget else []).count_budget
    rows = [
        row
        for row in store.read([name]).rows
        if row.data == config.data_fingerprint and row.task_version == task.version and _is_within(within, row)
    ]
    try:
        return audit_of(name, rows, {})
    except UserError:
        return None


def _is_within(budget: Budget, row: Row) -> bool:
    """Return whether the counted costs of a Row's architecture are within a budget."""
    return budget.allows({name: nan if count is None else count for name, count in asdict(row.costs).items()})


def spread_by_cost(task: Task, members: Feasible | BudgetDP, number: int) -> list[Architecture]:
    """Return architectures whose FLOPs are evenly spaced on a logarithmic scale, the highest cost first.

    The selection is deterministic.

    Raises:
        UserError: There are fewer than `number`.
    """
    random = np.random.default_rng(0)
    if isinstance(members, BudgetDP):
        draws = range(max(_DRAWS, 2 * number))
        architectures = [members.space.candidate(members.draw(random)).architecture for _ in draws]
    else:
        architectures = [candidate.architecture for candidate in members.candidates]
    architectures = list(dict.fromkeys(architectures))
    if len(architectures) < number:
        there = "samples of the space gave" if isinstance(members, BudgetDP) else "the space has"
        message = f"{there} {len(architectures)} architectures within the budget. Lower --architectures {number}."
        raise UserError("infeasible", message, option="--architectures", value=number, most=len(architectures))
    architectures = [architectures[i] for i in random.permutation(len(architectures))]
    cost = np.log([budget_counts(task, architecture)["flops"] for architecture in architectures])
    picks: list[int] = []
    for target in np.linspace(cost.min(), cost.max(), number):
        distance = np.abs(cost - target)
        distance[picks] = np.inf
        picks.append(int(distance.argmin()))
    return [architectures[i] for i in sorted(picks, key=lambda i: -float(cost[i]))]


def audit_of(title: str, rows: Sequence[Row], rows_by_preset: Mapping[str, Sequence[Row]]) -> Audit:
    """Audit a task's metrics; `rows_by_preset` are Rows of other presets by name.

    An architecture counts if its trainings with the chosen seeds are complete: see `rows_by_architecture`.

    Raises:
        UserError: Too few are.
    """
    audit_rows = rows_by_architecture(rows)
    if len(audit_rows) < LEAST_ARCHITECTURES:
        first = next((f" (first error: {row.error})" for row in rows if row.error), "")
        raise UserError(
            "missing-rows",
            f"an audit needs at least {LEAST_ARCHITECTURES} completely trained architectures, got "
            f"{len(audit_rows)}{first}. See `nas results`.",
            architectures=len(audit_rows),
            least=LEAST_ARCHITECTURES,
        )
    complete = [row for seed_rows in audit_rows.values() for row in seed_rows]
    other_presets = {preset: rows_by_architecture(seed_rows) for preset, seed_rows in rows_by_preset.items()}
    names = [name for name in complete[0].directions if all(name in row.metrics for row in complete)]
    records = [metric_record(name, audit_rows, other_presets) for name in names]
    records.sort(key=lambda record: -float(record["reliability"]))
    best = str(records[0]["metric"])
    seconds = [float(str(row.provenance["wall_s"])) for row in complete if row.provenance.get("wall_s") is not None]
    resolutions = resolutions_of(*_splits(best, audit_rows), seconds=fmean(seconds) if seconds else None)
    return Audit(title, tuple(records), tuple(resolutions), tuple(rows))


def rows_by_architecture(rows: Sequence[Row]) -> RowsByArchitecture:
    """Return architectures with complete Rows of the same seeds: as many of the first seeds as use the most Rows.

    At least LEAST_SEEDS seeds are used, if there are so many.
    """
    complete: dict[Architecture, dict[int, Row]] = {}
    for row in rows:
        if row.status == "complete":
            complete.setdefault(row.architecture, {})[row.seed] = row
    seeds = sorted({row.seed for row in rows})
    selection: RowsByArchitecture = {}
    for number in range(len(seeds), min(LEAST_SEEDS, len(seeds)) - 1, -1):
        first = seeds[:number]
        subset = {
            architecture: [by_seed[seed] for seed in first]
            for architecture, by_seed in complete.items()
            if by_seed.keys() >= {*first}
        }
        if number * len(subset) > sum(map(len, selection.values())):
            selection = subset
    return selection


def metric_record(
    name: str, audit_rows: RowsByArchitecture, other_presets: Mapping[str, RowsByArchitecture]
) -> dict[str, Any]:
    """Return everything known of a metric as a flat record, each number with its standard error (`_se`).

    `reliability` is that of one seed; `levels` is how many of these architectures one seed tells apart. Standard
    deviations (`sd_`) are of architectures, of seeds and of validation examples, in units of the metric: see
    `results.stats.reliability`. `tau_` is Kendall's tau of the architectures' orders: between seeds, between validation
    and test, between early and final reports, and between this preset and others.
    """
    splits = _splits(name, audit_rows)
    validation = splits[0]
    estimates = {
        "reliability": jackknife(lambda *some: components(*some).reliability(), *splits),
        "sd_architecture": jackknife(lambda *some: _deviation(components(*some).architecture), *splits),
        "sd_seed": jackknife(lambda *some: _deviation(components(*some).seed), *splits),
    }
    if len(splits) > 1:
        estimates["sd_examples"] = jackknife(lambda *some: _deviation(components(*some).examples), *splits)
        estimates["tau_test"] = jackknife(rank_correlation, *splits)
    estimates["tau_seeds"] = jackknife(seed_rank_correlation, validation)
    for share in REPORT_FRACTIONS:
        early = _matrix(audit_rows, lambda row, share=share: _early_report(row, name, share))  # type: ignore[misc]
        if not np.isnan(early).any():
            estimates[f"tau_at_{share:.0%}"] = jackknife(rank_correlation, early, validation)
    for preset, other in other_presets.items():
        common = [
            architecture
            for architecture in audit_rows
            if architecture in other and all(name in row.metrics for row in other[architecture])
        ]
        if len(common) >= LEAST_ARCHITECTURES:
            means = [
                np.array([[_mean(name, group[architecture])] for architecture in common])
                for group in (audit_rows, other)
            ]
            estimates[f"tau_{preset}"] = jackknife(rank_correlation, *means)
    record: dict[str, Any] = {"metric": name, "architectures": len(validation), "seeds": validation.shape[1]}
    record["levels"] = num_distinct_tiers(validation, components(*splits), 1)
    return record | _flat(estimates)


def resolutions_of(validation: Array, *test: Array, seconds: float | None) -> list[dict[str, Any]]:
    """Return how many seeds tell each number of architectures apart, and the training time of one architecture.

    `seeds` is None if no number of seeds does, because the validation examples are too few.
    """
    variances = components(validation, *test)
    records = []
    for level in range(2, len(validation) + 1):
        seeds = seeds_for(level, validation, variances)
        cost = None if seeds is None or seconds is None else seeds * seconds
        records.append({"levels": level, "seeds": seeds, "seconds_each": cost})
    return records


def _splits(name: str, audit_rows: RowsByArchitecture) -> tuple[Array, ...]:
    """Return a metric on validation and, if every Row has it, on test: [A, S] each."""
    validation = _matrix(audit_rows, lambda row: row.metrics[name])
    if all(name in row.test for seed_rows in audit_rows.values() for row in seed_rows):
        return validation, _matrix(audit_rows, lambda row: row.test[name])
    return (validation,)


def _matrix(audit_rows: RowsByArchitecture, value: Callable[[Row], float]) -> Array:
    return np.array([[value(row) for row in seed_rows] for seed_rows in audit_rows.values()], dtype=float)


def _mean(name: str, rows: Sequence[Row]) -> float:
    return fmean(row.metrics[name] for row in rows)


def _early_report(row: Row, name: str, share: float) -> float:
    """Return the last report of a metric in this share of the steps; NaN without one, or if the recipe is in hours."""
    if row.recipe.get("hours"):  # its reports are at shares of time, not of steps
        return float("nan")
    values = [
        point["metrics"][name] for point in row.curve if point["step"] <= share * row.steps and name in point["metrics"]
    ]
    return values[-1] if values else float("nan")


def _deviation(variance: float | None) -> float:
    """Return the standard deviation; 0 if the estimated variance is negative."""
    return sqrt(max(variance or 0.0, 0.0))


def _flat(estimates: Mapping[str, Estimate]) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, estimate in estimates.items():
        flat |= {name: estimate.value, f"{name}_se": estimate.error}
    return flat
