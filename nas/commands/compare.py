"""`nas compare`: what architectures cost side by side and, with seeds, what they reach."""

import hashlib
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nas import report
from nas.commands.results import for_a_terminal
from nas.commands.search import architecture_of
from nas.compare import evaluate_all, summary
from nas.cost import cheap_counts, count
from nas.evaluate import Job, task_of
from nas.match import MATCHED, matched
from nas.options import Format
from nas.overheads import printed
from nas.profiling.profile import profile_what_fits, trace_of
from nas.progress import Progress
from nas.workers import usual, workers
from results import export, table
from results.row import Row
from search_spaces.architecture import Architecture
from search_spaces.errors import Notice, UserError, unknown
from search_spaces.spec import split_top_level
from tasks.base import Task

SHOWN = ("params", "topology_params", "flops", "latency_ms", "step_ms", "peak_memory_bytes")
"""Costs in the table."""

NEAR = 0.005
"""How far off a match may be before that is said, as a share."""


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
    profile: bool = False


def run(request: Request) -> None:
    """Count, train where seeds were asked for, and print; a file holds every Row, a terminal the means."""
    for_terminal = for_a_terminal(request.format, request.output)
    if request.curves is not None and not request.seeds:
        raise UserError("--curves needs trained networks. Give --seeds.")
    task = task_of(request.task, request.data)
    architectures = candidates(task, request)
    costs = [asdict(count(task, architecture)) for architecture in architectures]
    if request.profile:
        costs = [cost | _measured(request, task, one) for cost, one in zip(costs, architectures, strict=True)]
    if not request.seeds:
        _show(request, task, architectures, costs, [], for_terminal)
        return
    folder = _folder(request)
    with _held(folder):
        rows = _train(request, task, architectures, folder)
        if request.curves is not None:
            export.write(table.from_records([point for row in rows for point in row.points()]), "csv", request.curves)
        _show(request, task, architectures, costs, rows, for_terminal)
        lost = [row for row in rows if row.status == "failed"]
        if lost:  # what was completed is kept for another try
            raise UserError(f"{len(lost)} of {len(rows)} evaluations failed, the first with: {lost[0].error}")
        for row in rows:  # and not what another, interrupted comparison has kept
            shutil.rmtree(_own(folder, row.architecture, row.seed))


def _measured(request: Request, task: Task, architecture: Architecture) -> dict[str, Any]:
    return dict(profile_what_fits(task, architecture, request.preset, None, trace_of(task.name, architecture)))


def _show(
    request: Request,
    task: Task,
    architectures: Sequence[Architecture],
    costs: Sequence[Mapping[str, Any]],
    rows: Sequence[Row],
    for_terminal: bool,
) -> None:
    metrics = [name for metric in task.metrics[:1] for name in (metric.name, f"test_{metric.name}")]
    records: list[dict[str, Any]] = []
    for architecture, cost in zip(architectures, costs, strict=True):
        seen = summary(architecture, rows, metrics) if rows else {}
        kept = {name: cost[name] for name in SHOWN if name in cost}
        if request.profile:
            over = cost["step_ms"] / costs[0]["step_ms"]
            kept |= {"step_over_first": over, "paper_step": printed(architecture.topology)}
        off = {f"{request.match}_off": cost[request.match] / costs[0][request.match] - 1} if request.match else {}
        records.append({**asdict(architecture), **kept, **off, **seen})
    if not for_terminal:
        found = table.from_rows(rows) if rows else table.from_records(records)
        export.write(found, request.format.value, request.output)
        return
    console = report.screen()
    same = [name for name in records[0] if len(records) > 1 and all(one[name] == records[0][name] for one in records)]
    shared = ", ".join(f"{name} {records[0][name]}" for name in same if records[0][name] not in ("", None))
    title = f"{task.name}, preset {request.preset}, {request.seeds or 'no'} seeds; all: {shared or 'nothing'}"
    report.print_records(console, records, [name for name in records[0] if name not in same], title)
    for line in report.baseline_lines(task.baselines(request.preset)) if rows else []:
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def candidates(task: Task, request: Request) -> list[Architecture]:
    """Every `--arch` with every `--topology`, made equal to the first of them where `--match` says so.

    Raises:
        UserError: One that cannot be read or wired, or a quantity that cannot be matched.
    """
    if request.match is not None and request.match not in MATCHED:
        raise unknown("quantity to match", request.match, MATCHED)
    topologies: Sequence[str | None] = [None]
    if request.topologies is not None:
        topologies = [name for name in split_top_level(request.topologies) if name.strip()]
    if not topologies:
        raise UserError(f"--topology must name at least one topology, got {request.topologies!r}.")
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
    others = [matched(one, target, lambda given: cheap_counts(task, given)[quantity]) for one in named[1:]]
    for one in others:
        off = cheap_counts(task, one)[quantity] / target - 1
        if abs(off) > NEAR:
            warnings.warn(f"{one.topology} comes no nearer than {off:+.1%} of {quantity}: {one}.", Notice, 2)
    return list(dict.fromkeys([named[0], *others]))


def _train(request: Request, task: Task, architectures: Sequence[Architecture], folder: Path) -> list[Row]:
    """Every architecture with every seed, a seed at a time; the same command goes on where it was interrupted."""
    task.prepare()
    jobs = [
        Job(
            task=request.task,
            architecture=architecture,
            preset=request.preset,
            seed=seed,
            data=str(request.data) if request.data else None,
            folder=str(_own(folder, architecture, seed)),
        )
        for seed in range(request.seeds)
        for architecture in architectures
    ]
    count = request.workers or min(usual(), len(jobs))
    first = task.metrics[0].name
    with Progress(task.name, [first], 0, len(jobs)) as progress, workers(count) as pool:
        return evaluate_all(jobs, pool, progress.add)


def _own(folder: Path, architecture: Architecture, seed: int) -> Path:
    """The folder of one evaluation."""
    return folder / f"{architecture.key}-{seed}"


def _folder(request: Request) -> Path:
    """Where evaluations keep what they need to be continued, until all of them are shown."""
    digest = hashlib.sha256(f"{request.task} {request.preset} {request.data}".encode()).hexdigest()[:6]
    return Path("nas-runs", f"compare-{digest}")


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a comparison's folder against another process."""
    lock = FileLock(f"{folder}.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(f"another process compares these, and holds {folder}. Wait for it, or run elsewhere.") from None
    except OSError as error:
        raise UserError(f"{folder} cannot be made: {error.strerror}. Run nas elsewhere.") from error
    try:
        yield
    finally:
        lock.release()
