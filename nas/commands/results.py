"""`nas results`: the rows that were asked for. Loads no torch."""

from pathlib import Path
from typing import TYPE_CHECKING

from nas.options import Format

if TYPE_CHECKING:
    import pyarrow as pa

    from nas.study import Study


def query_rows(
    study: "Study",
    where: str | None = None,
    pareto: str | None = None,
    columns: str | None = None,
    order_by: str | None = None,
    limit: int | None = None,
    format: Format = Format.TABLE,
    output: Path | None = None,
) -> None:
    """Query the Rows of a study, of several with commas, of `all`, or of a file; without a name the newest search's."""
    from nas import report
    from nas.objectives import names_in, resolve
    from results import export, table
    from results.query import query
    from search_spaces.errors import UserError

    report.say_bad(study.bad)
    every = study.table
    objectives = None if pareto is None else resolve(names_in(pareto), study.directions)
    if objectives is not None and not any(row.status == "complete" for row in study.rows()):
        raise UserError(study.nothing_complete())
    chosen = query(every, where=where, objectives=objectives, order_by=names_in(order_by or ""), limit=limit)
    for line in table.mixtures(chosen):
        report.say(report.screen(stderr=True), f"note: {line}")
    for_terminal = report.for_a_terminal(format, output)
    if format is Format.JSONL:
        rows = {row.identity(): row for row in study.rows()}
        report.write_rows([rows[identity] for identity in chosen["identity"].to_pylist()], format, output)
        return
    chosen = query(chosen, columns=_columns(columns, format, study, chosen))
    if for_terminal:
        title = f"{len(chosen)} of {len(every)} rows"
        report.print_records(report.screen(), chosen.to_pylist(), chosen.column_names, title)
    else:
        export.write(chosen, format.value, output)


def _columns(text: str | None, format: Format, study: "Study", chosen: "pa.Table") -> list[str]:
    """Those asked for; without a word a table shows the telling ones and a file holds all."""
    from nas.objectives import names_in

    if text == "all" or (text is None and format is not Format.TABLE):
        return []
    if text is not None:
        return names_in(text)
    seeds = ["seed"] if len(set(chosen["seed"].to_pylist())) > 1 else []
    errors = ["error"] if any(chosen["error"].to_pylist()) else []
    telling = ("task", *study.telling_columns(), *seeds, "status", *errors)
    several = len({row.task for row in study.rows()}) > 1
    return [column for column in telling if column in chosen.column_names and (several or column != "task")]
