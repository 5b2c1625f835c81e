"""`nas reproduce`: what papers print beside what this project has."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas.cli import claims, figures, paper_costs
from nas.cli.options import Printed
from nas.environment.paths import DEFAULT_STORE
from nas.papers.configs import LABELS, Reading, holds, is_printed, readings, row_of, unread
from nas.report.format import Format
from search_spaces.support.errors import UserError


@dataclass(frozen=True, slots=True)
class PaperComparison:
    """What papers print or claim beside what came out here.

    Attributes:
        what: What was compared.
        papers: Of which papers.
        records: A flat record a line.
    """

    what: Printed
    papers: Sequence[str]
    records: Sequence[dict[str, Any]]


def compared(
    what: Printed,
    paper: str | None = None,
    preset: str | None = None,
    workers: int | str | None = None,
    study: str | None = None,
    storage: str = DEFAULT_STORE,
    plot: Path | None = None,
) -> PaperComparison:
    """Compare what papers print with what comes out here; exit status 1 where a count is not what its label says.

    `params` counts networks; `flops`, `tokens`, `memory` and `time` are the other cost columns. `claims` measures what
    takes no training or, with a preset, what it trains. `figures` trains the linear networks of ANCRe's figure 2 and
    DeepCrossAttention's figure 1, in a minute or two, and `plot` draws them.

    Raises:
        UserError: An unknown paper, one without such a column, a preset where nothing is trained, or a picture of what
            has none.
    """
    from results.records import published

    papers = published.papers()
    if paper is not None:
        published.lines_of(paper)  # which tells an unknown one
        papers = [paper]
    if plot is not None and what is not Printed.FIGURES:
        message = f"only figures are drawn, got --plot {plot} for {what}. Leave it out."
        raise UserError("conflict", message, option="--plot", path=str(plot), what=what.value)
    if what is Printed.CLAIMS:
        if preset is None and study is not None:
            message = f"--study is of what is trained, got {study!r}. Say by which --preset, or leave it out."
            raise UserError("missing-value", message, option="--preset", needed_by="--study", study=study)
        return PaperComparison(what, papers, claims.records(paper, preset, storage, study, workers))
    if preset is not None:
        message = f"only claims are trained, got --preset {preset} for {what}. Leave it out."
        raise UserError("conflict", message, option="--preset", value=preset, what=what.value)
    if what is Printed.FIGURES:
        return PaperComparison(what, papers, figures.records(paper, plot))
    if what is not Printed.PARAMS:
        return PaperComparison(what, papers, paper_costs.records(what.value, paper))
    return PaperComparison(what, papers, [record for name in papers for record in _records(name)])


def show(comparison: PaperComparison, format: Format = Format.TABLE) -> None:
    """Print what was printed and what came out, a line a reading or a claim."""
    import typer

    from nas.report import tables
    from results.records import export, table

    records = list(comparison.records)
    if format is Format.TABLE and comparison.what is Printed.CLAIMS:
        claims.print_table(records)
    elif format is Format.TABLE and comparison.what is Printed.FIGURES:
        figures.print_table(records)
    elif format is Format.TABLE and comparison.what is not Printed.PARAMS:
        paper_costs.print_table(records)
    elif format is Format.TABLE:
        _print(records, comparison.papers)
    elif format is Format.MARKDOWN and records:
        tables.print_records(tables.screen(), records, list(records[0]), f"{len(records)} lines", format)
    else:
        export.write(table.from_records(records), format.value)
    labelled = [record for record in records if "label" in record]
    if not all(holds(record["label"], record["matches"] == "yes") for record in labelled):
        raise typer.Exit(1)


def _records(paper: str) -> Iterator[dict[str, Any]]:
    from results.records import published

    printed = {row_of(line): line["params_millions"] for line in published.lines_of(paper)}
    for reading in readings(paper):
        yield _record(paper, reading, printed[reading.row])


def _record(paper: str, reading: Reading, printed: str) -> dict[str, Any]:
    from nas.papers.configs.networks import params

    counted = params(reading)
    return {
        "paper": paper,
        "table": reading.table,
        "model": reading.model,
        "data": reading.data,
        "printed_millions": float(printed),
        "params": counted,
        "label": reading.label,
        "matches": "yes" if is_printed(counted, printed, reading.rounding) else "no",
        "network": reading.network,
        "preset": reading.preset,
        "architecture": reading.architecture,
        "formula": reading.formula,
        "counts": reading.counts,
        "rounding": reading.rounding,
        "reading": reading.reading,
    }


def _print(records: Sequence[dict[str, Any]], papers: Sequence[str]) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from nas.report import tables

    console = tables.screen()
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), collapse_padding=True)
    for heading in ("paper", "table", "model", "data", "printed", "counted", "label", "reading"):
        numbers = heading in ("table", "printed", "counted")
        shown.add_column(heading, justify="right" if numbers else "left", overflow="fold", no_wrap=numbers)
    for record in records:
        label = record["label"] if holds(record["label"], record["matches"] == "yes") else "BROKEN"
        printed, counted = f"{record['printed_millions']:g}M", f"{record['params'] / 1e6:.4f}M"
        cells = (record["paper"], record["table"], record["model"], record["data"], printed, counted, label)
        formula = f" [+ {record['formula']}]" if record["formula"] else ""
        shown.add_row(*map(escape, cells), escape(record["reading"] + formula))
    console.print(shown)
    for label in LABELS:
        if number := sum(record["label"] == label for record in records):
            console.print(f"{number} {label}", highlight=False)
    if any(record["formula"] for record in records):
        console.print("[+ ...]: in closed form, what nothing here builds, or less what is left out", markup=False)
    for paper in papers:
        if missing := unread(paper):
            line = f"{paper}: printed, and built by nothing here: {'; '.join(missing)}"
            console.print(line, soft_wrap=True, highlight=False, markup=False)
