"""`nas cost`: count one architecture without training it."""

from dataclasses import asdict, dataclass
from pathlib import Path

from nas import report
from nas.breakdown import by_layer, by_operator
from nas.commands.search import architecture_of
from nas.cost import count
from nas.evaluate import task_of
from nas.options import By, Format
from nas.profiling.profile import profile_what_fits, trace_of
from results import export, table
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from tasks.base import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for; the fields are the options of that name."""

    task: str
    arch: str
    topology: str | None
    preset: str
    data: Path | None
    profiled: bool
    by: By | None
    format: Format


def run(request: Request) -> None:
    """Count and print."""
    if request.by and request.profiled:
        raise UserError("--profile measures a network as a whole, and --by divides what is counted. Give one of them.")
    task = task_of(request.task, request.data)
    architecture = architecture_of(task, request.preset, request.arch, request.topology)
    if request.by:
        _print_parts(task, architecture, request.by, request.format)
        return
    costs = asdict(count(task, architecture))
    record = {"task": task.name, "key": architecture.key, **asdict(architecture), **costs}
    record["uncounted"] = " ".join(costs["uncounted"])
    if request.profiled:
        record |= profile_what_fits(task, architecture, request.preset, None, trace_of(task.name, architecture))
    if request.format is Format.TABLE:
        report.print_record(report.screen(), record)
    else:
        export.write(table.from_records([record]), request.format.value)


def _print_parts(task: Task, architecture: Architecture, by: By, format: Format) -> None:
    records = (by_layer if by is By.LAYER else by_operator)(task, architecture)
    if format is Format.TABLE:
        sums = (f"{sum(record[name] for record in records):,} {name}" for name in ("params", "macs", "flops"))
        title = f"{task.name}, {architecture} by {by.value}: {', '.join(sums)}"
        report.print_records(report.screen(), records, list(records[0]), title)
    else:
        export.write(table.from_records(records), format.value)
