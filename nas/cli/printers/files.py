"""What was written into files or a store."""

from typing import TYPE_CHECKING

from nas.report.tables import print_line, screen

if TYPE_CHECKING:
    from nas.engine.row_import import ImportCounts
    from nas.exporters.export import ExportReport
    from nas.scaffold.new_file import NewFile
    from tasks.diffusion.encode_latents import LatentSummary


def print_import(report: "ImportCounts") -> None:
    """Print how many rows are new."""
    duplicates = f"; {report.duplicates} it had" if report.duplicates else ""
    rows = "row is" if report.new == 1 else "rows are"
    print_line(screen(), f"{report.new} {rows} new in study {report.study}{duplicates}")


def print_latents(summary: "LatentSummary") -> None:
    """Print what was encoded, and what to run next."""
    console, shape = screen(), " x ".join(map(str, summary.shape))
    print_line(console, f"latents of {summary.pictures} pictures of {summary.classes} classes, {shape}. Next:")
    print_line(console, f"    nas evaluate imagenet-dit --data {summary.folder}")


def print_export(report: "ExportReport") -> None:
    """Print where a network was written, and how near it came."""
    print_line(screen(), str(report))


def print_new_file(new: "NewFile") -> None:
    """Print where a file to start from was written, and what to run next."""
    console, widest = screen(), max(len(command) for command, _ in new.commands)
    print_line(console, f"{new.file} written, complete as it is. Next:")
    for command, why in new.commands:
        print_line(console, f"    {command:{widest}}  # {why}")
