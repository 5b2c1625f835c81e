"""`nas profile`: what an architecture costs on this device, and where the time goes."""

from dataclasses import asdict, dataclass
from pathlib import Path

from nas import report
from nas.commands.search import architecture_of
from nas.cost import count
from nas.evaluate import task_of
from nas.options import Format
from nas.profiling.profile import profile_what_fits, trace_of
from nas.profiling.trace import operators
from results import export, table

MOST = 10
"""How many operators are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for; the fields are the options of that name."""

    task: str
    arch: str
    topology: str | None
    preset: str
    batch: int | None
    data: Path | None
    format: Format


def run(request: Request) -> None:
    """Measure, trace and print."""
    task = task_of(request.task, request.data)
    architecture = architecture_of(task, request.preset, request.arch, request.topology)
    costs = asdict(count(task, architecture))
    kept = trace_of(task.name, architecture)
    found = profile_what_fits(task, architecture, request.preset, request.batch, kept)
    counted = {name: costs[name] for name in ("params", "flops")}
    record = {"task": task.name, "key": architecture.key, **asdict(architecture), **counted, **found}
    if request.format is not Format.TABLE:
        export.write(table.from_records([record]), request.format.value)
        return
    console = report.screen()
    report.print_record(console, record)
    trace = Path(str(found["trace"]))
    try:
        slowest = operators(trace, MOST)
    except ValueError:
        return  # the note says so
    report.print_records(console, slowest, list(slowest[0]), f"the {len(slowest)} slowest operators of 3 steps")
    more = f"{trace} opens in https://ui.perfetto.dev, or: tensorboard --logdir {trace.parent}"
    console.print(more, soft_wrap=True, highlight=False, markup=False)
