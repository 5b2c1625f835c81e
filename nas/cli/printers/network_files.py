"""Printers of exported networks and of their predictions."""

from pathlib import Path
from typing import TYPE_CHECKING

from nas.report.format import Format
from nas.report.record_files import write_records
from nas.report.tables import is_for_terminal, make_console, print_line, print_records
from results.records.cell_text import cell_text

if TYPE_CHECKING:
    from nas.api.predict import NetworkPredictions
    from nas.exporters.export import ExportReport


def print_export(report: "ExportReport") -> None:
    """Print what was exported, what it takes and returns, and how another program reads it."""
    from nas.exporters.programs import program_of  # loads torch

    console, row = make_console(), report.row
    print_line(console, str(report))
    if row is not None:
        which = f"seed {row.seed}" if report.num_seeds == 1 else f"seed {row.seed}, the best of {report.num_seeds}"
        columns, metric = row.columns(), next(iter(row.directions))
        scores = ", ".join(
            f"{name} {cell_text(columns, name)}" for name in (metric, f"test_{metric}") if name in columns
        )
        print_line(console, f"network: {row.architecture} ({row.architecture.key}) on {row.task}, {which}: {scores}")
    print_line(console, f"inputs: {report.inputs}")
    if report.class_names:
        print_line(
            console, f"outputs: scores [batch, {len(report.class_names)}] of {', '.join(report.class_names[:12])}"
        )
    if report.url is not None:
        print_line(console, f"uploaded: {report.url}")
    program = program_of(report, report.file).splitlines()  # without a margin, to be copied
    for line in ("program:", "", *program, ""):
        print_line(console, line)
    if report.format in (".pt2", ".onnx") and report.class_names:
        print_line(console, f"or:  nas predict {report.file} FILES")


def print_predictions(
    predictions: "NetworkPredictions", format: Format = Format.TABLE, output: Path | None = None
) -> None:
    if not is_for_terminal(format, output):
        write_records(predictions.records, format, output)
        return
    print_records(make_console(), predictions.records, [*predictions.records[0]], predictions.title, format)
