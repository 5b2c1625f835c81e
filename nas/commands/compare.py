"""`nas compare`: what architectures cost side by side and, with seeds, what they reach."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nas import report
from nas.commands.results import for_a_terminal
from nas.commands.search import architecture_of
from nas.compare import evaluate_all, summary
from nas.cost import cheap_counts, count
from nas.evaluate import Job, task_of
from nas.match import MATCHED, matched
from nas.options import Format
from nas.progress import Progress
from nas.workers import usual, workers
from results import export, table
from results.row import Row
from search_spaces.architecture import Architecture
from search_spaces.mistake import unknown
from search_spaces.spec import split_top_level
from tasks.base import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a comparison asked for; the fields are the options of that name."""

    task: str
    archs: list[str]
    topologies: str | None
    match: str | None
    preset: str
    seeds: int
    workers: int | None
    data: Path | None
    format: Format
    output: Path | None
    curves: Path | None


def run(request: Request) -> None:
    """Count, train where seeds were asked for, and print; a file holds every Row, a terminal the means."""
    for_terminal = for_a_terminal(request.format, request.output)
    task = task_of(request.task, str(request.data) if request.data else None)
    architectures = candidates(task, request)
    costs = [asdict(count(task, architecture)) for architecture in architectures]
    rows = _train(request, task, architectures) if request.seeds else []
    if request.curves is not None:
        export.write(table.from_records([point for row in rows for point in row.points()]), "csv", request.curves)
    metrics = [name for metric in task.metrics[:1] for name in (metric.name, f"test_{metric.name}")]
    records: list[dict[str, Any]] = []
    for architecture, cost in zip(architectures, costs, strict=True):
        seen = summary(architecture, rows, metrics) if rows else {}
        kept = {name: cost[name] for name in ("params", "topology_params", "flops")}
        off = {f"{request.match}_off": cost[request.match] / costs[0][request.match] - 1} if request.match else {}
        records.append({**asdict(architecture), **kept, **off, **seen})
    if for_terminal:
        title = f"{task.name}, preset {request.preset}: {request.seeds or 'no'} seeds, means ± standard errors"
        console = report.screen()
        report.print_records(console, records, list(records[0]), title)
        for line in report.baseline_lines(task.baselines(request.preset)) if rows else []:
            console.print(line, soft_wrap=True, highlight=False, markup=False)
    elif rows:
        export.write(table.from_rows(rows), request.format.value, request.output)
    else:
        export.write(table.from_records(records), request.format.value, request.output)


def candidates(task: Task, request: Request) -> list[Architecture]:
    """Every `--arch` with every `--topology`, made equal to the first of them where `--match` says so.

    Raises:
        Mistake: One that cannot be read or wired, or a quantity that cannot be matched.
    """
    if request.match is not None and request.match not in MATCHED:
        raise unknown("quantity to match", request.match, MATCHED)
    topologies: Sequence[str | None] = split_top_level(request.topologies) if request.topologies else [None]
    named = [
        architecture_of(task, request.preset, arch, topology)
        for arch in request.archs or [""]
        for topology in topologies
    ]
    named = list(dict.fromkeys(named))
    if request.match is None:
        return named
    quantity = request.match
    target = cheap_counts(task, named[0])[quantity]
    return [matched(one, target, lambda given: cheap_counts(task, given)[quantity]) for one in named]


def _train(request: Request, task: Task, architectures: Sequence[Architecture]) -> list[Row]:
    """Every architecture with every seed, a seed at a time; the same command goes on where it was interrupted."""
    task.prepare()
    data = str(request.data) if request.data else None
    digest = hashlib.sha256(f"{request.task} {request.preset} {data}".encode()).hexdigest()[:6]
    folder = Path("nas-runs", f"compare-{digest}")
    jobs = [
        Job(
            task=request.task,
            architecture=architecture,
            preset=request.preset,
            seed=seed,
            data=data,
            folder=str(folder / f"{architecture.key}-{seed}"),
        )
        for seed in range(request.seeds)
        for architecture in architectures
    ]
    count = request.workers or min(usual(), len(jobs))
    first = task.metrics[0].name
    with Progress(task.name, [first], 0, len(jobs)) as progress, workers(count) as pool:
        return evaluate_all(jobs, pool, progress.add)
