"""A search in memory proposes what a search with a store does, and looks trainings up."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

import nas
from nas.analysis.simulation import Outcome, outcome_of, replay, simulate
from nas.budget.bounds import Feasible
from nas.samplers.budget_sampler import BudgetSampler
from nas.workers.resources import Resources
from results.records.row import Direction, Row
from results.stats.tabular_benchmark import TabularBenchmark
from search_spaces.spaces.enumerated import enumerated_space
from search_spaces.spaces.space import Candidate
from toy_rows import LITTLE
from toy_space import ALL
from toy_tables import a_table, table_rows, training_row, write_table

DIRECTIONS: dict[str, Direction] = {"accuracy": "max", "flops": "min"}


def replay_rows(table: TabularBenchmark, sampler: str, seed: int, trials: int) -> list[Row]:
    space = enumerated_space("replay:toys", table.architectures)
    return replay(table, Feasible(space, tuple(space)), DIRECTIONS, sampler, seed, trials)


@pytest.mark.parametrize("sampler", ["random", "surrogate", pytest.param("nsga2", marks=pytest.mark.slow)])
def test_replay_in_memory_equals_search_with_a_store(tmp_path: Path, sampler: str) -> None:
    rows = [
        replace(row, status="failed", metrics={}, error="x")
        if row.architecture.depth == row.architecture.heads == 2
        else row
        for row in table_rows(noise=0.1)
    ]
    arguments: dict[str, Any] = {
        "trials": 12,
        "reeval_fraction": 0,
        "seed": 4,
        "sampler": sampler,
        "objectives": [*DIRECTIONS],
    }
    study = nas.search(
        write_table(tmp_path, rows), storage=f"sqlite:///{tmp_path}/s.db", resources=Resources(1), **arguments
    )
    replay = replay_rows(a_table(*rows), sampler, 4, 12)
    assert [(row.architecture, row.seed) for row in replay] == [(row.architecture, row.seed) for row in study.rows()]
    assert replay == [a_table(*rows).evaluate(row.architecture, row.seed) for row in replay]
    assert [(row.status, row.metrics) for row in replay] == [(row.status, row.metrics) for row in study.rows()]


def test_equal_seeds_repeat_a_replay_and_others_do_not() -> None:
    first, again, other = (replay_rows(a_table(), "random", seed, 20) for seed in (0, 0, 7))
    assert first == again != other
    assert {row.seed for row in first} == {0}
    assert {row.seed for row in other} == {1}  # the one at 7 modulo 3


@pytest.mark.parametrize("sampler", ["random", "surrogate"])
def test_replay_ends_after_all_members_and_repeats_no_training(sampler: str) -> None:
    table = a_table(*table_rows(seeds=(0, 1), noise=0.3))
    rows = replay_rows(table, sampler, 0, 200)
    assert {row.architecture for row in rows} == set(table.architectures)
    assert len({(row.architecture, row.seed) for row in rows}) == len(rows)
    assert (len(rows) > 36) == (sampler == "surrogate")  # which may propose another seed


def test_last_trials_reevaluate_candidates_that_did_not_fail() -> None:
    def train(candidate: Candidate, before: int) -> Outcome | None:
        trained_before.append(before)
        return None if candidate.architecture.depth > 4 else Outcome((float(candidate.architecture.depth), 1.0))

    trained_before: list[int] = []
    proposals = simulate(BudgetSampler(ALL, "random", 1), ("max", "min"), train, 30, reevals=6)
    assert len(set(proposals[:24])) == 24
    assert set(proposals[24:]) <= {candidate for candidate in proposals[:24] if candidate.architecture.depth <= 4}
    assert trained_before == [proposals[:number].count(candidate) for number, candidate in enumerate(proposals)]


def test_errors_are_recorded_with_values(monkeypatch: pytest.MonkeyPatch) -> None:
    studies, make = list[optuna.Study](), optuna.create_study
    monkeypatch.setattr(optuna, "create_study", lambda **arguments: studies.append(make(**arguments)) or studies[-1])
    simulate(BudgetSampler(ALL, "random"), ("max", "min"), lambda *arguments: Outcome((1.0, 2.0), (0.1, None)), 2)
    assert [trial.user_attrs for trial in studies[0].trials] == [{"errors": [0.1, None]}] * 2


def test_outcome_needs_a_complete_row_with_all_objectives() -> None:
    row = training_row(LITTLE, 0)
    assert outcome_of(row, DIRECTIONS) == Outcome([row.metrics["accuracy"], row.costs.flops], [0.01, None])  # type: ignore[list-item]
    assert outcome_of(replace(row, status="pruned"), DIRECTIONS) is None
    assert outcome_of(row, {"latency_ms": "min"}) is None
