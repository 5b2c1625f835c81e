"""The front of a study as a list, which shows itself in a notebook. Loads no torch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, final

from nas.report import tables
from results.records import table
from results.records.notebook import figure_html, notes_html, table_html, title_html
from search_spaces.support.errors import UserError

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from results.records.row import Direction
    from results.stats.architecture_summary import ArchitectureSummary

    Draw = Callable[[str | Path | None], Figure]


@final
class Front(list["ArchitectureSummary"]):
    """The architectures on a front: a list, with a data frame, a picture, and a table in a notebook.

    Args:
        architectures: The architectures on the front.
        objectives: Column -> "max" or "min".
        title: One line about the front.
        columns: The columns of its table.
        draw: Draws the front and saves the figure if a path is given.
    """

    def __init__(
        self,
        architectures: "Iterable[ArchitectureSummary]",
        objectives: "Mapping[str, Direction]",
        title: str,
        columns: Sequence[str],
        draw: "Draw",
    ) -> None:
        super().__init__(architectures)
        self.objectives, self.title, self.columns, self._draw = dict(objectives), title, tuple(columns), draw

    def knees(self) -> "list[ArchitectureSummary]":
        """Return the knee point by posterior means; one for each task, preset and data."""
        from results.stats.architecture_summary import knees

        return knees(self, self.objectives)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one line for each architecture: its record, `expected`, `p_front`, `on_front` and `tier`."""
        return table.from_records(one.columns() for one in self).to_pandas()

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw the front among all architectures; save the figure if `path` is given.

        Raises:
            UserError: Nothing to draw, or a file that cannot be written.
        """
        return self._draw(path)

    def _repr_html_(self) -> str:
        return front_html(self, self.title, self.columns, self._draw) if self else title_html(self.title)


def front_html(
    architectures: "Sequence[ArchitectureSummary]",
    title: str,
    columns: Sequence[str],
    draw: "Draw",
    notes: Iterable[str] = (),
) -> str:
    """Return the title, the contenders as a table, its legend and more notes, and the picture or why there is none."""
    records = tables.front_records(architectures)
    summary = tables.summary_columns(columns, architectures[0].expected)
    names = [name for name in summary if any(name in record for record in records)]
    try:
        picture = figure_html(draw(None), title)
    except UserError as error:  # architectures of several tasks have no picture in common
        picture = notes_html([str(error)])
    legend = notes_html([*tables.front_notes(architectures), *notes])
    return f"{title_html(title)}{table_html(tables.table_texts(records, names))}{legend}{picture}"
