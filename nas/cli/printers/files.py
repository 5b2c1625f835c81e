"""Printers of what was written to files or a store."""

from typing import TYPE_CHECKING

from nas.report.tables import make_console, print_line

if TYPE_CHECKING:
    from nas.engine.row_import import ImportCounts
    from nas.scaffold.new_file import NewFile
    from tasks.diffusion.encode_latents import LatentSummary


def print_import(report: "ImportCounts") -> None:
    duplicates = f"; {report.duplicates} already stored" if report.duplicates else ""
    rows = "row" if report.new == 1 else "rows"
    print_line(make_console(), f"{report.new} new {rows} in study {report.study}{duplicates}")


def print_latents(summary: "LatentSummary") -> None:
    console, shape = make_console(), " x ".join(map(str, summary.shape))
    print_line(console, f"latents of {summary.pictures} images of {summary.classes} classes, {shape}. Next:")
    print_line(console, f"    nas evaluate imagenet-dit --data {summary.folder}")


def print_new_file(new: "NewFile") -> None:
    """Print the path of a new file, and what to run next."""
    console, widest = make_console(), max(len(command) for command, _ in new.commands)
    print_line(console, f"{new.file} written; it runs as it is. Next:")
    for command, why in new.commands:
        print_line(console, f"    {command:{widest}}  # {why}")
