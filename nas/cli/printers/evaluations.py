"""Printers of Rows, comparisons and audits: a file gets every Row, a terminal a summary."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nas.environment.paths import folder_of_retrofit
from nas.evaluation.saved_networks import before_training, has_network
from nas.report import tables
from nas.report.format import Format
from nas.report.record_files import write_records, write_rows
from nas.request.job import is_first_process
from results.records import export, table
from results.records.row import Row
from search_spaces.support.errors import UserError

if TYPE_CHECKING:
    from nas.analysis.audit import Audit
    from nas.analysis.compare import Comparison
    from nas.analysis.mup_check import CoordinateCheck
    from nas.analysis.tournament import Tournament


def print_row(row: Row, format: Format = Format.TABLE, output: Path | None = None) -> None:
    """Print a Row; after a failed evaluation, then raise UserError."""
    for_terminal = tables.is_for_terminal(format, output)
    if not is_first_process():
        return
    if line := before_training(row):
        tables.print_line(tables.make_console(stderr=True), line)
    if for_terminal:
        tables.print_record(tables.make_console(), tables.readable_columns(row))
    else:
        _write_store_rows([row], format, output)
    if row.status == "failed":
        raise UserError("failed", f"the evaluation failed: {row.error}", identity=row.identity())


def print_retrofit(
    row: Row,
    checkpoint: Path,
    topology: str,
    save: Path | None = None,
    format: Format = Format.TABLE,
    output: Path | None = None,
) -> None:
    """Print a Row as `print_row` does, and where the network is saved."""
    print_row(row, format, output)
    folder = folder_of_retrofit(checkpoint, topology, save)
    if is_first_process() and has_network(folder):
        tables.print_line(tables.make_console(stderr=True), f"network: {folder}")


def print_comparison(
    comparison: "Comparison",
    format: Format = Format.TABLE,
    output: Path | None = None,
    curves: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Print a comparison: a file gets every Row, a terminal the means. Raises UserError if an evaluation failed."""
    for_terminal = tables.is_for_terminal(format, output)
    if curves is not None:
        export.write(table.curves(comparison.training_rows), "csv", curves)
    if not for_terminal and comparison.training_rows:
        _write_store_rows(comparison.training_rows, format, output)
    elif not for_terminal:
        write_records(comparison.records, format, output)
    else:
        console, notes = tables.make_console(), comparison.notes()
        tables.print_comparison(console, comparison.title, comparison.records, notes, format)
    if plot is not None:
        comparison.plot(plot)
        tables.print_written_files(plot)
    failures = [row for row in comparison.training_rows if row.status == "failed"]
    if failures:
        number = len(comparison.training_rows)
        message = f"{len(failures)} of {number} evaluations failed; first error: {failures[0].error}"
        raise UserError("failed", message, failures=len(failures), evaluations=number)


def print_audit(audit: "Audit", format: Format = Format.TABLE, output: Path | None = None) -> None:
    """Print an audit: a file gets every Row, a terminal the records."""
    if not tables.is_for_terminal(format, output):
        _write_store_rows(audit.training_rows, format, output)
        return
    console, names = tables.make_console(), list(audit.records[0])
    orders = [name for name in names if name.startswith("tau_")]
    spreads = [name for name in names if name not in orders]
    tables.print_records(console, audit.records, spreads, audit.title, format)
    how = "Kendall's tau between rankings of the architectures"
    tables.print_records(console, audit.records, ["metric", *orders], how, format)
    best = audit.records[0]["metric"]
    title = f"seeds needed to distinguish architectures by {best}, and seconds per architecture"
    tables.print_records(console, audit.resolutions, list(audit.resolutions[0]), title, format)


def print_with_plot(
    result: "Tournament | CoordinateCheck",
    format: Format = Format.TABLE,
    output: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Print the records of a result; draw it if `plot` is given."""
    if tables.is_for_terminal(format, output):
        tables.print_records(tables.make_console(), result.records, list(result.records[0]), result.title, format)
    else:
        write_records(result.records, format, output)
    if plot is not None:
        result.plot(plot)
    tables.print_written_files(output, plot)


def _write_store_rows(rows: Sequence[Row], format: Format, output: Path | None) -> None:
    """Write stored Rows. Raises UserError if they cannot be written, which says how to get them from the store."""
    try:
        write_rows(rows, format, output)
    except UserError as error:
        which = f"--where \"identity = '{rows[0].identity()}'\" " if len(rows) == 1 else ""
        reason = next((f" The evaluation failed: {row.error}" for row in rows if row.status == "failed"), "")
        remedy = f"The rows are in the store: write them with `nas results --study all {which}-o FILE`."
        raise UserError(error.kind, f"{error} {remedy}{reason}", **error.fields) from error
