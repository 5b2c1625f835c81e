"""`nas results`: the rows that were asked for. Loads no torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nas.options import Format

if TYPE_CHECKING:
    import pyarrow as pa

    from nas.study import Study
    from results.row import Row

GROUPED = ("seeds", "expected", "chance")
"""Columns that architectures have in place of rows."""

MOST_BEST = 10
"""Lines of --best that a terminal shows of each task, without --limit, --order-by and --by."""


@dataclass(frozen=True)
class Question:
    """What is asked of rows beyond which of them: one of these, or of each group the best.

    Attributes:
        pareto: Objectives whose front is asked for.
        knee: Whether only that front's knee is.
        best: The metric by which the best architectures are.
        by: Columns that make groups.
        sql: A SELECT.

    Raises:
        UserError: Two questions, or a knee of nothing.
    """

    pareto: str | None
    knee: bool
    best: str | None
    by: Sequence[str]
    sql: str | None

    def __post_init__(self) -> None:
        from search_spaces.errors import UserError

        if self.knee and self.pareto is None:
            raise UserError("--knee is of a front. Give --pareto accuracy,flops.")
        if len({*self.by}) < len(self.by):
            raise UserError(f"--by names a column twice: {', '.join(self.by)}.")
        given = [name for name in ("pareto", "best", "by", "sql") if getattr(self, name) not in (None, [])]
        if len(given) > 1 and given != ["best", "by"]:
            raise UserError(f"--{given[0]} and --{given[1]} are two questions. Ask one after the other.")

    @property
    def is_of_rows(self) -> bool:
        """Whether its answer is some of the rows."""
        return self.sql is None and self.best is None and not self.by

    @property
    def is_ranked(self) -> bool:
        """Whether its answer is architectures from the best to the worst."""
        return self.best is not None and not self.by

    @property
    def first(self) -> list[str]:
        """The columns that its answer begins with."""
        metric = [] if self.best is None else [self.best.split()[-1]]
        return [*self.by, *metric, *(f"{name}_se" for name in metric), *GROUPED]

    @property
    def unanswered(self) -> str:
        """Why rows that meet the condition are no answer."""
        wanted = self.best or self.pareto
        return "of these nothing is an answer" if wanted is None else f"of these no complete one has {wanted}"

    def reads(self, study: "Study") -> list[str]:
        """The columns that it is about, whether the study has them or not."""
        from nas.objectives import names_in
        from results.pareto import TOGETHER

        named = [*study.directions_of(names_in(self.pareto or "")), *self.by]
        if self.sql is not None or self.best is not None or not {*named} <= {*study.column_names}:
            return study.column_names  # as SELECT * does, and what tells architectures from each other
        return [*named, *(self._measured(study) if self.by else ()), *TOGETHER]

    def _measured(self, study: "Study") -> list[str]:
        """The columns of which groups have means."""
        metrics = [f"{prefix}{name}" for name in study.directions for prefix in ("", "test_")]
        return [*metrics, *study.measured_elsewhere(), "params", "flops"]

    def asked_of(self, study: "Study", every: "pa.Table") -> "pa.Table":
        """Its answer by some rows of a study. Raises UserError where there is none."""
        if self.sql is not None:
            from results import sql

            return sql.answer(every, self.sql)
        if self.is_of_rows:
            return every if self.pareto is None else _front(study, every, self.pareto, knee=self.knee)
        from results import grouping  # with SciPy's algebra, which takes a quarter of a second to import

        if self.best is not None:
            [(metric, direction)] = study.directions_of([self.best]).items()
            return grouping.best(every, metric, direction, self.by, study.confirming)
        return grouping.means(every, self.by, self._measured(study))


def query_rows(
    study: "Study",
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
    """Query the Rows of a study, of several with commas, of `all`, or of files; without a name the newest search's.

    What meets --where and --budget is asked: its front (--pareto) or the knee of that, its best architectures (--best),
    means of its groups (--by), or the best of each group (both). --sql is a SELECT of one's own.
    """
    from nas import report
    from nas.objectives import names_in
    from results import export, table
    from results.query import query

    report.say_bad(study.bad)
    _check_columns(columns, format)
    question = Question(pareto, knee, best, names_in(by or ""), sql)
    for_terminal, condition = report.for_a_terminal(format, output), _conditions(where, budget)
    orders, named = names_in(order_by or ""), [] if columns == "all" else names_in(columns or "")
    asked = study.column_names
    if (for_terminal and columns is None) or (named and format is not Format.JSONL):
        asked = _asked(study, question, condition, orders, named)
    lines = study.select(asked)
    every = query(lines, where=condition)
    found = query(question.asked_of(study, every), order_by=orders, limit=limit)
    if question.is_of_rows:
        for line in table.mixtures(found):
            report.say(report.screen(stderr=True), f"note: {line}")
    if format is Format.JSONL:
        report.write_rows(_rows_of(study, found), format, output)
    elif not for_terminal:
        export.write(query(found, columns=named), format.value, output)
    elif not len(found):
        report.say(report.screen(), _nothing(question, len(every), len(lines)))
    else:
        chosen = query(found, columns=named).column_names if columns else None
        of, cut = len(lines if question.is_of_rows else every), question.is_ranked and not (limit or orders)
        _print_answer(study, question, found, chosen, format, MOST_BEST if cut else len(found), of)
    report.say_written(output)


def _check_columns(columns: str | None, format: Format) -> None:
    from search_spaces.errors import UserError

    if columns is not None and format is Format.JSONL:
        raise UserError("--format jsonl is of whole rows and takes no --columns. Take csv, json or parquet.")


def _nothing(question: Question, every: int, of: int) -> str:
    """Why nothing is found."""
    reason = question.unanswered if every else "no row meets the condition" if of else "there is no row"
    return f"nothing to show: {every} of {of} rows asked, {reason}"


def _print_answer(
    study: "Study",
    question: Question,
    found: "pa.Table",
    chosen: Sequence[str] | None,
    format: Format,
    most: int,
    of: int,
) -> None:
    """Print the lines found, with the columns that were chosen or those that tell them apart; of a task so many."""
    from results.query import query

    if question.is_of_rows:
        telling = [*_telling(study, found), *_differing(found)] if chosen is None else chosen
        _print(query(found, columns=telling), f"{len(found)} of {of} rows", format)
        return
    for name, part in _by_task(found):
        telling = _telling(study, part, question.first) if question.best else []
        if chosen is not None:
            telling = [column for column in chosen if column in part.column_names]
        how_many = f"{most} of {len(part)}" if most < len(part) else f"{len(part)}"
        shown = query(part, columns=telling, limit=most)
        _print(shown, f"{name}{how_many} {'line' if how_many == '1' else 'lines'} from {of} rows", format)


def _asked(
    study: "Study", question: Question, condition: str | None, orders: Sequence[str], named: Sequence[str]
) -> list[str]:
    """The columns that have to be read to answer and to show it. Raises UserError where there is no such column."""
    from results.query import order_in
    from results.table import mixed, require

    known = study.column_names
    asked = {*question.reads(study), *named}
    if condition is not None:
        from results.condition import columns_in

        asked |= {*columns_in(condition, known)}
    if question.is_of_rows:  # of anything else columns are its answer's
        require(known, named)
        asked |= {order_in(text, known)[0] for text in orders}
        asked |= {*mixed(known), *study.telling_columns(), "status", "error"}
    return [name for name in known if name in asked]


def _print(found: "pa.Table", title: str, format: Format) -> None:
    from nas import report

    report.print_records(report.screen(), found.to_pylist(), found.column_names, title, format)


def _by_task(found: "pa.Table") -> "Iterator[tuple[str, pa.Table]]":
    """The lines of each task, with the columns that it has."""

    tasks = found["task"].unique().to_pylist() if "task" in found.column_names else [None]
    for task in tasks:
        own = found if "task" not in found.column_names else _of_task(found, task).drop_columns("task")
        names = [name for name in own.column_names if own[name].null_count < len(own) or name.endswith("_se")]
        yield (f"{task}: " if task else ""), own.select(names)


def _of_task(found: "pa.Table", task: str | None) -> "pa.Table":
    from pyarrow import compute

    return found.filter(compute.is_null(found["task"]) if task is None else compute.equal(found["task"], task))


def _conditions(where: str | None, budget: Sequence[str]) -> str | None:
    """The condition that rows are to meet: what was typed, and the bounds."""
    from nas.budget import parse_budget

    bounds = [
        f"{name} >= {bound.low} and {name} <= {bound.high}" if bound.high < float("inf") else f"{name} >= {bound.low}"
        for name, bound in parse_budget(budget).bounds.items()
    ]
    return " and ".join([*([f"({where})"] if where is not None else []), *bounds]) or None


def _front(study: "Study", every: "pa.Table", pareto: str, *, knee: bool) -> "pa.Table":
    from nas.objectives import names_in
    from results import pareto as fronts
    from search_spaces.errors import UserError

    objectives = study.directions_of(names_in(pareto))
    if not objectives:
        raise UserError(f"--pareto needs at least one column, got {pareto!r}.")
    if study.rows() and not any(row.status == "complete" for row in study.rows()):
        raise UserError(study.nothing_complete())
    found = fronts.front(every, objectives)
    return fronts.knee(found, objectives) if knee else found


def _rows_of(study: "Study", found: "pa.Table") -> "list[Row]":
    """The whole Rows of a table's lines. Raises UserError where a line is of none."""
    from search_spaces.errors import UserError

    rows = {row.identity(): row for row in study.rows()}
    wanted = [*map(str, found["identity"].to_pylist() if "identity" in found.column_names else [""])]
    if not rows.keys() >= {*wanted}:
        raise UserError("--format jsonl is of whole rows, and not every line here is one. Give csv, json or parquet.")
    return [rows[identity] for identity in wanted]


def _differing(found: "pa.Table") -> list[str]:
    """What else rows may differ in."""
    several = [name for name in ("seed", "status") if name in found.column_names and len(found[name].unique()) > 1]
    return [*several, *(["error"] if "error" in found.column_names and any(found["error"].to_pylist()) else [])]


def _telling(study: "Study", found: "pa.Table", asked: Sequence[str] = ()) -> list[str]:
    """The columns that a terminal shows: what was asked for, and what tells lines apart."""
    differing = [name for name in ("task", "preset") if name in found.column_names and len(found[name].unique()) > 1]
    telling = dict.fromkeys((*differing, *asked, *study.telling_columns()))
    return [name for name in telling if name in found.column_names and found[name].null_count < len(found)]
