"""Samplers on a recorded table: what each has found after so many trainings, over many searches.

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
"""Of the trainings of a search: where it is looked at."""

TRIALS = 100
"""Trainings of a search, unless half of the table's architectures are fewer."""

QUARTILES = (0.25, 0.5, 0.75)


@final
@dataclass(frozen=True)
class Tournament(RecordsResult):
    """What samplers have found.

    A search is worth the hypervolume, by means on test over all recorded seeds, of the architectures that it would
    report after so many trainings: those on the front that is expected by validation
    (`results.stats.architecture_summary`). It is a share of the hypervolume of the whole front of all architectures
    within the budget; the reference point lies beyond the worst recorded value and the greatest cost
    (`results.stats.true_front`). No trial of these searches confirms another, and a search that ran out of
    architectures keeps what it has.

    Attributes:
        title: What was compared, in a line.
        records: A flat record for each sampler and number of trainings: the median of `hypervolume` over the searches,
            its quartiles (`_q1`, `_q3`), and of how many searches.
        shares: Sampler -> the hypervolume of each search after each number of trainings: [S, N].
    """

    shares: Mapping[str, Array]

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Draw the medians over trainings, with bands between the quartiles, and into a file where one is named.

        Raises:
            UserError: The file cannot be written.
        """
        from nas.report import plots  # with Matplotlib, which takes half a second

        return plots.save_figure(plots.draw_tournament(self.records, self.title), path)


def trials_for(benchmark: TabularBenchmark, trials: int | None) -> int:
    """How many trainings each search has. Raises UserError where more are asked for than were recorded."""
    if trials is None:
        return max(1, min(TRIALS, len(benchmark.architectures) // 2))
    if trials > len(benchmark):
        has = f"the trainings of {benchmark.name!r} that are within the budget"
        message = f"--trials must be at most {len(benchmark)}, {has}, got {trials}."
        raise UserError("out-of-range", message, option="--trials", value=trials, most=len(benchmark))
    return trials


def trial_counts(trials: int) -> list[int]:
    """The numbers of trainings after which a search is looked at, in increasing order."""
    return sorted({max(1, round(share * trials)) for share in TRIAL_FRACTIONS})


def front_share(rows: Sequence[Row], truth: TrueFront, objectives: Mapping[str, Direction], after: int) -> float:
    """The share of the whole front that a search would report after so many trainings."""
    return truth.share(expected_front(rows[:after], objectives))


def expected_front(rows: Sequence[Row], objectives: Mapping[str, Direction]) -> list[Architecture]:
    """The architectures that a search would report as its front, by validation."""
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
    """Yield each sampler's searches: its name, and the front's share after each of `trial_counts`.

    Args:
        benchmark: The table of what is within the budget.
        members: The same as what may be proposed.
        objectives: Column -> "max" or "min".
        samplers: Names, or "package.module:Class".
        seeds: How many searches each has, with seeds from 0 on.
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
    """Medians and quartiles of what each sampler's searches are worth, by linear interpolation: [S, N] each."""
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
