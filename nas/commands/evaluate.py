"""`nas evaluate`: train one architecture and print its Row."""

from pathlib import Path

from nas import report
from nas.commands.results import for_a_terminal
from nas.evaluate import Job, evaluate, task_of
from nas.options import Format
from results import export, table
from search_spaces.architecture import parse_architecture
from search_spaces.mistake import Mistake, unknown
from search_spaces.topologies.registry import refusal


def run(
    reference: str, arch: str, preset: str, seed: int, data: Path | None, format: Format, output: Path | None
) -> None:
    """Evaluate and print; a failed evaluation is printed too, and then is a Mistake."""
    for_terminal = for_a_terminal(format, output)
    task = task_of(reference, str(data) if data else None)
    if preset not in task.presets:
        raise unknown(f"preset of task {task.name!r}", preset, task.presets)
    architecture = parse_architecture(arch, task.base_for(preset))
    reason = refusal(architecture)
    if reason is not None:
        raise Mistake(reason)
    job = Job(task=reference, architecture=architecture, preset=preset, seed=seed, data=str(data) if data else None)
    row = evaluate(job)
    if for_terminal:
        report.print_record(report.screen(), row.columns())
    else:
        export.write(table.from_rows([row]), format.value, output)
    if row.status == "failed":
        raise Mistake(f"the evaluation failed: {row.error}")
