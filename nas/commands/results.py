"""`nas results` and `nas front`: ask a study, and show its front. Loads no torch."""

from pathlib import Path

from nas import report, store
from nas.objectives import resolve
from nas.options import Format
from results import export, table
from results.pareto import front
from results.query import query
from results.row import Row
from search_spaces.errors import UserError


def run(
    where: str | None,
    pareto: str | None,
    columns: str | None,
    order_by: str | None,
    limit: int | None,
    format: Format,
    output: Path | None,
    study: str | None,
    storage: str,
) -> None:
    """Print the rows of a study that were asked for."""
    _, settings, rows = _read(study, storage)
    objectives = resolve(_names(pareto), settings.metrics) if pareto is not None else None
    every = table.from_rows(rows)
    found = query(every, where=where, objectives=objectives, order_by=_names(order_by or ""), limit=limit)
    for line in table.mixtures(found):
        report.screen(stderr=True).print(f"note: {line}", highlight=False, markup=False)
    found = query(found, columns=_columns(columns, format, settings, found.column_names))
    if for_a_terminal(format, output):
        console = report.screen()
        report.print_records(console, found.to_pylist(), found.column_names, f"{len(found)} of {len(every)} rows")
    else:
        export.write(found, format.value, output)


def show_front(study: str | None, storage: str, plot: Path | None) -> None:
    """Print the front of a study beside its baselines, and draw it."""
    console = report.screen()
    name, settings, rows = _read(study, storage)
    found = front(table.from_rows(rows), settings.objectives)
    if not len(found):
        raise UserError(f"study {name!r} has no complete row yet: {len(rows)} ended. See `nas results`.")
    last = list(settings.objectives)[-1]
    records = sorted(found.to_pylist(), key=lambda record: float(record[last]))
    directions = ", ".join(f"{direction} {name}" for name, direction in settings.objectives.items())
    title = f"{name}: front of {len(rows)} architectures ({directions}; {settings.budget or 'no budget'})"
    report.print_records(
        console, records, report.front_columns(list(settings.objectives), list(settings.metrics)), title
    )
    for line in report.baseline_lines(settings.baselines):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    path = plot or Path("nas-runs", f"{store.slug(name)}-front.png")
    keys = [record["key"] for record in records]
    report.plot_front(path, [row.columns() for row in rows], keys, settings.objectives, title)
    more = f"front drawn in {path}; ask more with: nas results --study {name}"
    console.print(more, soft_wrap=True, highlight=False, markup=False)


def _read(study: str | None, storage: str) -> tuple[str, store.Settings, list[Row]]:
    """A study's name, settings and Rows."""
    opened_storage = store.open_storage(storage)
    with store.clear_errors(storage):
        opened = store.load_study(opened_storage, study)
        return opened.study_name, store.settings_of(opened), store.rows_of(opened)


def for_a_terminal(format: Format, output: Path | None) -> bool:
    """Whether to print a table. Raises UserError where a table is to go to a file."""
    if format is Format.TABLE and output is not None:
        raise UserError(f"a table is for the terminal; --output {output} needs --format csv, json or parquet.")
    return format is Format.TABLE


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _columns(text: str | None, format: Format, settings: store.Settings, known: list[str]) -> list[str]:
    """Those asked for; without a word a table shows the telling ones and a file holds all."""
    if text == "all" or (text is None and format is not Format.TABLE):
        return []
    if text is not None:
        return _names(text)
    telling = (*report.front_columns(list(settings.objectives), list(settings.metrics)), "status")
    return [column for column in telling if column in known]
