"""Claims that trainings tell: of rows that ship with this project, or of small trainings that are kept in the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nas.papers.claims import Claim, Experiment, Values
from results.records import jsonl
from results.records.row import Row
from results.records.sources import table_paths
from search_spaces.support.errors import UserError

Shape = Mapping[str, int | str]
"""Fields of an architecture -> what they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetterClaim:
    """That one architecture is better than another.

    Attributes:
        claim: The claim, whose range is of how much better the second is.
        first: Architecture that is compared with ...
        second: ... this one.
        metric: What is compared, on validation.
    """

    claim: Claim
    first: Shape
    second: Shape
    metric: str


def paired_differences(rows: Sequence[Row], better: BetterClaim) -> list[float]:
    """How much better the second is, a number for each seed that completed both: a seed gives both the same data.

    Raises:
        UserError: No seed has completed both.
    """
    first, second = (_by_seed(rows, shape, better.metric) for shape in (better.first, better.second))
    sign = {row.directions[better.metric] for row in rows if better.metric in row.directions} == {"max"}
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        message = f"a claim needs rows of {dict(better.first)} and {dict(better.second)}, and there are none."
        raise UserError("missing-rows", message, claim=better.claim.name)
    return [(second[seed] - first[seed]) * (1 if sign else -1) for seed in seeds]


def _by_seed(rows: Sequence[Row], shape: Shape, metric: str) -> dict[int, float]:
    return {
        row.seed: row.metrics[metric]
        for row in rows
        if row.status == "complete" and all(getattr(row.architecture, name) == value for name, value in shape.items())
    }


class TableExperiment(Experiment):
    """Claims that a table of rows tells which ships with this project."""

    def __init__(self, paper: str, table: str, setting: str, pairs: Sequence[BetterClaim]) -> None:
        self.paper, self.table, self.pairs = paper, table, pairs
        self.setting = f"rows of `{table}`: {setting}"
        self.claims = tuple(pair.claim for pair in pairs)

    def values(self) -> Values:
        """Compare the table's rows."""
        rows, _ = jsonl.read(table_paths()[self.table])
        return {pair.claim.name: paired_differences(rows, pair) for pair in self.pairs}
