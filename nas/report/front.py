"""The front of a study as a list, which shows itself in a notebook. Loads no torch."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, final

from nas.report import tables
from results.records import table
from results.records.notebook import figure_html, notes_html, table_html, title_html

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from results.stats.architecture_summary import ArchitectureSummary


@final
class Front(list["ArchitectureSummary"]):
    """The architectures on a front: a list, with a data frame, a picture, and a table in a notebook.

    Args:
        architectures: The architectures on the front.
        title: One line about the front.
        columns: The columns of its table.
        draw: Draws the front and saves the figure if a path is given.
    """

    def __init__(
        self,
        architectures: "Iterable[ArchitectureSummary]",
        title: str,
        columns: Sequence[str],
        draw: "Callable[[str | Path | None], Figure]",
    ) -> None:
        super().__init__(architectures)
        self.title, self.columns, self._draw = title, tuple(columns), draw

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one line for each architecture."""
        return table.from_records([tables.summary_record(architecture) for architecture in self]).to_pandas()

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw the front among all architectures; save the figure if `path` is given.

        Raises:
            UserError: Nothing to draw, or a file that cannot be written.
        """
        return self._draw(path)

    def _repr_html_(self) -> str:
        if not self:
            return title_html(self.title)
        figure = figure_html(self.plot(), self.title)
        return f"{front_table_html(self, self.title, self.columns)}{figure}"


def front_table_html(architectures: "Sequence[ArchitectureSummary]", title: str, columns: Sequence[str]) -> str:
    """Return the title, the table and the legend of the contenders among some architectures."""
    records = tables.front_records(architectures)
    names = [name for name in (*columns, *tables.SUMMARY_COLUMNS) if any(name in record for record in records)]
    notes = notes_html(tables.front_notes(architectures))
    return f"{title_html(title)}{table_html(tables.table_texts(records, names))}{notes}"
