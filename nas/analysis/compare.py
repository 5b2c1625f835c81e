"""Comparison of architectures: matched in cost, trained with several seeds each, and summarized."""

import csv
import math
import statistics
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from nas.costs.count import budget_counts, count
from nas.costs.profile.profile import profile_largest_batch, trace_of
from nas.report import tables
from nas.report.records_result import RecordsResult
from nas.request.job import EvaluationJob, text_of
from nas.request.resolve import RecipeOverrides, architecture_of
from nas.request.text_checks import ALL_TOPOLOGIES, parse_topologies
from results.records.row import Direction, Row
from results.stats.intervals import interval
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import Notice, UserError, cause_fields
from search_spaces.topologies.registry import TOPOLOGIES, incompatibility_reason
from tasks.base import Metric, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COST_COLUMNS = (
    "params",
    "topology_params",
    "flops",
    "latency_ms",
    "step_ms",
    "peak_memory_bytes",
    "device",
    "batch",
    "threads",
)
"""Columns of costs in a comparison."""

MATCH_TOLERANCE = 0.005
"""Largest relative cost difference of a match without a Notice."""

_WIDEST = 2**24


@final
@dataclass(frozen=True)
class Comparison(RecordsResult):
    """The result of a comparison of architectures.

    Attributes:
        title: One line about what was compared.
        records: One flat record for each architecture: shape, costs and, if trained, each metric's mean over complete
            seeds with its standard error.
        metric: The column whose differences `records` has.
        training_rows: The Row of each architecture with each seed; empty if nothing was trained.
        tuning_rows: The Rows of the trainings that tuned each architecture's recipe.
        baselines: Baseline -> its columns, if networks were trained.
    """

    metric: str
    training_rows: tuple[Row, ...] = ()
    tuning_rows: tuple[Row, ...] = ()
    baselines: Mapping[str, Mapping[str, float]] | None = None

    def rows(self) -> list[Row]:
        """Return every Row, failures included."""
        return [*self.tuning_rows, *self.training_rows]

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw each architecture's difference to the first, with its interval; save the figure if `path` is given.

        Raises:
            UserError: Nothing was trained, or the file cannot be written.
        """
        from nas.report import plots  # Matplotlib takes half a second

        if not self.training_rows:
            raise UserError("missing-rows", "nothing was trained, so there is nothing to draw. Give --seeds 1 or more.")
        return plots.save_figure(plots.draw_comparison(self.records, self.metric, self.title), path)

    def notes(self) -> list[str]:
        """Return what the intervals mean, and the baselines."""
        return tables.comparison_notes(self.records, self.metric, self.baselines or {})

    def figure(self) -> "Figure | None":
        """Return the picture of the differences if networks were trained."""
        return self.plot() if self.training_rows else None


def candidates(
    task: Task, archs: Sequence[str], topologies: str | Sequence[str] | None, match: str | None, preset: str
) -> list[Architecture]:
    """Return every architecture with every topology, matched in the cost `match` to the first.

    The topology "all" means every installed one that fits the architecture, resnet first. A Notice explains each that
    does not.

    Raises:
        UserError: An invalid architecture or topology.
    """
    wirings: Sequence[str | None] = [None] if topologies is None else parse_topologies(topologies)
    shapes = archs or [""]
    architectures = [
        architecture
        for arch in shapes
        for topology in wirings
        for architecture in _architectures_with_topology(task, preset, arch, topology)
    ]
    architectures = list(dict.fromkeys(architectures))
    if match is None:
        return architectures
    target = budget_counts(task, architectures[0])[match]
    matches = [
        match_cost(architecture, target, lambda other: budget_counts(task, other)[match])
        for architecture in architectures[1:]
    ]
    for architecture in matches:
        difference = budget_counts(task, architecture)[match] / target - 1
        if abs(difference) > MATCH_TOLERANCE:
            message = f"{architecture.topology} cannot match {match} (closest: {difference:+.1%}): {architecture}."
            fields = {"topology": architecture.topology, "architecture": str(architecture), "difference": difference}
            notice = Notice("mismatch", message, option="--match", value=match, **fields)
            warnings.warn(notice, stacklevel=2)
    return list(dict.fromkeys([architectures[0], *matches]))


def _architectures_with_topology(task: Task, preset: str, arch: str, topology: str | None) -> list[Architecture]:
    if topology != ALL_TOPOLOGIES:
        return [architecture_of(task, preset, arch, topology)]
    architectures = [architecture_of(task, preset, arch, "resnet")]
    for name in sorted({*TOPOLOGIES.names()} - {"resnet"}):
        try:
            variant = architectures[0].with_fields({"topology": name})
            reason, fields = incompatibility_reason(variant), dict[str, Any]()
        except UserError as error:  # a topology that cannot be loaded
            reason, fields = str(error), cause_fields(error)
        if reason is None:
            architectures.append(variant)
        else:
            fields["topology"] = name
            warnings.warn(Notice("skipped", f"{name} is left out: {reason}", **fields), stacklevel=2)
    return architectures


def costs_of(
    task: Task, architectures: Sequence[Architecture], recipe: Any, threads: int, *, profile: bool
) -> list[dict[str, Any]]:
    """Return each architecture's counted costs and, if `profile`, those measured on this device."""
    costs: list[dict[str, Any]] = [asdict(count(task, architecture)) for architecture in architectures]
    for architecture, cost in zip(architectures, costs, strict=True):
        if profile:
            cost |= profile_largest_batch(task, architecture, recipe, None, trace_of(task.name, architecture), threads)
    return costs


def jobs_of(
    task: str,
    data: str | Path | None,
    architectures: Iterable[tuple[Architecture, RecipeOverrides]],
    seeds: Iterable[int],
    preset: str,
    threads: int,
) -> list[EvaluationJob]:
    """Return a job for every seed and every architecture with its recipe overrides, ordered by seed."""
    pairs = list(architectures)
    return [
        EvaluationJob(
            task=task,
            architecture=architecture,
            preset=preset,
            settings=settings,
            seed=seed,
            data=text_of(data),
            threads=threads,
        )
        for seed in seeds
        for architecture, settings in pairs
    ]


def match_cost(architecture: Architecture, target: int, cost: Callable[[Architecture], int]) -> Architecture:
    """Return the architecture whose number of hidden features brings its cost closest to the target.

    `cost` must not decrease with hidden features. The search is over 1 to 2**24 of them, the same number in all blocks.
    """

    def of(hidden: int) -> int:
        return cost(architecture.with_fields({"hidden": hidden}))

    low, high = 1, 2
    while high < _WIDEST and of(high) < target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if of(middle) < target else (low, middle)
    return architecture.with_fields({"hidden": min((low, high), key=lambda hidden: abs(of(hidden) - target))})


def summary(architecture: Architecture, rows: Sequence[Row], metrics: Sequence[str]) -> dict[str, Any]:
    """Return the mean of each metric over an architecture's complete seeds, and its standard error.

    The error is over seeds; None with one seed. It does not include the error of a single measurement.
    """
    records = [row.columns() for row in rows if row.architecture == architecture and row.status == "complete"]
    summary: dict[str, Any] = {"seeds": len(records)}
    for metric in metrics:
        values = [columns[metric] for columns in records if metric in columns]
        summary[metric] = statistics.fmean(values) if values else None
        summary[f"{metric}_se"] = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return summary


def compared_metric(metric: Metric, rows: Sequence[Row]) -> str:
    """Return the column by which architectures are compared: the metric on test if every complete Row has it."""
    is_tested = all(metric.name in row.test for row in rows if row.status == "complete")
    return f"test_{metric.name}" if is_tested else metric.name


def comparison_records(
    metric: Metric,
    architectures: Sequence[Architecture],
    costs: Sequence[Mapping[str, Any]],
    rows: Sequence[Row],
    match: str | None,
    recipe_columns: Sequence[str] = (),
) -> tuple[Mapping[str, Any], ...]:
    """Return the records of a comparison; the others are compared with the first architecture by one metric.

    `recipe_columns` are the columns of the recipe in which the trainings may differ.
    """
    metrics = [metric.name, f"test_{metric.name}"]
    differences = differences_to_first(architectures, rows, compared_metric(metric, rows), metric.direction)
    records = []
    for architecture, cost, over in zip(architectures, costs, differences, strict=True):
        record: dict[str, Any] = {**asdict(architecture), **{name: cost[name] for name in COST_COLUMNS if name in cost}}
        if "step_ms" in cost:
            slower = cost["step_ms"] / costs[0]["step_ms"]
            record |= {"relative_step": slower, "printed_step": paper_overhead(architecture.topology)}
        columns = next((row.columns() for row in rows if row.architecture == architecture), {})
        record |= {name: columns.get(name) for name in recipe_columns}
        if match is not None:
            record[f"{match}_off"] = cost[match] / costs[0][match] - 1
        records.append({**record, **({**summary(architecture, rows, metrics), **over} if rows else {})})
    return tuple(records)


def differences_to_first(
    architectures: Sequence[Architecture], rows: Sequence[Row], metric: str, direction: Direction
) -> list[dict[str, Any]]:
    """Return how far each architecture's metric is above the first's, and whether the difference is significant.

    Differences are paired by seed, which fixes the order of the data. Intervals are Student's, at 95 % for all
    architectures together (Bonferroni). A difference whose interval contains zero is not significant.

    Args:
        architectures: All architectures; the first is the reference.
        rows: Their Rows.
        metric: A column; `test_` at its start means the test split.
        direction: Whether more or less is better.
    """
    values: dict[Architecture, dict[int, float]] = {architecture: {} for architecture in architectures}
    for row in rows:
        group = row.test if metric.startswith("test_") else row.metrics
        if row.status == "complete" and metric.removeprefix("test_") in group:
            values[row.architecture][row.seed] = group[metric.removeprefix("test_")]
    first, *others = architectures
    empty = dict.fromkeys(("difference", "low", "high", "verdict"))
    records: list[dict[str, Any]] = [empty]
    for architecture in others:
        seeds = values[first].keys() & values[architecture].keys()
        differences = [values[architecture][seed] - values[first][seed] for seed in seeds]
        record: dict[str, Any] = {**empty, "difference": statistics.fmean(differences) if differences else None}
        if len(differences) > 1:
            record["verdict"] = "not distinguishable"
        if (
            len(differences) > 1 and statistics.stdev(differences) > 0
        ):  # equal differences give no estimate of their spread
            low, high = interval(differences, len(others))
            better = "better" if (low > 0) == (direction == "max") else "worse"
            record |= {"low": low, "high": high, **({"verdict": better} if low > 0 or high < 0 else {})}
        records.append(record)
    return records


def paper_overhead(topology: str) -> float | None:
    """Return the published time of a training step relative to the residual network's, or None.

    `overheads.csv` has the source of each value: networks, devices and precisions differ from these here.
    """
    return _overheads().get(topology)


@cache
def _overheads() -> dict[str, float]:
    text = files("nas.analysis").joinpath("overheads.csv").read_text(encoding="utf-8")
    return {line["topology"]: float(line["step_over_resnet"]) for line in csv.DictReader(text.splitlines())}
