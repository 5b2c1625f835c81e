"""A study: its Rows, front, data frame, plot and report. Loads no torch."""

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, final

from nas.budget.objectives import COSTS, names_in, objective_directions
from nas.environment.passwords import without_passwords
from nas.report import tables
from nas.report.base_gain import base_gain
from nas.report.format import check_html_path
from nas.report.front import Front, front_html
from nas.store.search_config import SearchConfig
from results.query.mixtures import mixture_columns, mixtures
from results.records import table
from results.records.columns import MUST_MATCH_COLUMNS
from results.records.notebook import title_html
from results.records.row import Direction, Row
from search_spaces.support.errors import Notice, UserError, cause_fields, unknown_name_error

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

    from nas.report.html.contents import ReportContents
    from results.records.parquet import ParquetTable
    from results.stats.architecture_summary import ArchitectureSummary
    from results.stats.effects import Effects


def check_comparable(summaries: "Sequence[ArchitectureSummary]", what: str) -> None:
    """Raise UserError if architectures are of several tasks, presets or data, which `what` cannot mix."""
    for column in MUST_MATCH_COLUMNS:
        values = sorted({summary.record.get(column) for summary in summaries}, key=str)
        if len(values) > 1:
            which = ", ".join(map(str, values))
            message = (
                f"a {what} shows one {column}, and these rows have {len(values)} ({which}). "
                f'Select one with --where "{table.condition_of(column, values[-1])}".'
            )
            raise UserError("mismatch", message, option=column, choices=tuple(values))


@final
class Study:
    """The Rows of a search, or all Rows evaluated under one name, as of when it was opened.

    Attributes:
        name: Its name; comma-separated names if several studies were opened together.
        storage: URL of its database, or its files.
        config: Configuration of the search; None if the Rows are of no search or of several.
        unreadable: What could not be read as a Row, one line each.
        reeval_identities: Identities of the Rows with held-out seeds, which had no part in choosing the architectures.

    Args:
        column_tables: Tables of columns alone, which are queried together with the Rows.
    """

    def __init__(
        self,
        name: str,
        storage: str,
        rows: Sequence[Row],
        config: SearchConfig | None = None,
        unreadable: Sequence[str] = (),
        reeval_identities: frozenset[str] = frozenset(),
        column_tables: Sequence["pyarrow.Table | ParquetTable"] = (),
    ) -> None:
        self.name, self.storage, self.config, self.unreadable = name, storage, config, tuple(unreadable)
        self.reeval_identities = reeval_identities
        self._rows, self._column_tables = tuple(rows), tuple(column_tables)

    def rows(self) -> list[Row]:
        """Return every Row, failures included, in the order of trials."""
        return list(self._rows)

    @cached_property
    def _by_objectives(self) -> dict[tuple[tuple[str, Direction], ...], "list[ArchitectureSummary]"]:
        return {}  # a cache, filled by `summaries`

    @cached_property
    def directions(self) -> dict[str, Direction]:
        """Every metric of the Rows -> "max" or "min"."""
        directions = dict(self.config.metrics) if self.config else {}
        return directions | {name: way for row in self._rows for name, way in row.directions.items()}

    def directions_of(self, names: Sequence[str]) -> dict[str, Direction]:
        """Return column -> "max" or "min": as given in "max accuracy", else as known of metrics and costs.

        Raises:
            UserError: An unknown or repeated column, or one without a known direction.
        """
        directions: dict[str, Direction] = {}
        for name in names:
            if names.count(name) > 1:
                message = f"column {name!r} is given twice. Leave one out."
                raise UserError("duplicate", message, option="column", value=name)
            way, _, column = name.partition(" ")
            if way in ("max", "min"):
                directions[column.strip()] = "max" if way == "max" else "min"
            elif name.startswith("test_") and name[5:] in self.directions:
                directions[name] = self.directions[name[5:]]
            elif name in self.column_names and name not in {*self.directions, *COSTS}:
                if not table.has_numbers(self.schema.field(name)):
                    message = f"column {name!r} has no numbers. Give a metric or a cost."
                    raise UserError("wrong-type", message, option="column", value=name)
                message = f'column {name!r} has no known direction. Give "max {name}" or "min {name}".'
                choices = (f"max {name}", f"min {name}")
                raise UserError("missing-value", message, option="column", value=name, choices=choices)
            else:
                directions |= objective_directions([name], self.directions)
        return directions

    @property
    def objectives(self) -> dict[str, Direction]:
        """The objectives of the search; for Rows of no search, their task's first metric and FLOPs.

        Raises:
            UserError: There is no Row, or none that names a metric.
        """
        if self.config is not None:
            return dict(self.config.objectives)
        first = next((name for row in self._rows for name in row.directions), None)
        if not (self._rows or self._column_tables):
            message = f"study {self.name!r} has no rows, or none that meets the condition. Give another study."
            raise UserError("missing-rows", message, study=self.name)
        if first is None:
            message = f"the rows of study {self.name!r} name no metrics. Give a file of rows (.jsonl)."
            raise UserError("missing-rows", message, study=self.name, needs="directions")
        return objective_directions([first, "flops"], self.directions)

    def summaries(self, objectives: str | Sequence[str] | None = None) -> "list[ArchitectureSummary]":
        """Summarize each architecture over all its seeds: means, errors, the probability of being on the front.

        Raises:
            UserError: An unknown objective.
        """
        # Imported here: SciPy's linear algebra takes a quarter of a second.
        from results.stats.architecture_summary import summarize

        directions = self.directions_for(objectives)
        if not directions.keys() <= set(self.column_names):  # if every training failed, no metric is a column
            return []
        key = tuple(directions.items())
        if key not in self._by_objectives:
            self._by_objectives[key] = summarize(self.table, directions, self.reeval_identities)
        return list(self._by_objectives[key])

    def effects(self, axis: str, metric: str | None = None, *, at: str | None = None) -> "dict[str, Effects]":
        """Estimate the effect of each value of an axis with all else equal, for each task (preset, data) of the rows.

        Args:
            axis: A column that tells architectures apart: `topology`, `depth`, `recipe_lr` ...
            metric: A column, as "max NAME" if it is neither metric nor cost. Default: the first metric of each task.
            at: A cost, such as `flops` or `params`, that compared architectures share instead of their shape.

        Raises:
            UserError: An unknown column or cost, or no comparable rows.
        """
        from results.stats.effects import check_axis, comparable, effects  # SciPy takes a quarter of a second

        if not (self._rows or self._column_tables):
            message = f"study {self.name!r} has no rows to compare. Give another study, or leave --where out."
            raise UserError("missing-rows", message, study=self.name)
        costs = [name for name in COSTS if name in self.column_names]
        if at is not None and at not in costs:
            message = "these rows have no cost. Leave --at out."
            none = UserError("missing-rows", message, option="--at", value=at, study=self.name)
            raise unknown_name_error("cost", at, costs) if costs else none
        check_axis(axis, {*COSTS, *self.directions})
        directions = self.directions if metric is None else self.directions_of([metric])
        table.check_columns(self.column_names, [axis, *({} if metric is None else directions)])
        if not directions:
            message = f'the rows of study {self.name!r} name no metrics. Give --metric "max NAME".'
            raise UserError("missing-rows", message, option="--metric", study=self.name, needs="directions")
        groups, results = comparable(self.table.to_pylist()), {}
        reason = self.missing_rows_error()
        first = {row.task: [*row.directions][:1] for row in self._rows} if metric is None else {}
        for name, lines in groups.items():
            metrics = (*first.get(lines[0]["task"], ()), *directions)
            task_metric = next(
                (column for column in metrics if any(line.get(column) is not None for line in lines)), None
            )
            try:
                if task_metric is not None:
                    results[name] = effects(lines, axis, task_metric, directions[task_metric], at)
            except UserError as error:
                reason = error
                if len(groups) > 1:
                    fields = {**cause_fields(error), "name": name}
                    warnings.warn(Notice("skipped", f"{name} is skipped: {error}", **fields), stacklevel=2)
        if not results:
            raise reason
        return results

    def front(self, objectives: str | Sequence[str] | None = None) -> Front:
        """Return the architectures on the front of posterior means; one front for each task, preset and data.

        Raises:
            UserError: An unknown objective.
        """
        directions, summaries = self.directions_for(objectives), self.summaries(objectives)
        members = [architecture for architecture in summaries if architecture.on_front]
        draw = partial(self.plot, objectives=objectives)
        return Front(members, directions, self.title(directions, summaries), self.identifying_columns(), draw)

    @cached_property
    def table(self) -> "pyarrow.Table":
        """One line for each Row, then the lines of tables without Rows; docs/reference/columns.md lists the columns."""
        return self.select(self.column_names)

    def select(self, names: Sequence[str]) -> "pyarrow.Table":
        """Return the table of some columns; Parquet files read only these, and those that detect duplicates."""
        duplicate_keys = ("identity", "status") if len(self._tables) > 1 else ()
        columns = dict.fromkeys((*names, *duplicate_keys))
        table_columns = [
            [name for name in columns if name in part.column_names] or part.column_names[:1] for part in self._tables
        ]
        parts = [part.select(available) for part, available in zip(self._tables, table_columns, strict=True)]
        return table.deduplicate(parts).select(list(names))

    @cached_property
    def schema(self) -> "pyarrow.Schema":
        """The schema of the table, without reading any data."""
        return table.deduplicate([table.empty(part.schema) for part in self._tables]).schema

    @property
    def column_names(self) -> list[str]:
        """The columns of the table, in order."""
        return list(self.schema.names)

    def extra_columns(self) -> list[str]:
        """Return the columns of numbers that only its files have, without costs, shapes and recipes."""
        row_columns = self._tables[0].column_names if self._rows else []
        return table.metric_columns([field for field in self.schema if field.name not in row_columns])

    @cached_property
    def _tables(self) -> list["pyarrow.Table | ParquetTable"]:
        row_tables = [table.from_rows(self._rows)] if self._rows or not self._column_tables else []
        return [*row_tables, *self._column_tables]

    def where(self, condition: str) -> "Study":
        """Return the study of the rows that meet a condition, written as for `results.query.condition.select`.

        Raises:
            UserError: An invalid condition.
        """
        from results.query.condition import select  # DuckDB takes a tenth of a second

        matches = select(self.table, condition)
        identities = {*matches["identity"].to_pylist()} if self._rows else set()
        rows = [row for row in self._rows if row.identity() in identities]
        row_identities = {row.identity() for row in rows}
        columns_only = table.drop_identities(matches, row_identities) if self._column_tables else None
        column_tables = () if columns_only is None else (columns_only,)
        return Study(self.name, self.storage, rows, self.config, self.unreadable, self.reeval_identities, column_tables)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table as a data frame."""
        return self.table.to_pandas()

    def plot(self, path: str | Path | None = None, objectives: str | Sequence[str] | None = None) -> "Figure":
        """Draw every architecture and the front of posterior means; save the figure if `path` is given.

        Raises:
            UserError: An unknown objective, nothing to draw, or a file that cannot be written.
        """
        from nas.report import plots

        directions, architectures = self.directions_for(objectives), self.summaries(objectives)
        if not architectures:
            raise self.missing_rows_error()
        check_comparable(architectures, "picture")
        baselines = self.config.baselines if self.config else {}
        return plots.save_figure(
            plots.draw_front(architectures, directions, self.title(directions, architectures), baselines), path
        )

    def report(
        self, path: str | Path, objectives: str | Sequence[str] | None = None, *, topologies: bool = False
    ) -> None:
        """Write one self-contained HTML file about the study: see docs/guides/reports.md.

        With `topologies` it also measures the topologies of the best saved networks, which loads torch.

        Raises:
            UserError: An unknown objective, nothing to show, a package that is missing (extra `report`), or a file that
                cannot be written.
        """
        check_html_path(Path(path))
        contents = self.contents(objectives)
        check_comparable(contents.architectures, "report")
        try:
            from nas.report.html.page import write_page
        except ImportError as error:
            install = 'pip install ".[report]"'
            message = f"a report needs more packages ({error.name}): {install}"
            raise UserError("needs-extra", message, extra="report", module=error.name) from error
        write_page(contents, Path(path), topologies=topologies)

    def contents(self, objectives: str | Sequence[str] | None = None) -> "ReportContents":
        """Return the report's contents. Raises UserError if no Row is complete or an objective is unknown."""
        from nas.report.html.contents import ReportContents  # loads SciPy's statistics

        directions, architectures = self.directions_for(objectives), self.summaries(objectives)
        if not architectures:
            raise self.missing_rows_error()
        # Mixed seeds need no note: the report shows means over them.
        notes = mixtures(self.select([name for name in mixture_columns(self.column_names) if name != "seed"]))
        return ReportContents(
            name=self.name,
            storage=self.storage,
            title=self.title(directions, architectures),
            config=self.config,
            objectives=directions,
            rows=self._rows,
            architectures=architectures,
            columns=self.identifying_columns(),
            notes=(*notes, *self.unreadable),
        )

    def title(self, objectives: Mapping[str, Direction], architectures: "Sequence[ArchitectureSummary]") -> str:
        """Return one line about the front."""
        ways = ", ".join(f"{way} {name}" for name, way in objectives.items())
        budget = self.config.budget or "no budget" if self.config else "all rows"
        members = sum(architecture.on_front for architecture in architectures)
        return f"{members} of {len(architectures)} architectures on the front of {self.name} ({ways}; {budget})"

    def reference_lines(
        self, architectures: "Sequence[ArchitectureSummary]", objectives: Mapping[str, Direction]
    ) -> list[str]:
        """Return lines that compare the front in these objectives with the base network and with the baselines."""
        if self.config is None:
            return []
        gain = base_gain(self._rows, self.config.base, objectives, architectures)
        return [*gain, *tables.baseline_lines(self.config.baselines)]

    def identifying_columns(self, objectives: Sequence[str] | None = None) -> list[str]:
        """Return the columns that tell its Rows apart: architecture, axes of the space, costs, metrics.

        `objectives` are shown in place of the study's.
        """
        if objectives is None:
            objectives = list(self.objectives) if self.directions else []
        metrics = [next(iter(row.directions)) for row in self._rows if row.directions]  # the first metric of each task
        return tables.front_columns(self.config.axes if self.config else (), objectives, dict.fromkeys(metrics))

    def missing_rows_error(self) -> UserError:
        """Return the error for a study without a complete Row; it quotes the first failure."""
        why = next((f", first error: {row.error}" for row in self._rows if row.error), "")
        see = f"See `{tables.results_command(self.name, self.storage)}`"
        again = ", or try again with another --study" if self.config and len(self) else ""
        message = f"study {self.name!r} has no complete row, of {len(self)}{why}. {see}{again}."
        return UserError("missing-rows", message, study=self.name, needs="complete")

    def directions_for(self, objectives: str | Sequence[str] | None) -> dict[str, Direction]:
        """Return objective -> "max" or "min"; by default the study's. Raises UserError for an unknown objective."""
        if objectives is None:
            return self.objectives
        return objective_directions(names_in(objectives), self.directions)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {len(self._rows)} rows, {without_passwords(self.storage)!r})"

    def _repr_html_(self) -> str:
        summaries = self.summaries() if self.directions else []
        if not summaries:
            return title_html(repr(self))
        title = self.title(self.objectives, summaries)
        references = self.reference_lines(summaries, self.objectives)
        if self.config is not None:
            load = tables.load_network_call(self.name, self.storage, self.config.task)
            references.append(f"next: {load} (the network at the knee), study.report('report.html')")
        return front_html(summaries, title, self.identifying_columns(), self.plot, references)
