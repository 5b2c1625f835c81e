"""`nas evaluate`: train one architecture and print its Row."""

import os
from pathlib import Path

from nas import report
from nas.commands.results import for_a_terminal
from nas.commands.search import architecture_of
from nas.evaluate import Job, evaluate, task_of
from nas.options import Format
from results import export, table
from search_spaces.mistake import Mistake


def run(
    reference: str, arch: str, preset: str, seed: int, data: Path | None, format: Format, output: Path | None
) -> None:
    """Evaluate and print; a failed evaluation is printed too, and then is a Mistake."""
    for_terminal = for_a_terminal(format, output)
    task = task_of(reference, str(data) if data else None)
    architecture = architecture_of(task, preset, arch)
    job = Job(task=reference, architecture=architecture, preset=preset, seed=seed, data=str(data) if data else None)
    row = evaluate(job)
    if "TORCHELASTIC_RUN_ID" in os.environ and os.environ["RANK"] != "0":
        return  # of the processes that torchrun started, one speaks
    if for_terminal:
        report.print_record(report.screen(), row.columns())
    else:
        export.write(table.from_rows([row]), format.value, output)
    if row.status == "failed":
        raise Mistake(f"the evaluation failed: {row.error}")
