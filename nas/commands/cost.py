"""`nas cost`: count one architecture without training it."""

from dataclasses import asdict
from pathlib import Path

from nas import report
from nas.cost import count
from nas.evaluate import task_of
from nas.options import Format
from results import export, table
from search_spaces.architecture import parse_architecture
from search_spaces.mistake import Mistake
from search_spaces.topologies.registry import refusal


def run(reference: str, arch: str, data: Path | None, format: Format) -> None:
    """Count and print."""
    task = task_of(reference, str(data) if data else None)
    architecture = parse_architecture(arch, task.base)
    reason = refusal(architecture)
    if reason is not None:
        raise Mistake(reason)
    costs = asdict(count(task, architecture))
    record = {"task": task.name, "key": architecture.key, **asdict(architecture), **costs}
    record["uncounted"] = " ".join(costs["uncounted"])
    if format is Format.TABLE:
        report.print_record(report.screen(), record)
    else:
        export.write(table.from_records([record]), format.value)
