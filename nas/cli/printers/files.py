"""Printers of what was written to files or a store."""

from pathlib import Path
from typing import TYPE_CHECKING

from nas.report.format import Format
from nas.report.record_files import write_records
from nas.report.tables import is_for_terminal, make_console, print_line, print_records
from results.records.cell_text import cell_text

if TYPE_CHECKING:
    from nas.api.predict import Predictions
    from nas.engine.row_import import ImportCounts
    from nas.exporters.export import ExportReport
    from nas.scaffold.new_file import NewFile
    from tasks.diffusion.encode_latents import LatentSummary


USES = {
    ".pt2": 'torch.export.load("{file}").module()(inputs)',
    ".onnx": 'onnxruntime.InferenceSession("{file}").run(None, {{NAME: inputs}})',
    ".safetensors": "weights alone; `nas.load_network(STUDY, KEY)` returns a module",
}
"""Suffix of an exported file -> how to use it."""


def print_import(report: "ImportCounts") -> None:
    duplicates = f"; {report.duplicates} already stored" if report.duplicates else ""
    rows = "row" if report.new == 1 else "rows"
    print_line(make_console(), f"{report.new} new {rows} in study {report.study}{duplicates}")


def print_latents(summary: "LatentSummary") -> None:
    console, shape = make_console(), " x ".join(map(str, summary.shape))
    print_line(console, f"latents of {summary.pictures} images of {summary.classes} classes, {shape}. Next:")
    print_line(console, f"    nas evaluate imagenet-dit --data {summary.folder}")


def print_export(report: "ExportReport") -> None:
    """Print what was exported, what it takes and returns, and how to use it."""
    console, row = make_console(), report.row
    print_line(console, str(report))
    if row is not None:
        which = f"seed {row.seed}" if report.num_seeds == 1 else f"seed {row.seed}, the best of {report.num_seeds}"
        columns = row.columns()
        metrics = [
            name for name in (next(iter(row.directions)), f"test_{next(iter(row.directions))}") if name in columns
        ]
        scores = ", ".join(f"{name} {cell_text(columns, name)}" for name in metrics)
        print_line(console, f"network: {row.architecture} ({row.architecture.key}) on {row.task}, {which}: {scores}")
    print_line(console, f"inputs: {report.inputs}")
    if report.class_names:
        print_line(
            console, f"outputs: scores [batch, {len(report.class_names)}] of {', '.join(report.class_names[:12])}"
        )
    print_line(console, f"use: {USES[report.file.suffix].format(file=report.file)}")
    if report.file.suffix != ".safetensors" and report.class_names:
        print_line(console, f"or:  nas predict {report.file} FILES")


def print_predictions(predictions: "Predictions", format: Format = Format.TABLE, output: Path | None = None) -> None:
    if not is_for_terminal(format, output):
        write_records(predictions.records, format, output)
        return
    print_records(make_console(), predictions.records, [*predictions.records[0]], predictions.title, format)


def print_new_file(new: "NewFile") -> None:
    """Print the path of a new file, and what to run next."""
    console, widest = make_console(), max(len(command) for command, _ in new.commands)
    print_line(console, f"{new.file} written; it runs as it is. Next:")
    for command, why in new.commands:
        print_line(console, f"    {command:{widest}}  # {why}")
