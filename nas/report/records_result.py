"""The base class of results that are flat records: a data frame, a table in a notebook."""

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from results.records import table

if TYPE_CHECKING:
    import pandas


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

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.title)}</p>{self.to_pandas().to_html(index=False)}"
