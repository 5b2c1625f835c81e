"""The base class of results that are flat records: a data frame, a table and a picture in a notebook."""

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nas.report import tables
from results.records import table
from results.records.notebook import figure_html, notes_html, table_html, title_html

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class RecordsResult(ABC):
    """Flat records under a title.

    Attributes:
        title: One line about the records.
        records: Name -> scalar, one mapping for each line.
    """

    title: str
    records: tuple[Mapping[str, Any], ...]

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the records as a data frame."""
        return table.from_records(self.records).to_pandas()

    def notes(self) -> list[str]:
        """Return the lines below the table."""
        return []

    def figure(self) -> "Figure | None":
        """Return the picture that a notebook shows below the table, if there is one."""
        return None

    def _repr_html_(self) -> str:
        figure = self.figure()
        parts = [title_html(self.title), table_html(tables.table_texts(self.records)), notes_html(self.notes())]
        return "".join([*parts, figure_html(figure, self.title) if figure else ""])
