"""The data of a report's charts as plain records. Loads no torch."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan, sqrt
from statistics import fmean, stdev
from typing import Any

import numpy as np

from nas.report.axes import axis_names, topology_of
from results.records import table
from results.records.columns import ARCHITECTURE_COLUMNS
from results.records.published import lines_of
from results.records.row import Direction, Row
from results.stats.architecture_summary import ArchitectureSummary
from results.stats.hypervolume import hypervolume
from results.stats.pareto import non_dominated
from results.stats.true_front import BEYOND

Record = Mapping[str, Any]

COST_FACTOR = 1.5
"""Costs within this factor count as equal."""

MAX_VALUES = 24
"""Most values of an axis that is drawn."""

PARTS = {
    "parameters": ("topology_params", "embedding_params", "other params"),
    "operations": ("flops", "elementwise_flops"),
}
"""Cost -> the parts that it is split into; `other params` are the parameters in no other part."""

_PAPERS = {
    "c4-lm": ("ancre", "C4"),
    "c4-dca-lm": ("dca", "C4"),
    "lm1b-lm": ("dca", "LM1B"),
    "imagenet-vit": ("leaner", "ImageNet-1k"),
    "tinystories-lm": ("leaner", "TinyStories"),
    **{f"lra-{name.lower()}": ("leaner", name) for name in ("ListOps", "Text", "Retrieval", "Image", "Pathfinder")},
}
"""Task -> the paper with a comparable training, and that paper's name for the data."""


def shape_of(architecture: ArchitectureSummary) -> dict[str, Any]:
    """Return the fields that every record of an architecture starts with: key, topology and shape."""
    return {
        "key": architecture.record.get("key"),
        "topology": topology_of(architecture),
        **{name: architecture.record.get(name) for name in ("depth", "heads", "head_dim")},
    }


def hypervolumes(
    rows: Sequence[Row], architectures: Sequence[ArchitectureSummary], objectives: Mapping[str, Direction]
) -> list[dict[str, Any]]:
    """Return the share of the final hypervolume after each training at which it grew, and after the last.

    It uses the posterior means of all readings, so a lucky seed adds nothing. Each objective is scaled to the range
    from its best to its worst value; the reference point lies BEYOND the worst. Architectures without a Row are left
    out, because files of columns do not say when they were trained.
    """
    order = {row.identity(): number for number, row in enumerate(rows, 1)}
    candidates = [architecture for architecture in architectures if order.keys() & {*architecture.identities}]
    if not candidates:
        return []
    signs = np.array([-1.0 if way == "max" else 1.0 for way in objectives.values()])
    values = np.array([[architecture.expected[name] for name in objectives] for architecture in candidates]) * signs
    spread = np.ptp(values, axis=0)
    shares = (values - values.min(axis=0)) / np.where(spread == 0, 1.0, spread)
    first_trainings = np.array(
        [
            min(order[identity] for identity in architecture.identities if identity in order)
            for architecture in candidates
        ]
    )

    def volume(number: int) -> float:
        points = shares[first_trainings <= number]
        return hypervolume(points[non_dominated(points)], np.full(len(objectives), 1 + BEYOND))

    whole = volume(len(rows))
    return [{"trainings": n, "share": volume(n) / whole} for n in sorted({*first_trainings.tolist(), len(rows)})]


def curves(rows: Sequence[Row], metric: str) -> list[dict[str, Any]]:
    """Return the points of all learning curves of a metric."""
    names = ("identity", "key", "topology", "seed", "step")
    points = table.curves(rows).to_pylist()
    return [{**{n: p[n] for n in names}, "value": p[metric]} for p in points if p.get(metric) is not None]


def cost_part_records(architectures: Sequence[ArchitectureSummary], whole: str) -> list[dict[str, Any]]:
    """Return one record for each counted part of each architecture's parameters or operations."""
    records = []
    for architecture in architectures:
        record = dict(architecture.record)
        subtotal = sum(record.get(name) or 0 for name in PARTS["parameters"][:2])
        record["other params"] = None if record.get("params") is None else record["params"] - subtotal
        values = {name: record.get(name) for name in PARTS[whole]}
        records += [{**shape_of(architecture), "part": name, "value": value} for name, value in values.items() if value]
    return records


def axes_of(architectures: Sequence[ArchitectureSummary]) -> list[str]:
    """Return the columns of architecture and recipe that differ, and have few enough values to draw."""
    names = [name for name in architectures[0].record if name in ARCHITECTURE_COLUMNS or name.startswith("recipe_")]
    return [
        name
        for name in names
        if 1 < len({architecture.record.get(name) for architecture in architectures}) <= MAX_VALUES
    ]


def means_by_value(architectures: Sequence[ArchitectureSummary], axis: str, metric: str) -> list[dict[str, Any]]:
    """Return the mean and spread of a metric over the architectures with each value of an axis, in order.

    `spread` is the standard deviation; None if the value has one architecture.
    """
    groups: dict[Any, list[float]] = {}
    for architecture in sorted(architectures, key=lambda architecture: _sortable(architecture.record.get(axis))):
        groups.setdefault(architecture.record.get(axis), []).append(architecture.record[metric])
    return [
        {
            "at": str(value),
            "mean": fmean(values),
            "spread": stdev(values) if len(values) > 1 else None,
            "number": len(values),
        }
        for value, values in groups.items()
    ]


def _sortable(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return not number, value if number else 0.0, str(value)


def at_equal_cost(architectures: Sequence[ArchitectureSummary], cost: str, metric: str) -> list[dict[str, Any]]:
    """Return each architecture's metric minus the mean of all others with the same cost, within COST_FACTOR.

    Architectures without such a neighbour are left out.
    """
    records = []
    for architecture in architectures:
        neighbours = [
            other.record[metric]
            for other in architectures
            if other is not architecture
            and architecture.record[cost]
            <= COST_FACTOR * other.record[cost]
            <= COST_FACTOR**2 * architecture.record[cost]
        ]
        if neighbours:
            above = architecture.record[metric] - fmean(neighbours)
            records.append(
                {
                    **shape_of(architecture),
                    "cost": architecture.record[cost],
                    "neighbours": len(neighbours),
                    "above": above,
                }
            )
    return records


def by_topology(differences: Sequence[Record]) -> list[dict[str, Any]]:
    """Return each topology's mean difference from `at_equal_cost` and its standard error, largest first.

    `error` is None if a topology has one architecture.
    """
    groups: dict[str, list[float]] = {}
    for record in differences:
        groups.setdefault(str(record["topology"]), []).append(record["above"])
    means = [
        {
            "topology": name,
            "mean": fmean(values),
            "error": stdev(values) / sqrt(len(values)) if len(values) > 1 else None,
            "number": len(values),
        }
        for name, values in groups.items()
    ]
    return sorted(means, key=lambda record: -record["mean"])


def published(tasks: set[str], cost: str, metric: str) -> list[dict[str, Any]]:
    """Return the results that a paper prints for the task: parameters with loss, perplexity or accuracy."""
    if cost != "params" or len(tasks) != 1 or not tasks <= _PAPERS.keys():
        return []
    paper, data = _PAPERS[next(iter(tasks))]
    column, unit = ("accuracy_percent", 100) if metric == "accuracy" else (metric, 1)
    return [
        {
            "model": line["model"],
            "paper": f"{paper}, table {line['table']}",
            "x": float(line["params_millions"]) * 1e6,
            "y": float(line[column]) / unit,
        }
        for line in lines_of(paper)
        if line["data"] == data and line["params_millions"] and line.get(column)
    ]


def provenance_pairs(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield the provenance of Rows: a name, and all its values."""
    for name in ("command", "commit", "device", "threads"):
        values = dict.fromkeys(row.provenance.get(name) for row in rows)
        yield name, "; ".join(str(value) for value in values if value is not None)
    yield "seeds", ", ".join(map(str, sorted({row.seed for row in rows})))
    yield "data", ", ".join(sorted({row.data for row in rows if row.data}))
    versions: dict[str, set[str]] = {}
    for row in rows:
        packages = row.provenance.get("versions")
        for package, version in (packages if isinstance(packages, Mapping) else {}).items():
            versions.setdefault(package, set()).add(str(version))
    yield "versions", ", ".join(f"{name} {' and '.join(sorted(numbers))}" for name, numbers in versions.items())


def rank_key(architecture: ArchitectureSummary, objectives: Mapping[str, Direction]) -> tuple[float, float]:
    """Return a sort key: the likeliest on the front first; without probabilities, the best by metric."""
    _, metric = axis_names(objectives)
    value = architecture.expected[metric]
    return 0.0 if isnan(architecture.p_front) else -architecture.p_front, -value if objectives[
        metric
    ] == "max" else value
