"""Simulated searches: ask a sampler, look up the outcome, tell the sampler. No store, no workers, no training."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan

import optuna
from optuna.study import StudyDirection
from optuna.trial import TrialState

from nas.budget.bounds import Feasible
from nas.budget.objectives import COUNT_COSTS
from nas.environment.seeds import next_seed
from nas.samplers.budget_sampler import BudgetSampler, NoCandidates
from nas.store.optuna_study import ERRORS, set_first_reevaluation
from results.records.row import Direction, Row
from results.stats.tabular_benchmark import TabularBenchmark
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Candidate

DIRECTIONS = {"max": StudyDirection.MAXIMIZE, "min": StudyDirection.MINIMIZE}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a training.

    Attributes:
        values: One value for each objective.
        errors: Their standard errors, None where unknown; empty if there are none.
    """

    values: Sequence[float]
    errors: Sequence[float | None] = ()


Train = Callable[[Candidate, int], Outcome | None]
"""(candidate, number of its earlier trainings) -> outcome; None for a failure."""


def simulate(
    sampler: BudgetSampler, directions: Sequence[Direction], train: Train, trials: int, reevals: int = 0
) -> list[Candidate]:
    """Ask a sampler for up to `trials` candidates in sequence, tell it each outcome, and return the candidates.

    The last `reevals` trials train front candidates with held-out seeds. The loop ends early if the sampler has nothing
    left to propose. Proposals equal those of `nas search --workers 1` for the same sampler, seed and outcomes.
    """
    study = optuna.create_study(directions=[DIRECTIONS[way] for way in directions], sampler=sampler)
    candidates, trial_counts = list[Candidate](), Counter[Candidate]()
    for number in range(trials):
        if reevals and number == trials - reevals:
            set_first_reevaluation(study, number)
        trial = study.ask()
        try:
            candidate = sampler.propose(trial)
        except NoCandidates:
            break
        outcome = train(candidate, trial_counts[candidate])
        candidates.append(candidate)
        trial_counts[candidate] += 1
        if outcome is None:
            study.tell(trial, state=TrialState.FAIL)
            continue
        if any(outcome.errors):
            trial.set_user_attr(ERRORS, list(outcome.errors))
        study.tell(trial, outcome.values)
    return candidates


def replay(
    table: TabularBenchmark,
    members: Feasible,
    objectives: Mapping[str, Direction],
    sampler: str,
    seed: int,
    trials: int,
) -> list[Row]:
    """Return the recorded Rows that a search by a sampler finds, in its order, without re-evaluations.

    The sampler knows counted costs before any training, as in every search.

    Args:
        table: The recorded Rows.
        members: The architectures that may be proposed, in the table's space.
        objectives: Column -> "max" or "min".
        sampler: Its name, or "package.module:Class".
        seed: Seed of the search; it also determines which recorded seed of an architecture comes first.
        trials: Most trials.

    Raises:
        UserError: There is no such sampler.
    """
    rows, seeds_by_architecture = list[Row](), defaultdict[Architecture, set[int]](set)

    def counted_costs(architecture: Architecture) -> list[float]:
        costs = table.costs(architecture)
        return [float(getattr(costs, name)) if name in COUNT_COSTS else nan for name in objectives]

    def look_up(candidate: Candidate, before: int) -> Outcome | None:
        architecture = candidate.architecture
        row_seed = next_seed(seed, seeds_by_architecture[architecture], table.seeds(architecture))
        seeds_by_architecture[architecture].add(row_seed)
        rows.append(table.evaluate(architecture, row_seed))
        return outcome_of(rows[-1], objectives)

    def max_seeds(architecture: Architecture) -> int:
        return len(table.seeds(architecture))

    budget_sampler = BudgetSampler(members, sampler, seed, counted_costs, max_seeds=max_seeds)
    simulate(budget_sampler, list(objectives.values()), look_up, trials)
    return rows


def outcome_of(row: Row, objectives: Mapping[str, Direction]) -> Outcome | None:
    """Return a Row's values of the objectives; None if it is not complete or lacks one."""
    columns = row.columns() if row.status == "complete" else {}
    values = [columns[name] for name in objectives if columns.get(name) is not None]
    if len(values) < len(objectives):
        return None
    return Outcome(values, [columns.get(f"{name}_se") for name in objectives])
