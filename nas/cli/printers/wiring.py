"""The printer of a network's measured topology."""

from pathlib import Path

from nas.report import tables
from nas.report.format import Format
from nas.report.record_files import write_records
from nas.report.wiring.stack_wiring import coefficient_records, depth_records, matrix_records
from nas.report.wiring.wiring_report import WiringReport


def print_wiring(report: WiringReport, format: Format = Format.TABLE, plot: Path | None = None) -> None:
    """Print how layers mix earlier outputs, and sizes over depth; draw them instead if `plot` is given."""
    if plot is not None:
        report.plot(plot)
    if not tables.is_for_terminal(format):
        write_records(report.records, format)
        return
    console = tables.make_console()
    tables.print_line(console, f"{report.title}{f'; picture: {plot}' if plot is not None else ''}")
    for stack in report.stacks if plot is None else ():
        prefix = f"{stack.name}: " if stack.name else ""
        rows, depths = matrix_records(stack), depth_records(stack)
        title = f"{prefix}{stack.quantity} of each source (numbered below) in each layer's input"
        tables.print_records(console, rows, list(rows[-1]), title, format)
        names = ("number", "layer", "read", "made", "gradient")
        columns = [name for name in names if any(name in record for record in depths)]
        title = f"{prefix}RMS of each layer's input (read) and output (made), gradient norm of the loss by its output"
        tables.print_records(console, depths, columns, title, format)
        for name, weights in stack.coefficients.items():
            rows = coefficient_records(weights)
            tables.print_records(console, rows, list(rows[0]), f"{prefix}{name}, the topology's own weights", format)
