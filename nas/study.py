"""A study as people hold it: its Rows, its front, a data frame, a picture. Loads no torch."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, final

from nas import report
from nas.objectives import names_in, resolve
from nas.storage.passwords import without_passwords
from nas.storage.search_config import SearchConfig
from results import table
from results.pareto import front
from results.row import Direction, Row
from search_spaces.errors import UserError

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure


@final
class Study:
    """The Rows of a search, or of whatever was evaluated under one name, as they were when it was opened.

    Attributes:
        name: What it is called; several names with commas where several were opened together.
        storage: The database that it is in.
        config: What a search was about; None where the Rows are no search's, or those of several.
        bad: What could not be read as a Row: a line each.
    """

    def __init__(
        self,
        name: str,
        storage: str,
        rows: Sequence[Row],
        config: SearchConfig | None = None,
        bad: Sequence[str] = (),
    ) -> None:
        self.name, self.storage, self.config, self.bad = name, storage, config, tuple(bad)
        self._rows = tuple(rows)

    def rows(self) -> list[Row]:
        """Every Row, failures included, in the order of trials."""
        return list(self._rows)

    @cached_property
    def directions(self) -> dict[str, Direction]:
        """Every metric of the Rows -> "max" or "min"."""
        known = dict(self.config.metrics) if self.config else {}
        for row in self._rows:
            known.update(row.directions)
        return known

    @property
    def objectives(self) -> dict[str, Direction]:
        """What was searched for; of Rows that no search made, their task's first metric and FLOPs.

        Raises:
            UserError: The Rows are of no task that is known to have a metric.
        """
        if self.config is not None:
            return dict(self.config.objectives)
        first = next((name for row in self._rows for name in row.directions), None)
        if first is None:
            raise UserError(f"study {self.name!r} has no row that says what its metrics are. Name objectives.")
        return resolve([first, "flops"], self.directions)

    def front(self, objectives: str | Sequence[str] | None = None) -> list[Row]:
        """The complete Rows that no other beats in every objective at once; one front for each task and data.

        Raises:
            UserError: An unknown objective.
        """
        best = self._front(self._asked(objectives))
        return [row for row in self._rows if row.identity() in best]

    @cached_property
    def table(self) -> "pyarrow.Table":
        """A line a Row, a column a number: see results/README.md."""
        return table.from_rows(self._rows)

    def to_pandas(self) -> "pandas.DataFrame":
        """A line a Row, a column a number: see results/README.md."""
        return self.table.to_pandas()

    def plot(self, path: str | Path | None = None, objectives: str | Sequence[str] | None = None) -> "Figure":
        """Draw every architecture and the front, as a matplotlib figure, and into a file where one is named.

        Raises:
            UserError: An unknown objective, or a file that cannot be written.
        """
        asked = self._asked(objectives)
        best = self._front(asked)
        drawn = {"identity", "topology", *asked, *(f"{name}_se" for name in asked)}
        records = self.table.select([name for name in self.table.column_names if name in drawn]).to_pylist()
        records = [{**record, "stands": record["identity"] in best} for record in records]
        figure = report.draw_front(records, asked, self.title(asked, len(best)))
        if path is not None:
            report.save_figure(figure, Path(path))
        return figure

    def title(self, objectives: Mapping[str, Direction], standing: int) -> str:
        """What a front of it is called, in a line."""
        ways = ", ".join(f"{way} {name}" for name, way in objectives.items())
        budget = self.config.budget or "no budget" if self.config else "all rows"
        return f"{standing} of {len(self._rows)} architectures on the front of {self.name} ({ways}; {budget})"

    def telling_columns(self) -> list[str]:
        """The columns that tell its Rows apart: architecture, costs, metrics, axes of the recipe, seeds."""
        axes = self.config.axes if self.config else {}
        recipe = [axis.replace(".", "_", 1) for axis in axes if axis.startswith("recipe.")]
        seeds = ["seed"] if len({row.seed for row in self._rows}) > 1 else []
        objectives = list(self.objectives) if self.directions else []
        return [*report.front_columns(objectives, list(self.directions)), *recipe, *seeds]

    def nothing_complete(self) -> str:
        """That it has no complete Row, and the first reason, in a line."""
        first = next((row.error for row in self._rows if row.error), None)
        why = f", the first with: {first}" if first else ""
        return f"study {self.name!r} has no complete row yet: {len(self)} ended{why}. See `nas results`."

    def _front(self, objectives: Mapping[str, Direction]) -> set[str]:
        """The identities of the Rows on the front. See `results.pareto.front`."""
        if not objectives.keys() <= set(self.table.column_names):  # where all failed, no metric is a column
            return set()
        return set(front(self.table, objectives)["identity"].to_pylist())

    def _asked(self, objectives: str | Sequence[str] | None) -> dict[str, Direction]:
        if objectives is None:
            return self.objectives
        return resolve(names_in(objectives), self.directions)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {len(self._rows)} rows, {without_passwords(self.storage)!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the front."""
        if not self.directions:
            return f"<p>{escape(repr(self))}</p>"
        best = table.from_rows(self.front())
        shown = best.select([name for name in self.telling_columns() if name in best.column_names])
        return f"<p>{escape(self.title(self.objectives, len(best)))}</p>{shown.to_pandas().to_html(index=False)}"
