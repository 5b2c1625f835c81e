"""Tournaments: what samplers find on a recorded table after given numbers of trainings, over many searches.

Shapes: S = searches of a sampler, N = numbers of trainings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from nas.analysis.simulation import outcome_of, replay
from nas.budget.bounds import Feasible
from nas.report.records_result import RecordsResult
from results.records import table
from results.records.row import Direction, Row
from results.stats.architecture_summary import summarize
from results.stats.gaussian_process import Array
from results.stats.tabular_benchmark import TabularBenchmark
from results.stats.true_front import TrueFront
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIAL_FRACTIONS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Fractions of a search's trainings after which it is scored."""

TRIALS = 100
"""Default trainings of a search; at most half of the table's architectures."""

QUARTILES = (0.25, 0.5, 0.75)


@final
@dataclass(frozen=True)
class Tournament(RecordsResult):
    """The result of a tournament.

    The score of a search after some trainings is a hypervolume, by test means over all recorded seeds. It counts the
    architectures on its front of posterior means by validation (`results.stats.architecture_summary`). It is a share of
    the hypervolume of the front of all architectures within the budget. The reference point lies beyond the worst
    recorded value and the highest cost (`results.stats.true_front`). Searches re-evaluate nothing; one that ran out of
    architectures keeps its score.

    Attributes:
        title: One line about what was compared.
        records: One flat record for each sampler and number of trainings: median `hypervolume` over searches, its
            quartiles (`_q1`, `_q3`), and the number of searches.
        shares: Sampler -> the hypervolume of each search after each number of trainings: [S, N].
    """

    shares: Mapping[str, Array]

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw the medians over trainings, with bands between the quartiles; save the figure if `path` is given.

        Raises:
            UserError: The file cannot be written.
        """
        from nas.report import plots  # Matplotlib takes half a second

        return plots.save_figure(plots.draw_tournament(self.records, self.title), path)

    def figure(self) -> "Figure":
        """Return the picture of the medians over trainings."""
        return self.plot()


def trials_for(benchmark: TabularBenchmark, trials: int | None) -> int:
    """Return the trainings of each search. Raises UserError if `trials` exceeds the recorded number."""
    if trials is None:
        return max(1, min(TRIALS, len(benchmark.architectures) // 2))
    if trials > len(benchmark):
        has = f"the number of trainings of {benchmark.name!r} within the budget"
        message = f"--trials must be at most {len(benchmark)}, {has}, got {trials}."
        raise UserError("out-of-range", message, option="--trials", value=trials, most=len(benchmark))
    return trials


def trial_counts(trials: int) -> list[int]:
    """Return the numbers of trainings after which a search is scored, in increasing order."""
    return sorted({max(1, round(share * trials)) for share in TRIAL_FRACTIONS})


def front_share(rows: Sequence[Row], truth: TrueFront, objectives: Mapping[str, Direction], after: int) -> float:
    """Return the share of the true front that a search would report after so many trainings."""
    return truth.relative_hypervolume(expected_front(rows[:after], objectives))


def expected_front(rows: Sequence[Row], objectives: Mapping[str, Direction]) -> list[Architecture]:
    """Return the architectures that a search would report as its front, by validation."""
    complete = [row for row in rows if outcome_of(row, objectives) is not None]
    by_key = {row.architecture.key: row.architecture for row in complete}
    if not complete:
        return []
    return [
        by_key[str(summary.record["key"])]
        for summary in summarize(table.from_rows(complete), objectives)
        if summary.on_front
    ]


def run_searches(
    benchmark: TabularBenchmark,
    members: Feasible,
    objectives: Mapping[str, Direction],
    samplers: Sequence[str],
    seeds: int,
    trials: int,
) -> Iterator[tuple[str, list[float]]]:
    """Yield the name of the sampler and the front's share after each of `trial_counts`, for each of its searches.

    Args:
        benchmark: The table, restricted to the budget.
        members: Its architectures, as candidates.
        objectives: Column -> "max" or "min".
        samplers: Names, or "package.module:Class".
        seeds: Number of searches of each sampler, with seeds from 0 on.
        trials: Trainings of a search.

    Raises:
        UserError: An unknown sampler, or objectives in which there is nothing to find.
    """
    truth = TrueFront(benchmark, objectives)
    for sampler in samplers:
        for seed in range(seeds):
            rows = replay(benchmark, members, objectives, sampler, seed, trials)
            yield sampler, [front_share(rows, truth, objectives, after) for after in trial_counts(trials)]


def tournament_of(title: str, shares_by_sampler: Mapping[str, Sequence[Sequence[float]]], trials: int) -> Tournament:
    """Return the tournament with medians and quartiles of each sampler's scores, by linear interpolation."""
    records, shares = [], {sampler: np.array(values, dtype=float) for sampler, values in shares_by_sampler.items()}
    for sampler, values in shares.items():
        for after, (low, middle, high) in zip(
            trial_counts(trials), np.quantile(values, QUARTILES, axis=0).T, strict=True
        ):
            records.append(
                {
                    "sampler": sampler,
                    "trainings": after,
                    "hypervolume": float(middle),
                    "hypervolume_q1": float(low),
                    "hypervolume_q3": float(high),
                    "searches": len(values),
                }
            )
    return Tournament(title, tuple(records), shares)
