"""Claims about trained networks, tested on rows that ship with this project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nas.papers.claims import Claim, Experiment, Values
from results.records import jsonl
from results.records.row import Row
from results.records.sources import table_paths
from search_spaces.support.errors import UserError

Shape = Mapping[str, int | str]
"""Field of an architecture -> value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetterClaim:
    """A claim that one architecture is better than another.

    Attributes:
        claim: The claim; its range is how much better the second architecture is.
        first: The reference architecture.
        second: The architecture that is claimed to be better.
        metric: The metric, on validation.
    """

    claim: Claim
    first: Shape
    second: Shape
    metric: str


def paired_differences(rows: Sequence[Row], better: BetterClaim) -> list[float]:
    """Return how much better the second architecture is, for each seed with both; a seed fixes the data of both.

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
    """Claims tested on a shipped table of rows."""

    def __init__(self, paper: str, table: str, setting: str, pairs: Sequence[BetterClaim]) -> None:
        self.paper, self.table, self.pairs = paper, table, pairs
        self.setting = f"rows of `{table}`: {setting}"
        self.claims = tuple(pair.claim for pair in pairs)

    def values(self) -> Values:
        """Compare the table's rows."""
        rows, _ = jsonl.read(table_paths()[self.table])
        return {pair.claim.name: paired_differences(rows, pair) for pair in self.pairs}
