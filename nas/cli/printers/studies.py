"""Printers of a study's front and report."""

from collections.abc import Sequence
from pathlib import Path

from nas.budget.bounds import parse_budget
from nas.environment.paths import RUNS, slug
from nas.report import tables
from nas.report.conditions import condition_of
from nas.report.study import Study, check_comparable
from search_spaces.support.progress import status_if_slow


def print_front(
    study: Study,
    plot: Path | None = None,
    *,
    where: str | None = None,
    budget: Sequence[str] = (),
    objectives: str | None = None,
) -> None:
    """Print the front of a study, or of some of its rows, with its baselines, and draw it."""
    condition = condition_of(study.column_names, where, budget)
    study = study if condition is None else study.where(condition)
    directions, summaries = study.directions_for(objectives), study.summaries(objectives)
    if not summaries:
        raise study.missing_rows_error()
    check_comparable(summaries, "front")
    console, records = tables.make_console(), tables.front_records(summaries)
    columns = tables.summary_columns(study.identifying_columns([*directions]), directions)
    title = study.title(directions, summaries)
    bounded = parse_budget([*([study.config.budget] if study.config and study.config.budget else []), *budget]).bounds
    drop_order = tables.front_drop_order(columns, {*directions, *bounded})
    tables.print_records(
        console, records, columns, title if condition is None else f"{title}; {condition}", drop_order=drop_order
    )
    for line in [*tables.front_notes(summaries), *_failures(study), *study.reference_lines(summaries, directions)]:
        tables.print_line(console, line)
    path = plot or RUNS / f"{slug(study.name)}-front.png"
    study.plot(path, objectives)
    tables.print_line(console, f"picture: {path}")
    if study.config:
        tables.print_line(console, f"all rows: {tables.results_command(study.name, study.storage)}")
        command = tables.export_command(study.name, study.storage, study.config.task)
        tables.print_line(console, f"next: {command} (the network at the knee)")


def _failures(study: Study) -> list[str]:
    """Return a line with the number of failed evaluations, if any."""
    errors = [row.error for row in study.rows() if row.status == "failed"]
    again = " (give another --study to try them again)" if study.config else ""
    return [f"{len(errors)} of {len(study)} evaluations failed{again}; first error: {errors[0]}"] if errors else []


def print_report(study: Study, page: Path | None = None, *, topologies: bool = False) -> None:
    """Write the report of a study, and print its path."""
    path = page or RUNS / f"{slug(study.name)}.html"
    with status_if_slow(f"writing {path} ..."):
        study.report(path, topologies=topologies)
    tables.print_line(tables.make_console(), f"report: {path} (open it in a browser)")
