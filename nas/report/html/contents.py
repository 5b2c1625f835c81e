"""What a report is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from nas.store.search_config import SearchConfig
from results.records.row import Direction, Row
from results.stats.architecture_summary import ArchitectureSummary


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContents:
    """What a report is made of.

    Attributes:
        name: What the study is called.
        storage: Where it is.
        title: What its front is, in a line.
        config: What was searched for; None where no search made the rows.
        objectives: What architectures are held against each other in.
        rows: Every Row.
        architectures: How each stands, at least one.
        columns: The columns that tell rows apart.
        notes: What should be known of the rows, a line each.
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
