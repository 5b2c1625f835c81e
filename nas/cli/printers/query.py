"""`nas results`: the rows that were asked for. Loads no torch."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import compute

from nas.budget.bounds import parse_budget
from nas.budget.objectives import names_in
from nas.cli.printers.question import Question
from nas.report import tables
from nas.report.format import Format
from nas.report.record_files import write_rows
from nas.report.study import Study
from results.query.mixtures import mixed, mixtures, mixtures_within
from results.query.query import order_in, query
from results.records import export
from results.records.columns import COMPARABLE, is_reserved
from results.records.row import Row
from results.records.table import check_columns
from search_spaces.support.errors import UserError

MOST_BEST = 10
"""Lines of --best, and of --columns all, that a terminal shows of each task, without --limit, --order-by and --by."""
MOST_MEASURED = 6
"""Columns of what files of columns have measured that a terminal shows: of Parquet files no others are read."""


def print_query(
    study: Study,
    where: str | None = None,
    budget: Sequence[str] = (),
    pareto: str | None = None,
    knee: bool = False,
    best: str | None = None,
    by: str | None = None,
    sql: str | None = None,
    columns: str | None = None,
    order_by: str | None = None,
    limit: int | None = None,
    format: Format = Format.TABLE,
    output: Path | None = None,
) -> None:
    """Answer a question about the Rows of a study: print it, or write it to a file."""
    _check_columns(columns, format)
    question = Question(pareto, knee, best, names_in(by or ""), sql)
    for_terminal, condition = tables.for_a_terminal(format, output), _conditions(study, where, budget)
    orders, named = names_in(order_by or ""), [] if columns == "all" else names_in(columns or "")
    few = (for_terminal and columns is None) or (named and format is not Format.JSONL)
    lines = study.select(_asked(study, question, condition, orders, named) if few else study.column_names)
    every = query(lines, where=condition)
    found = _in_order(question, question.asked_of(study, every), orders or question.order(study), limit)
    _say_mixtures(question, found, every)
    if format is Format.JSONL:
        write_rows(_rows_of(study, found), format, output)
    elif not for_terminal:
        export.write(query(found, columns=named), format.value, output)
    elif not len(found):
        tables.say(tables.screen(), _nothing(question, len(every), len(lines)))
    elif columns == "all" and format is Format.TABLE:
        _print_each(found if limit else found.slice(0, MOST_BEST), len(found))
    else:
        chosen = query(found, columns=named).column_names if columns else None
        of, cut = lines if question.is_of_rows else every, question.is_ranked and not (limit or orders)
        _print_answer(study, question, found, chosen, format, MOST_BEST if cut else len(found), of)
    tables.say_path(output)


def _say_mixtures(question: Question, found: pa.Table, every: pa.Table) -> None:
    """Say what an answer of rows, or of means over rows, should not have been made of together."""
    of_means = mixtures_within(every, question.by) if question.is_of_means else []
    for line in mixtures(found) if question.is_of_rows else of_means:
        tables.say(tables.screen(stderr=True), f"note: {line}")


def _in_order(question: Question, answer: pa.Table, orders: Sequence[str], limit: int | None) -> pa.Table:
    """The lines of an answer, at most so many; of architectures that are ranked, so many of each task."""
    if not (question.is_ranked and limit and "task" in answer.column_names):
        return query(answer, order_by=orders, limit=limit)
    tasks = answer["task"].unique().to_pylist()
    return pa.concat_tables([query(_of_task(answer, task), order_by=orders, limit=limit) for task in tasks])


def _check_columns(columns: str | None, format: Format) -> None:
    if columns is not None and format is Format.JSONL:
        message = "--format jsonl is of whole rows and takes no --columns. Take csv, json or parquet."
        raise UserError("conflict", message, option="--columns", value=columns, excludes="--format")


def _nothing(question: Question, every: int, of: int) -> str:
    """Why nothing is found."""
    reason = question.unanswered if every else "no row meets the condition" if of else "there is no row"
    return f"nothing to show: {every} of {of} rows asked, {reason}"


def _print_answer(
    study: Study,
    question: Question,
    found: pa.Table,
    chosen: Sequence[str] | None,
    format: Format,
    most: int,
    every: pa.Table,
) -> None:
    """Print the lines found, with the columns that were chosen or those that tell them apart; of a task so many."""
    dropped = tables.DROP_ORDER if chosen is None and question.sql is None else ()  # of what was asked for, the last go
    if question.is_of_rows:
        telling = [*_telling(study, found, (), every), *_differing(found)] if chosen is None else chosen
        _print(query(found, columns=telling), f"{len(found)} of {len(every)} rows", format, dropped)
        return
    if question.sql is not None:
        title = f"{len(found)} {'line' if len(found) == 1 else 'lines'}"
        _print(query(found, columns=chosen or found.column_names), title, format, dropped)
        return
    for task, part in _by_task(found, [*question.by, *(chosen or ())]):
        telling = _telling(study, part, question.first, part) if question.best else []
        if chosen is not None:
            telling = [column for column in chosen if column in part.column_names]
            if not telling:  # what was asked for this task has not
                continue
        how_many = f"{most} of {len(part)}" if most < len(part) else f"{len(part)}"
        own = len(_of_task(every, task)) if task and "task" in every.column_names else len(every)
        title = f"{f'{task}: ' if task else ''}{how_many} {'line' if how_many == '1' else 'lines'} from {own} rows"
        _print(query(part, columns=telling, limit=most), title, format, dropped)


def _asked(
    study: Study, question: Question, condition: str | None, orders: Sequence[str], named: Sequence[str]
) -> list[str]:
    """The columns that have to be read to answer and to show it. Raises UserError where there is no such column."""
    known = study.column_names
    asked = {*question.reads(study), *named}
    if condition is not None:
        from results.query.condition import columns_in

        asked |= {*columns_in(condition, known)}
    if question.is_of_rows:  # of anything else columns are its answer's
        check_columns(known, named)
        asked |= {order_in(text, known)[0] for text in orders}
        asked |= {*(() if named else _telling_columns(study)), "status", "error"}
    if question.is_of_rows or question.is_of_means:
        asked |= {*mixed(known)}
    return [name for name in known if name in asked]


def _print(found: pa.Table, title: str, format: Format, dropped: Sequence[str]) -> None:
    tables.print_records(tables.screen(), found.to_pylist(), found.column_names, title, format, dropped)


def _print_each(found: pa.Table, of: int) -> None:
    """Print lines of so many columns that no terminal has room for: each by itself, a column that it has a line."""
    console = tables.screen()
    for number, record in enumerate(found.to_pylist(), 1):
        tables.say(console, f"{number} of {of} lines")
        tables.print_record(console, record)
    if len(found) < of:
        tables.say(console, f"{of - len(found)} more: --limit {of} prints all, --format csv as a table")


def _by_task(found: pa.Table, asked: Sequence[str]) -> Iterator[tuple[str | None, pa.Table]]:
    """The lines of each task, with the columns that it has and that were asked for or differ."""
    tasks = found["task"].unique().to_pylist() if "task" in found.column_names else [None]
    for task in tasks:
        own = found if "task" not in found.column_names else _of_task(found, task).drop_columns("task")
        there = {name for name in own.column_names if own[name].null_count < len(own)}
        there -= {name for name in COMPARABLE if name in there and name not in asked and len(own[name].unique()) == 1}
        yield task, own.select([name for name in own.column_names if {name, name.removesuffix("_se")} & there])


def _of_task(found: pa.Table, task: str | None) -> pa.Table:
    return found.filter(compute.is_null(found["task"]) if task is None else compute.equal(found["task"], task))


def _conditions(study: Study, where: str | None, budget: Sequence[str]) -> str | None:
    """The condition that rows are to meet: what was typed, and the bounds. Raises UserError where it is none alone."""
    if where is not None and budget:
        from results.query.condition import columns_in

        columns_in(where, study.column_names)  # else its brackets might close ours

    bounds = [
        f"{name} >= {bound.low} and {name} <= {bound.high}" if bound.high < float("inf") else f"{name} >= {bound.low}"
        for name, bound in parse_budget(budget).bounds.items()
    ]
    return " and ".join([*([f"({where})"] if where is not None else []), *bounds]) or None


def _rows_of(study: Study, found: pa.Table) -> list[Row]:
    """The whole Rows of a table's lines. Raises UserError where a line is of none."""
    rows = {row.identity(): row for row in study.rows()}
    wanted = [*map(str, found["identity"].to_pylist() if "identity" in found.column_names else [""])]
    if not rows.keys() >= {*wanted}:
        message = "--format jsonl is of whole rows, and not every line here is one. Give csv, json or parquet."
        raise UserError("unsupported", message, option="--format", value="jsonl")
    return [rows[identity] for identity in wanted]


def _differing(found: pa.Table) -> list[str]:
    """What else rows may differ in."""
    several = [name for name in ("seed", "status") if name in found.column_names and len(found[name].unique()) > 1]
    return [*several, *(["error"] if "error" in found.column_names and any(found["error"].to_pylist()) else [])]


def _telling(study: Study, found: pa.Table, asked: Sequence[str], of: pa.Table) -> list[str]:
    """The columns that a terminal shows: what tells them from the others of a table, what was asked for, and shapes."""
    differing = [name for name in ("task", "preset") if name in found.column_names and len(of[name].unique()) > 1]
    recipe = [name for name in found.column_names if name.startswith("recipe_") and len(found[name].unique()) > 1]
    telling = dict.fromkeys((*differing, *asked, *(recipe if asked else ()), *_telling_columns(study)))
    return [name for name in telling if name in found.column_names and found[name].null_count < len(found)]


def _telling_columns(study: Study) -> list[str]:
    """The columns that tell Rows apart, and what files of columns alone have measured, with its errors."""
    measured = [name for name in study.extra_columns() if not is_reserved(name.removeprefix("test_"))]
    shown = [column for name in measured[:MOST_MEASURED] for column in (name, f"{name}_se")]
    return [*study.identifying_columns(), *shown]
