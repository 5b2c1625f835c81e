"""What a door returned, on the terminal or in a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas.environment.paths import folder_of_retrofit
from nas.report.format import Format

if TYPE_CHECKING:
    from nas.analysis.audit import Audit
    from nas.analysis.compare import Comparison
    from nas.analysis.mup_check import CoordinateCheck
    from nas.analysis.tournament import Tournament
    from nas.report.study import Study
    from nas.report.wiring.wiring_report import WiringReport
    from results.records.row import Row


def check(
    *,
    plot: Path | None = None,
    page: Path | None = None,
    format: Format = Format.TABLE,
    output: Path | None = None,
    curves: Path | None = None,
    seeds: int = 1,
    **others: Any,
) -> None:
    """Raise UserError where what was asked for could not be shown: before the work and not after it."""
    from nas.report import plots, tables
    from search_spaces.support.errors import UserError
    from search_spaces.support.files import check_writable

    plots.check_picture(plot)
    tables.for_a_terminal(format, output)
    # what an axis is worth is no row, though rows are asked
    if format is Format.JSONL and ("axis" in others or not ({"study", "source", "storage"} & set(others) and seeds)):
        message = "JSON Lines are of rows, and there are none. Give --format csv, json or parquet."
        raise UserError("unsupported", message, option="--format", value=format.value)
    for file in (plot, page, output, curves):
        if file is not None and not file.parent.is_dir():
            message = f"{file} cannot be written: there is no folder {file.parent}. Make it, or give another."
            raise UserError("unwritable", message, path=str(file), folder=str(file.parent))
        if file is not None:
            check_writable(file)
    if curves is not None and not seeds:
        message = "--curves needs trained networks. Give --seeds."
        raise UserError("missing-value", message, option="--seeds", value=seeds, needed_by="--curves")


def front(study: "Study", plot: Path | None = None) -> None:
    """Print the front of a study beside its baselines, and draw it; without a name the newest search's."""
    from nas.environment.paths import RUNS, slug
    from nas.report import tables

    objectives, found = study.objectives, study.standings()
    if not found:
        raise study.nothing_complete()
    tables.check_alike(found, "front")
    console, shown = tables.screen(), tables.front_records(found)
    tables.print_records(console, shown, [*study.telling_columns(), *tables.STANDING], study.title(objectives, found))
    for line in [*tables.front_notes(found), *_failures(study)]:
        tables.say(console, line)
    for line in tables.baseline_lines(study.config.baselines if study.config else {}):
        tables.say(console, line)
    path = plot or RUNS / f"{slug(study.name)}-front.png"
    study.plot(path)
    more = f"; ask more with: {tables.ask_again(study.name, study.storage)}" if study.config else ""
    tables.say(console, f"front drawn in {path}{more}")


def _failures(study: "Study") -> list[str]:
    """How many of a search's trainings failed: as they were trained, nobody may have looked."""
    failed = [row.error for row in study.rows() if row.status == "failed"]
    again = f"; another --study than {study.name} tries them again" if study.config else ""
    return [f"{len(failed)} of {len(study)} evaluations failed, the first with: {failed[0]}{again}"] if failed else []


def front_where(study: "Study", where: str | None = None, plot: Path | None = None) -> None:
    """Print the front of a study beside its baselines, and draw it; without a name the newest search's."""
    front(study if where is None else study.where(where), plot)


def report(study: "Study", where: str | None = None, page: Path | None = None, wirings: bool = False) -> None:
    """Write a study as one HTML file that opens anywhere (extra `report`); without a name the newest search.

    It shows the front with its errors, the hypervolume, training curves, what parameters are for, what each axis does,
    topologies at equal cost, every architecture, and how to make the study again; with --wirings who reads what in
    trained networks.
    """
    from nas.environment.paths import RUNS, slug
    from nas.report.tables import say, screen
    from search_spaces.support.progress import status_if_slow

    path = page or RUNS / f"{slug(study.name)}.html"
    with status_if_slow(f"writing {path} ..."):
        (study if where is None else study.where(where)).report(path, wirings=wirings)
    say(screen(), f"report written to {path}; it opens in any browser")


def row(evaluated: "Row", format: Format = Format.TABLE, output: Path | None = None) -> None:
    """Print a Row; a failed evaluation is printed too, and then is a UserError."""
    from nas.evaluation.job import first_process
    from nas.evaluation.saved_networks import before_training
    from nas.report import tables
    from search_spaces.support.errors import UserError

    for_terminal = tables.for_a_terminal(format, output)
    if not first_process():
        return
    if line := before_training(evaluated):
        tables.say(tables.screen(stderr=True), line)
    if for_terminal:
        tables.print_record(tables.screen(), tables.readable(evaluated))
    else:
        _write_kept([evaluated], format, output)
    if evaluated.status == "failed":
        raise UserError("failed", f"the evaluation failed: {evaluated.error}", identity=evaluated.identity())


def retrofitted(
    evaluated: "Row",
    checkpoint: Path,
    topology: str,
    save: Path | None = None,
    format: Format = Format.TABLE,
    output: Path | None = None,
) -> None:
    """Print a Row as `row` does, and where the network is kept."""
    from nas.evaluation.job import first_process
    from nas.evaluation.saved_networks import has_network
    from nas.report import tables

    row(evaluated, format, output)
    folder = folder_of_retrofit(checkpoint, topology, save)
    if first_process() and has_network(folder):
        tables.say(tables.screen(stderr=True), f"kept in {folder}")


def comparison(
    compared: "Comparison", format: Format = Format.TABLE, output: Path | None = None, curves: Path | None = None
) -> None:
    """Print a comparison: a file holds every Row, a terminal the means."""
    from nas.report import tables
    from results.records import export, table
    from search_spaces.support.errors import UserError

    for_terminal = tables.for_a_terminal(format, output)
    if curves is not None:
        export.write(table.curves(compared.trained), "csv", curves)
    if not for_terminal and compared.trained:
        _write_kept(compared.trained, format, output)
    elif not for_terminal:
        export.write(table.from_records(compared.records), format.value, output)
    else:
        tables.print_comparison(tables.screen(), compared.title, compared.records, compared.baselines or {}, format)
    lost = [row for row in compared.trained if row.status == "failed"]
    if lost:
        message = f"{len(lost)} of {len(compared.trained)} evaluations failed, the first with: {lost[0].error}"
        raise UserError("failed", message, failures=len(lost), evaluations=len(compared.trained))


def audit(audited: "Audit", format: Format = Format.TABLE, output: Path | None = None) -> None:
    """Print an audit: a file holds every Row, a terminal what they say."""
    from nas.report import tables

    if not tables.for_a_terminal(format, output):
        _write_kept(audited.trained, format, output)
        return
    console, names = tables.screen(), list(audited.records[0])
    orders = [name for name in names if name.startswith("tau_")]
    spreads = [name for name in names if name not in orders]
    tables.print_records(console, audited.records, spreads, audited.title, format)
    how = "Kendall's tau of the architectures' orders"
    tables.print_records(console, audited.records, ["metric", *orders], how, format)
    best = audited.records[0]["metric"]
    title = f"seeds that tell so many of them apart by {best}, and seconds an architecture then takes"
    tables.print_records(console, audited.resolutions, list(audited.resolutions[0]), title, format)


def drawn(
    found: "Tournament | CoordinateCheck",
    format: Format = Format.TABLE,
    output: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Print the records of what was found, and draw it where a file is named."""
    from nas.report import tables

    if tables.for_a_terminal(format, output):
        tables.print_records(tables.screen(), found.records, list(found.records[0]), found.title, format)
    else:
        _export(found.records, format, output)
    if plot is not None:
        found.plot(plot)
    tables.say_path(output, plot)


def _write_kept(rows: "Sequence[Row]", format: Format, output: Path | None) -> None:
    """Write Rows that a store has. Raises UserError where that cannot be, and says that they are not lost."""
    from nas.report import tables
    from search_spaces.support.errors import UserError

    try:
        tables.write_rows(rows, format, output)
    except UserError as error:
        which = f"--where \"identity = '{rows[0].identity()}'\" " if len(rows) == 1 else ""
        failed = next((f" The evaluation failed: {row.error}" for row in rows if row.status == "failed"), "")
        kept = (
            f"What was found is in the store: `nas results --study all {which}-o FILE` writes it, with its --storage."
        )
        raise UserError(error.kind, f"{error} {kept}{failed}", **error.fields) from error


def _export(records: Sequence[Mapping[str, Any]], format: Format, output: Path | None = None) -> None:
    """To a file or a pipe. What it takes is loaded here: pyarrow takes as long as the rest of a short command."""
    from results.records import export, table

    export.write(table.from_records(records), format.value, output)


def costs(records: list[dict[str, Any]], format: Format = Format.TABLE) -> None:
    """Print what was counted."""
    from nas.report import tables

    if not tables.for_a_terminal(format):
        _export(records, format)
    elif "key" in records[0]:
        tables.print_record(tables.screen(), records[0])
    else:
        sums = (f"{sum(record[name] for record in records):,} {name}" for name in ("params", "macs", "flops"))
        tables.print_records(tables.screen(), records, list(records[0]), ", ".join(sums), format)


def profile(record: Mapping[str, Any], format: Format = Format.TABLE) -> None:
    """Print what was measured, and the slowest operators of the trace."""
    from nas.costs.profile.trace import operators
    from nas.report import tables

    if not tables.for_a_terminal(format):
        _export([record], format)
        return
    console = tables.screen()
    tables.print_record(console, record)
    if "trace" not in record:
        return  # the record's note says why
    trace = Path(str(record["trace"]))
    try:
        slowest = operators(trace, tables.MOST_OPERATORS)
    except ValueError:
        return  # the record's note says so
    tables.print_records(console, slowest, list(slowest[0]), f"the {len(slowest)} slowest operators of 3 steps")
    tables.say(console, f"{trace} opens in https://ui.perfetto.dev, or: tensorboard --logdir {trace.parent}")


def wiring(shown: "WiringReport", format: Format = Format.TABLE, plot: Path | None = None) -> None:
    """Print who reads what of whom, and sizes over depth; or draw both where a file is named."""
    from nas.report import tables
    from nas.report.wiring.stack_wiring import coefficient_records, depth_records, matrix_records

    if plot is not None:
        shown.plot(plot)
    if not tables.for_a_terminal(format):
        _export(shown.records, format)
        return
    console = tables.screen()
    tables.say(console, f"{shown.title}{f'; drawn in {plot}' if plot is not None else ''}")
    for stack in shown.stacks if plot is None else ():
        of = f"{stack.name}: " if stack.name else ""
        rows, depths = matrix_records(stack), depth_records(stack)
        title = f"{of}{stack.quantity} of each source, by its number below, in what a layer reads"
        tables.print_records(console, rows, list(rows[-1]), title, format)
        names = ("number", "layer", "read", "made", "gradient")
        columns = [name for name in names if any(name in record for record in depths)]
        title = f"{of}root mean square of what is read and made, norm of the loss's gradient by what is made"
        tables.print_records(console, depths, columns, title, format)
        for name, found in stack.coefficients.items():
            rows = coefficient_records(found)
            tables.print_records(console, rows, list(rows[0]), f"{of}{name}, of the topology's own weights", format)
