"""A table as a task: a search looks recorded trainings up, each seed once."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nas
from expect import raises
from grouped import grouped
from nas.cli.lists import read_lists
from nas.cli.options import ListKind
from nas.environment.seeds import next_seed
from nas.report.study import Study
from nas.store.store import Store
from nas.workers.resources import Resources
from results.records.row import Costs, Row
from results.stats.tabular_benchmark import TabularBenchmark
from search_spaces.spaces.enumerated import initial_architecture
from search_spaces.support.errors import Kind
from toy_rows import LITTLE
from toy_tables import table_rows, training_row, write_table

ReplaySearch = Callable[..., Study]
TABLE = TabularBenchmark("toys", table_rows())
LEAST = TABLE.architectures[0]


@pytest.fixture
def replay_search(tmp_path: Path) -> ReplaySearch:
    """A search of a table, each in a store of its own."""
    count = iter(range(100))

    def run(rows: list[Row] | None = None, **arguments: Any) -> Study:
        storage = f"sqlite:///{tmp_path}/{next(count)}/s.db"
        one_by_one = {"resources": Resources(1), "trials": 10, "sampler": "random"}  # a reproducible order
        return nas.search(write_table(tmp_path, rows), **{**one_by_one, "storage": storage, **arguments})

    return run


def resnet_rows(seeds: tuple[int, ...] = (0, 1, 2)) -> list[Row]:
    """The rows of the twelve residual networks."""
    return [row for row in table_rows(seeds) if row.architecture.topology == "resnet"]


def recorded_fields(row: Row) -> list[object]:
    """The fields that a replayed Row shares with the recorded one."""
    return [row.metrics, row.test, row.costs, row.curve, row.steps, row.extra_metrics, dict(row.recipe), row.directions]


def test_search_gives_each_recorded_training_at_most_once(replay_search: ReplaySearch) -> None:
    rows = replay_search().rows()
    assert [recorded_fields(row) for row in rows] == [
        recorded_fields(TABLE.evaluate(row.architecture, row.seed)) for row in rows
    ]
    assert {row.status for row in rows} == {"complete"}
    assert len({(row.architecture, row.seed) for row in rows}) == 10
    assert rows[0].architecture == initial_architecture(TABLE.architectures)
    assert {row.space for row in rows} == {"replay:toys"}


def test_search_ends_when_all_recorded_seeds_are_used(
    replay_search: ReplaySearch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = [training_row(LITTLE.with_fields({"depth": depth}), seed) for depth in (1, 2, 4) for seed in range(depth)]
    study = replay_search(few, trials=50, seeds=1)
    assert sorted((row.architecture.depth, row.seed) for row in study.rows()) == [
        (1, 0), (2, 0), (2, 1), (4, 0), (4, 1), (4, 2), (4, 3)]  # fmt: skip
    *_, progress, notice = capsys.readouterr().err.splitlines()
    assert re.match("7/50 ", progress)
    assert not re.match(r"\d+/\d+ ", notice)
    with raises("out-of-range", option="--seeds", value=2, most=1):
        replay_search(few, seeds=2)


def test_search_without_spare_seeds_does_not_reevaluate(replay_search: ReplaySearch) -> None:
    study = replay_search(resnet_rows(seeds=(5,)), trials=8, reeval_fraction=0.5)
    assert len({row.architecture for row in study.rows()}) == 8
    assert {row.seed for row in study.rows()} == {5}
    assert not study.reeval_identities


def test_only_architectures_with_spare_seeds_get_reevaluations(replay_search: ReplaySearch) -> None:
    rows = [row for row in resnet_rows() if row.seed == 0 or row.architecture.depth == 8]
    study = replay_search(rows, trials=16, reeval_fraction=0.25)
    reevals = [row for row in study.rows() if row.identity() in study.reeval_identities]
    assert len(reevals) == 4
    assert {row.architecture.depth for row in reevals} == {8}
    assert max(Counter((row.architecture, row.seed) for row in study.rows()).values()) == 1


def test_trials_without_spare_seeds_are_no_reevaluations(replay_search: ReplaySearch) -> None:
    all_rows = resnet_rows()
    first = initial_architecture({row.architecture for row in all_rows})
    rows = [row for row in all_rows if row.seed == 0 or (row.seed == 1 and row.architecture == first)]
    study = replay_search(rows, trials=8, reeval_fraction=0.5)
    assert len({row.architecture for row in study.rows()}) == 7
    assert {row.identity() for row in study.rows() if row.seed == 0}.isdisjoint(study.reeval_identities)


def test_next_seed_follows_the_seed_of_the_search() -> None:
    assert [next_seed(7, range(7, 7 + number)) for number in range(3)] == [7, 8, 9]
    assert next_seed(2**63 - 1, {2**63 - 1}) == 0
    assert [next_seed(4, (), (3, 5, 9)), next_seed(4, {5}, (3, 5, 9)), next_seed(4, {5, 9}, (3, 5, 9))] == [5, 9, 3]
    with raises("out-of-range", option="--seeds", most=3):
        next_seed(4, {3, 5, 9}, (3, 5, 9))


def test_recorded_failures_and_paused_trainings_fail_again(replay_search: ReplaySearch) -> None:
    rows = [
        replace(row, status="failed", error="Diverged: loss is nan", metrics={}, test={}, costs=Costs())
        if row.architecture.depth == 8
        else replace(row, status="pruned", steps=40, curve=row.curve[:4], test={})
        if row.architecture.depth == 4
        else row
        for row in resnet_rows()
    ]
    rows_with_costs = [replace(row, costs=TABLE.costs(row.architecture)) if row.seed else row for row in rows]
    study = replay_search(rows_with_costs, reeval_fraction=0)
    assert {(row.architecture.depth, row.status) for row in study.rows()} == {
        (1, "complete"), (2, "complete"), (4, "failed"), (8, "failed")}  # fmt: skip
    reasons = {row.architecture.depth: str(row.error) for row in study.rows()}
    assert reasons[1] == reasons[2] == "None"
    assert all(token in reasons[4] for token in ("RecordedFailure: ", "40", "pruned"))
    assert reasons[8] == "RecordedFailure: Diverged: loss is nan"
    assert all(row.costs == TABLE.costs(row.architecture) for row in study.rows())


def test_replayed_trainings_stop_at_a_rung_and_resume(replay_search: ReplaySearch) -> None:
    rows = replay_search(
        trials=18, objectives="accuracy,flops", reeval_fraction=0, rungs=nas.Rungs(1, 0.2), seed=7
    ).rows()
    pruned_rows = [row for row in rows if row.status == "pruned"]
    assert pruned_rows
    for row in pruned_rows:
        point = TABLE.evaluate(row.architecture, row.seed).curve[1]
        assert (row.steps, row.metrics, row.test, len(row.curve)) == (20, point["metrics"], {}, 2)
    for row in rows:
        if row.status == "complete":
            assert recorded_fields(row) == recorded_fields(TABLE.evaluate(row.architecture, row.seed))
    assert sum(row.steps for row in rows) < 0.8 * 18 * 100


def test_recorded_reports_without_a_metric_are_skipped(replay_search: ReplaySearch) -> None:
    rows = [
        replace(row, curve=tuple({**point, "metrics": {"loss": 1.0}} for point in row.curve[:-1]) + row.curve[-1:])
        for row in resnet_rows()
    ]
    study = replay_search(rows, reeval_fraction=0)
    assert {row.status for row in study.rows()} == {"complete"}
    assert {row.metrics["accuracy"] for row in study.rows()} <= {row.metrics["accuracy"] for row in rows}


def test_max_steps_stop_a_replayed_training(tmp_path: Path) -> None:
    arguments = {"arch": "depth=8,topology=dca(k=2)", "seed": 2, "storage": f"sqlite:///{tmp_path}/s.db"}
    early = nas.evaluate(write_table(tmp_path), max_steps=35, **arguments)  # type: ignore[arg-type]
    complete = nas.evaluate(write_table(tmp_path), **arguments)  # type: ignore[arg-type]
    assert (early.status, early.steps) == ("pruned", 40)
    assert recorded_fields(complete) == recorded_fields(TABLE.evaluate(complete.architecture, 2))
    unknown = nas.evaluate(write_table(tmp_path), arch="depth=3", storage=str(arguments["storage"]))
    assert unknown.status == "failed"
    assert "depth=3" in str(unknown.error)


def test_budget_bounds_the_costs_of_the_table(replay_search: ReplaySearch) -> None:
    study = replay_search(resnet_rows(), budget="flops<=1000", trials=50, reeval_fraction=0)
    inside = {row.architecture for row in resnet_rows() if (row.costs.flops or 0) <= 1000}
    assert {row.architecture for row in study.rows()} == inside
    assert 0 < len(inside) < 12


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"space": "joint"}, "conflict", {"option": "--space", "task": "replay:toys"}),
    ({"arch": "depth=2"}, "conflict", {"option": "--arch", "task": "replay:toys"}),
    ({"axis": "depth=1,2"}, "conflict", {"option": "--axis", "task": "replay:toys"}),
    ({"settings": "lr=0.1"}, "mismatch", {"option": "lr", "value": "0.1", "expected": 0.01, "table": "toys"}),
    ({"preset": "smoke"}, "unknown-name", {"value": "smoke", "choices": ("proxy",)}),
    ({"data": "x"}, "unsupported", {"option": "--data", "value": "x"}),
    ({"budget": "latency_ms<=5"}, "unsupported", {"task": "replay:toys", "needs": "remembered"}),
    ({"objectives": "condition_number,flops"}, "unsupported", {"task": "replay:toys", "needs": "remembered"}),
    ({"budget": "params<=10"}, "infeasible", {"space": "replay:toys", "budget": "params<=10", "costs": "params=1400"}),
]


def test_impossible_searches_of_a_table_fail_before_the_first_trial(replay_search: ReplaySearch) -> None:
    with grouped() as case:
        for change, kind, fields in MISTAKES:
            with case(str(change)), raises(kind, **fields):
                replay_search(**change)


def test_invalid_recipe_and_unknown_table_are_errors(replay_search: ReplaySearch) -> None:
    with raises("bad-data", table="toys"):
        replay_search([replace(training_row(LITTLE, 0), recipe={"a b": 1})])
    with raises("unknown-name", value="stdlib-topologies", nearest="stdlib-lm-topologies"):
        nas.search("replay:stdlib-topologies")
    assert "replay:NAME" in dict(read_lists(ListKind.TASKS)[ListKind.TASKS])


def test_other_table_content_is_another_evaluation(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"arch": "depth=8", "storage": f"sqlite:///{tmp_path}/s.db"}
    first = nas.evaluate(write_table(tmp_path), **arguments)
    second = nas.evaluate(write_table(tmp_path, table_rows(noise=0.5)), **arguments)
    assert first.metrics != second.metrics
    assert Store(arguments["storage"]).find_complete(first.identity()) is not None
