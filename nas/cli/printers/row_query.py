"""The query that `nas results` answers from rows. Loads no torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from nas.budget.objectives import COSTS, names_in
from nas.report import tables
from nas.report.study import Study
from results.records.columns import MUST_MATCH_COLUMNS
from results.records.row import Direction
from results.stats.pareto import GROUP_COLUMNS
from search_spaces.support.errors import UserError
from search_spaces.support.progress import status_if_slow


@dataclass(frozen=True)
class RowQuery:
    """A question about the rows that meet the condition: at most one of these, or the best of each group.

    Attributes:
        pareto: Objectives of a front of architectures.
        knee: Whether to keep only that front's knee.
        best: The metric that ranks architectures.
        by: Columns to group by.
        sql: A SELECT.
        columns: Columns of the answer, of which groups and architectures show the means.

    Raises:
        UserError: Two questions, or a knee without a front.
    """

    pareto: str | None
    knee: bool
    best: str | None
    by: Sequence[str]
    sql: str | None
    columns: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.knee and self.pareto is None:
            message = "--knee needs a front. Give --pareto, such as --pareto accuracy,flops."
            raise UserError("missing-value", message, option="--pareto", needed_by="--knee")
        if twice := [name for name in self.by if self.by.count(name) > 1]:
            message = f"--by must name each column once, got {', '.join(self.by)}."
            raise UserError("duplicate", message, option="--by", value=twice[0])
        questions = [name for name in ("pareto", "best", "by", "sql") if getattr(self, name) not in (None, [])]
        if len(questions) > 1 and questions != ["best", "by"]:
            message = f"--{questions[0]} and --{questions[1]} cannot be combined. Leave one out."
            raise UserError("conflict", message, option=f"--{questions[0]}", excludes=f"--{questions[1]}")

    @property
    def returns_rows(self) -> bool:
        """Whether the answer is a subset of the rows."""
        return self.sql is None and self.best is None and self.pareto is None and not self.by

    @property
    def returns_means(self) -> bool:
        """Whether the answer is means over groups of rows."""
        return bool(self.by) and self.best is None

    @property
    def returns_architectures(self) -> bool:
        """Whether the answer is architectures, not their rows."""
        return self.best is not None or self.pareto is not None

    @property
    def is_ranked(self) -> bool:
        """Whether the answer is architectures from best to worst."""
        return self.best is not None and not self.by

    def group_columns(self, study: Study) -> list[str]:
        """Return the columns of the answer that hold its groups. Raises UserError for an unknown column."""
        if not self.by:
            return []
        from results.query.grouping import group_columns

        return group_columns(study.schema, self.by)

    def leading_columns(self, study: Study) -> list[str]:
        """Return the first columns of an answer of architectures."""
        if self.pareto is not None:
            objectives = [*self.objectives(study)]
            _, *columns = tables.summary_columns(study.identifying_columns(objectives), objectives)  # all are on it
            return columns
        (metric,) = self._best(study)
        return [*self.group_columns(study), metric, f"{metric}_se", "seeds", "expected", "p_best"]

    @property
    def empty_reason(self) -> str:
        """Why no row that meets the condition is in the answer."""
        target = self.best or self.pareto
        return "none of them qualifies" if target is None else f"no complete one has {target}"

    def order(self, study: Study) -> list[str]:
        """Return the default order of the answer: a front by its cost, or else by its first objective."""
        names = [*self.objectives(study)]
        return [name for name in names if name in COSTS][:1] or names[:1]

    def source_columns(self, study: Study) -> list[str]:
        """Return the columns that the answer needs, whether the study has them or not."""
        if self.sql is not None or self.returns_architectures or not {*self.by} <= {*study.column_names}:
            return study.column_names  # needed by SELECT * and to tell architectures apart
        errors = [f"{name}_se" for name in self.by]  # tell whether it is measured
        return [*self.by, *errors, *(self._mean_columns(study) if self.by else ()), *GROUP_COLUMNS]

    def answer(self, study: Study, rows: pa.Table) -> pa.Table:
        """Compute the answer from rows of a study. Raises UserError if there is none."""
        if self.returns_rows:
            return rows
        if self.sql is not None:
            from results.query import sql

            with status_if_slow("running the SQL query ..."):
                return sql.run_select(rows, self.sql)
        from results.query import grouping  # SciPy's linear algebra takes a quarter of a second

        if self.pareto is not None:
            find = grouping.knee if self.knee else grouping.front
            return find(rows, self._front_objectives(study), study.reeval_identities, self.columns)
        if self.best is not None:
            [(metric, direction)] = self._best(study).items()
            return grouping.best(rows, metric, direction, self.by, study.reeval_identities, self.columns)
        return grouping.means(rows, self.by, self._mean_columns(study))

    def _mean_columns(self, study: Study) -> list[str]:
        """Return the columns that groups average."""
        metrics = [f"{prefix}{name}" for name in study.directions for prefix in ("", "test_")]
        averages = [*metrics, *study.extra_columns(), "params", "flops"]
        requested = [name.removesuffix("_se") for name in self.columns]
        return [*averages, *(name for name in requested if name not in MUST_MATCH_COLUMNS)]

    def _best(self, study: Study) -> dict[str, Direction]:
        return study.directions_of([] if self.best is None else [self.best])

    def objectives(self, study: Study) -> dict[str, Direction]:
        """Return the front's column -> "max" or "min"; empty without a front."""
        return study.directions_of(names_in(self.pareto or ""))

    def _front_objectives(self, study: Study) -> dict[str, Direction]:
        """Return the objectives of the front. Raises UserError if there are none, or no complete row."""
        objectives = self.objectives(study)
        if not objectives:
            message = f"--pareto needs at least one column, got {self.pareto!r}."
            raise UserError("missing-value", message, option="--pareto", value=self.pareto)
        if study.rows() and not any(row.status == "complete" for row in study.rows()):
            raise study.missing_rows_error()
        return objectives
