"""`nas reproduce`: numbers that papers print, compared with this project."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from nas.cli.options import PaperQuantity
from nas.cli.papers import claims, costs, figures
from nas.cli.papers.request_checks import check_request
from nas.environment.paths import DEFAULT_STORE
from nas.papers.configs import (
    PaperConfig,
    is_label_true,
    is_printed,
    models_without_config,
    paper_configs,
    row_of,
)
from nas.papers.configs.paper_networks import params
from nas.report import tables
from nas.report.format import Format
from nas.report.record_files import write_records
from nas.report.tables import make_console, print_records
from results.records import published


@dataclass(frozen=True, slots=True)
class PaperComparison:
    """A comparison of what papers print or claim with results here.

    Attributes:
        what: The quantity.
        papers: Names of the papers.
        records: Flat records.
    """

    what: PaperQuantity
    papers: Sequence[str]
    records: Sequence[dict[str, Any]]


def compare_with_papers(
    what: PaperQuantity,
    paper: str | None = None,
    preset: str | None = None,
    workers: int | str | None = None,
    study: str | None = None,
    storage: str = DEFAULT_STORE,
    plot: Path | None = None,
) -> PaperComparison:
    """Count, measure or train what papers print, for one paper or all; draw figures if `plot` is given.

    Raises:
        UserError: An invalid request, such as an unknown paper or one without such a column.
    """
    check_request(what, paper, preset, study, plot)
    papers = published.papers() if paper is None else [paper]
    if what is PaperQuantity.CLAIMS:
        return PaperComparison(what, papers, claims.records(paper, preset, storage, study, workers))
    if what is PaperQuantity.FIGURES:
        return PaperComparison(what, papers, figures.records(paper, plot))
    if what is not PaperQuantity.PARAMS:
        return PaperComparison(what, papers, costs.records(what.value, paper))
    return PaperComparison(what, papers, [record for name in papers for record in _records(name)])


def print_comparison(comparison: PaperComparison, format: Format = Format.TABLE) -> None:
    """Print one line for each reading or claim; exit with status 1 if a count contradicts its label."""
    records = list(comparison.records)
    if format is Format.TABLE and comparison.what is PaperQuantity.CLAIMS:
        claims.print_table(records)
    elif format is Format.TABLE and comparison.what is PaperQuantity.FIGURES:
        figures.print_table(records)
    elif format is Format.TABLE and comparison.what is not PaperQuantity.PARAMS:
        costs.print_table(records)
    elif format is Format.TABLE:
        _print(records, comparison.papers)
    elif format is Format.MARKDOWN and records:
        print_records(make_console(), records, list(records[0]), f"{len(records)} lines", format)
    else:
        write_records(records, format)
    with_label = [record for record in records if "label" in record]
    if not all(is_label_true(record["label"], record["matches"] == "yes") for record in with_label):
        raise typer.Exit(1)


def _records(paper: str) -> Iterator[dict[str, Any]]:
    millions = {row_of(line): line["params_millions"] for line in published.lines_of(paper)}
    for reading in paper_configs(paper):
        yield _record(paper, reading, millions[reading.row])


def _record(paper: str, reading: PaperConfig, millions: str) -> dict[str, Any]:
    count = params(reading)
    return {
        "paper": paper,
        "table": reading.table,
        "model": reading.model,
        "data": reading.data,
        "printed_millions": float(millions),
        "params": count,
        "label": reading.label,
        "matches": "yes" if is_printed(count, millions, reading.rounding) else "no",
        "network": reading.network,
        "preset": reading.preset,
        "architecture": reading.architecture,
        "formula": reading.formula,
        "counts": reading.counts,
        "rounding": reading.rounding,
        "reading": reading.rationale,
    }


def _print(records: Sequence[dict[str, Any]], papers: Sequence[str]) -> None:
    console, lines = tables.make_console(), []
    for record in records:
        paper_count, our_count = f"{record['printed_millions']:g}M", f"{record['params'] / 1e6:.4f}M"
        cells = (record["paper"], record["table"], record["model"], record["data"], paper_count, our_count)
        formula = f" [+ {record['formula']}]" if record["formula"] else ""
        lines.append((*cells, costs.shown_label(record), record["reading"] + formula))
    headings = ("paper", "table", "model", "data", "printed", "counted", "label", "reading")
    tables.print_texts(console, headings, lines, right=("table", "printed", "counted"))
    costs.print_label_counts(records)
    if any(record["formula"] for record in records):
        console.print("[+ ...]: parts that are not built here, in closed form, or minus parts left out", markup=False)
    for paper in papers:
        if missing := models_without_config(paper):
            tables.print_line(console, f"{paper}: printed but not built here: {'; '.join(missing)}")
