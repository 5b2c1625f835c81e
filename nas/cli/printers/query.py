"""`nas results`: query rows and print the answer. Loads no torch."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import compute

from nas.budget.bounds import parse_budget
from nas.budget.objectives import names_in
from nas.cli.printers.row_query import RowQuery
from nas.report import tables
from nas.report.conditions import condition_of
from nas.report.format import Format
from nas.report.record_files import write_rows
from nas.report.study import Study
from results.query.mixtures import mixture_columns, mixtures, mixtures_within
from results.query.query import parse_order, query
from results.records import export
from results.records.columns import MUST_MATCH_COLUMNS, is_reserved
from results.records.row import Row
from results.records.table import check_columns
from search_spaces.support.errors import UserError

MAX_BEST = 10
"""Lines of a task that a terminal prints for --best and --columns all, without --limit, --order-by and --by."""
MAX_EXTRA = 6
"""Extra measured columns of files of columns that a terminal prints; Parquet files read no others."""


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
    """Answer a question about the Rows of a study; print the answer, or write it to a file."""
    _check_columns(columns, format)
    names = [] if columns == "all" else names_in(columns or "")
    row_query = RowQuery(pareto, knee, best, names_in(by or ""), sql, names)
    for_terminal, condition = tables.is_for_terminal(format, output), condition_of(study.column_names, where, budget)
    orders, names = names_in(order_by or ""), [*(row_query.group_columns(study) if names else ()), *names]
    reads_subset = (for_terminal and columns is None) or (names and format is not Format.JSONL)
    rows = study.select(
        _columns_to_read(study, row_query, condition, orders, names) if reads_subset else study.column_names
    )
    matches = query(rows, where=condition)
    answer = _in_order(row_query, row_query.answer(study, matches), orders or row_query.order(study), limit)
    _print_mixture_notes(row_query, answer, matches)
    if format is Format.JSONL:
        write_rows(_rows_of(study, _trainings(row_query, matches, answer)), format, output)
    elif not for_terminal:
        export.write(query(answer, columns=names), format.value, output)
    elif not len(answer):
        tables.print_line(tables.make_console(), _empty_answer_message(row_query, len(matches), len(rows)))
    elif columns == "all" and format is Format.TABLE:
        _print_each(answer if limit else answer.slice(0, MAX_BEST), len(answer))
    else:
        answer_columns = query(answer, columns=_with_errors(names, answer)).column_names if columns else None
        base, truncate = rows if row_query.returns_rows else matches, row_query.is_ranked and not (limit or orders)
        drop_order = () if columns else _drop_order(study, row_query, answer, budget)
        max_lines = MAX_BEST if truncate else len(answer)
        _print_answer(study, row_query, answer, answer_columns, format, max_lines, base, drop_order)
    tables.print_written_files(output)


def _print_mixture_notes(row_query: RowQuery, answer: pa.Table, matches: pa.Table) -> None:
    """Print notes about rows that the answer should not mix."""
    notes = mixtures_within(matches, row_query.by) if row_query.returns_means else []
    for line in mixtures(answer) if row_query.returns_rows else notes:
        tables.print_line(tables.make_console(stderr=True), f"note: {line}")


def _in_order(row_query: RowQuery, answer: pa.Table, orders: Sequence[str], limit: int | None) -> pa.Table:
    """Return an answer in order, limited to `limit` lines; architectures to so many of each task."""
    if row_query.by or not (row_query.returns_architectures and limit and "task" in answer.column_names):
        return query(answer, order_by=orders, limit=limit)
    tasks = answer["task"].unique().to_pylist()
    return pa.concat_tables([query(_of_task(answer, task), order_by=orders, limit=limit) for task in tasks])


def _check_columns(columns: str | None, format: Format) -> None:
    if columns is not None and format is Format.JSONL:
        message = "--format jsonl writes whole rows and takes no --columns. Give csv, json or parquet."
        raise UserError("conflict", message, option="--columns", value=columns, excludes="--format")


def _empty_answer_message(row_query: RowQuery, matches: int, total: int) -> str:
    """Return a message that says why an answer is empty."""
    reason = row_query.empty_reason if matches else "no row meets the condition" if total else "there are no rows"
    return f"nothing to show: {matches} of {total} rows match, {reason}"


def _print_answer(
    study: Study,
    row_query: RowQuery,
    answer: pa.Table,
    answer_columns: Sequence[str] | None,
    format: Format,
    max_lines: int,
    base: pa.Table,
    drop_order: Sequence[str],
) -> None:
    """Print an answer with the chosen columns, or those that differ between lines; `max_lines` lines for each task."""
    leading = row_query.leading_columns(study) if row_query.returns_architectures else []
    if row_query.returns_rows:
        columns = (
            [*_terminal_columns(study, answer, (), base), *_varying_columns(answer)]
            if answer_columns is None
            else answer_columns
        )
        _print(query(answer, columns=columns), f"{len(answer)} of {len(base)} rows", format, drop_order)
        return
    if row_query.sql is not None:
        title = f"{len(answer)} {'line' if len(answer) == 1 else 'lines'}"
        _print(query(answer, columns=answer_columns or answer.column_names), title, format, drop_order)
        return
    for task, part in _by_task(answer, [*row_query.by, *(answer_columns or ())]):
        columns = _terminal_columns(study, part, leading, part) if leading else []
        if answer_columns is not None:
            columns = [column for column in answer_columns if column in part.column_names]
            if not columns:  # this task has none of the requested columns
                continue
        how_many = f"{max_lines} of {len(part)}" if max_lines < len(part) else f"{len(part)}"
        row_count = len(_of_task(base, task)) if task and "task" in base.column_names else len(base)
        title = (
            f"{f'{task}: ' if task else ''}{how_many} {'line' if how_many == '1' else 'lines'} from {row_count} rows"
        )
        _print(query(part, columns=columns, limit=max_lines), title, format, drop_order)


def _drop_order(study: Study, row_query: RowQuery, answer: pa.Table, budget: Sequence[str]) -> Sequence[str]:
    """Return the columns that a narrow terminal drops first; of others, and of requested ones, the last go first."""
    if row_query.pareto is None:
        return tables.DROP_ORDER if row_query.sql is None else ()
    return tables.front_drop_order(answer.column_names, {*row_query.objectives(study), *parse_budget(budget).bounds})


def _columns_to_read(
    study: Study, row_query: RowQuery, condition: str | None, orders: Sequence[str], names: Sequence[str]
) -> list[str]:
    """Return the columns to read for the answer and its table. Raises UserError for an unknown column."""
    available = study.column_names
    columns = {*row_query.source_columns(study), *names}
    if condition is not None:
        from results.query.condition import columns_in

        columns |= {*columns_in(condition, available)}
    if row_query.returns_rows:  # otherwise columns are the answer's
        check_columns(available, names)
        columns |= {parse_order(text, available)[0] for text in orders}
        columns |= {*(() if names else _identifying_columns(study)), "status", "error"}
    if row_query.returns_rows or row_query.returns_means:
        columns |= {*mixture_columns(available)}
    return [name for name in available if name in columns]


def _print(answer: pa.Table, title: str, format: Format, drop_order: Sequence[str]) -> None:
    tables.print_records(tables.make_console(), answer.to_pylist(), answer.column_names, title, format, drop_order)


def _print_each(answer: pa.Table, total: int) -> None:
    """Print wide lines one by one, with one line for each column."""
    console = tables.make_console()
    for number, record in enumerate(answer.to_pylist(), 1):
        tables.print_line(console, f"{number} of {total} lines")
        tables.print_record(console, record)
    if len(answer) < total:
        tables.print_line(console, f"{total - len(answer)} more; all: --limit {total}; as a table: --format csv")


def _by_task(answer: pa.Table, names: Sequence[str]) -> Iterator[tuple[str | None, pa.Table]]:
    """Yield each task's lines with its non-empty columns; MUST_MATCH_COLUMNS only if they differ or are in `names`."""
    tasks = answer["task"].unique().to_pylist() if "task" in answer.column_names else [None]
    for task in tasks:
        part = answer if "task" not in answer.column_names else _of_task(answer, task).drop_columns("task")
        present = {name for name in part.column_names if part[name].null_count < len(part)}
        present -= {
            name
            for name in MUST_MATCH_COLUMNS
            if name in present and name not in names and len(part[name].unique()) == 1
        }
        yield task, part.select([name for name in part.column_names if {name, name.removesuffix("_se")} & present])


def _of_task(answer: pa.Table, task: str | None) -> pa.Table:
    return answer.filter(compute.is_null(answer["task"]) if task is None else compute.equal(answer["task"], task))


def _trainings(row_query: RowQuery, rows: pa.Table, answer: pa.Table) -> pa.Table:
    """Return the rows of an answer: itself, or all rows of its architectures."""
    if not row_query.returns_architectures:
        return answer
    from results.query.grouping import trainings

    return trainings(rows, answer)


def _with_errors(names: Sequence[str], answer: pa.Table) -> list[str]:
    """Return columns with their standard errors, which share a cell on a terminal."""
    errors = {name: [f"{name}_se"] if f"{name}_se" in answer.column_names else [] for name in names}
    return [column for name in names for column in (name, *errors[name])]


def _rows_of(study: Study, answer: pa.Table) -> list[Row]:
    """Return the complete Rows of a table's lines. Raises UserError if a line has none."""
    rows = {row.identity(): row for row in study.rows()}
    identities = [*map(str, answer["identity"].to_pylist() if "identity" in answer.column_names else [""])]
    if not rows.keys() >= {*identities}:
        message = "--format jsonl writes whole rows, and some lines here are none. Give csv, json or parquet."
        raise UserError("unsupported", message, option="--format", value="jsonl")
    return [rows[identity] for identity in identities]


def _varying_columns(answer: pa.Table) -> list[str]:
    """Return further columns in which rows differ: seed, status, error."""
    several = [name for name in ("seed", "status") if name in answer.column_names and len(answer[name].unique()) > 1]
    return [*several, *(["error"] if "error" in answer.column_names and any(answer["error"].to_pylist()) else [])]


def _terminal_columns(study: Study, answer: pa.Table, names: Sequence[str], base: pa.Table) -> list[str]:
    """Return the columns that a terminal prints: those that differ between lines, `names`, and shapes."""
    varying = [name for name in ("task", "preset") if name in answer.column_names and len(base[name].unique()) > 1]
    recipe = [name for name in answer.column_names if name.startswith("recipe_") and len(answer[name].unique()) > 1]
    columns = dict.fromkeys((*varying, *names, *(recipe if names else ()), *_identifying_columns(study)))
    return [name for name in columns if name in answer.column_names and answer[name].null_count < len(answer)]


def _identifying_columns(study: Study) -> list[str]:
    """Return the columns that tell Rows apart, and measured columns of files without Rows with their errors."""
    extra = [name for name in study.extra_columns() if not is_reserved(name.removeprefix("test_"))]
    columns = [column for name in extra[:MAX_EXTRA] for column in (name, f"{name}_se")]
    return [*study.identifying_columns(), *columns]
