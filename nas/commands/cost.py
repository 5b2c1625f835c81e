"""`nas cost`: count one architecture without training it."""

from dataclasses import asdict
from pathlib import Path

from nas import report
from nas.commands.search import architecture_of
from nas.cost import count
from nas.evaluate import task_of
from nas.options import Format
from nas.profiling.profile import profile_what_fits, trace_of
from results import export, table


def run(
    reference: str, arch: str, topology: str | None, preset: str, data: Path | None, profiled: bool, format: Format
) -> None:
    """Count and print."""
    task = task_of(reference, data)
    architecture = architecture_of(task, preset, arch, topology)
    costs = asdict(count(task, architecture))
    record = {"task": task.name, "key": architecture.key, **asdict(architecture), **costs}
    record["uncounted"] = " ".join(costs["uncounted"])
    if profiled:
        record |= profile_what_fits(task, architecture, preset, None, trace_of(task.name, architecture))
    if format is Format.TABLE:
        report.print_record(report.screen(), record)
    else:
        export.write(table.from_records([record]), format.value)
