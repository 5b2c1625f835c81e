"""The contents of a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from nas.store.search_config import SearchConfig
from results.records.row import Direction, Row
from results.stats.architecture_summary import ArchitectureSummary


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContents:
    """The contents of a report.

    Attributes:
        name: Name of the study.
        storage: URL of its database, or its files.
        title: One line about its front.
        config: Configuration of the search; None if no search made the rows.
        objectives: Objective -> direction.
        rows: All Rows.
        architectures: Summaries, at least one.
        columns: The columns that tell rows apart.
        notes: Notes about the rows, one line each.
    """

    name: str
    storage: str
    title: str
    config: SearchConfig | None
    objectives: Mapping[str, Direction]
    rows: Sequence[Row]
    architectures: Sequence[ArchitectureSummary]
    columns: Sequence[str]
    notes: Sequence[str]
