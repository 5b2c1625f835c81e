"""A table as a task: a search of it looks recorded trainings up, each seed once."""

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
from search_spaces.spaces.enumerated import first_of
from search_spaces.support.errors import Kind
from toy_rows import LITTLE
from toy_tables import table_rows, training_row, write_table

Replayed = Callable[..., Study]
TABLE = TabularBenchmark("toys", table_rows())
LEAST = TABLE.architectures[0]


@pytest.fixture
def replayed(tmp_path: Path) -> Replayed:
    """A search of a table, each in a store of its own."""
    count = iter(range(100))

    def run(rows: list[Row] | None = None, **asked: Any) -> Study:
        storage = f"sqlite:///{tmp_path}/{next(count)}/s.db"
        one_by_one = {
            "resources": Resources(1),
            "trials": 10,
            "sampler": "random",
        }  # in an order that does not hang on the clock
        return nas.search(write_table(tmp_path, rows), **{**one_by_one, "storage": storage, **asked})

    return run


def plain(seeds: tuple[int, ...] = (0, 1, 2)) -> list[Row]:
    """The rows of the twelve residual networks."""
    return [row for row in table_rows(seeds) if row.architecture.topology == "resnet"]


def of(row: Row) -> list[object]:
    """What a replayed Row has of the recorded one."""
    return [row.metrics, row.test, row.costs, row.curve, row.steps, row.extra_metrics, dict(row.recipe), row.directions]


def test_search_gives_each_recorded_training_at_most_once(replayed: Replayed) -> None:
    rows = replayed().rows()
    assert [of(row) for row in rows] == [of(TABLE.evaluate(row.architecture, row.seed)) for row in rows]
    assert {row.status for row in rows} == {"complete"}
    assert len({(row.architecture, row.seed) for row in rows}) == 10
    assert rows[0].architecture == first_of(TABLE.architectures)
    assert {row.space for row in rows} == {"replay:toys"}


def test_search_ends_when_all_recorded_seeds_are_used(replayed: Replayed, capsys: pytest.CaptureFixture[str]) -> None:
    few = [training_row(LITTLE.with_fields({"depth": depth}), seed) for depth in (1, 2, 4) for seed in range(depth)]
    study = replayed(few, trials=50, seeds=1)
    assert sorted((row.architecture.depth, row.seed) for row in study.rows()) == [
        (1, 0), (2, 0), (2, 1), (4, 0), (4, 1), (4, 2), (4, 3)]  # fmt: skip
    *_, progress, notice = capsys.readouterr().err.splitlines()
    assert re.match("7/50 ", progress)
    assert not re.match(r"\d+/\d+ ", notice)
    with raises("out-of-range", option="--seeds", value=2, most=1):
        replayed(few, seeds=2)


def test_search_without_spare_seeds_confirms_nothing_and_goes_on(replayed: Replayed) -> None:
    study = replayed(plain(seeds=(5,)), trials=8, reeval_fraction=0.5)
    assert len({row.architecture for row in study.rows()}) == 8
    assert {row.seed for row in study.rows()} == {5}
    assert not study.reeval_identities


def test_only_architectures_with_spare_seeds_are_confirmed(replayed: Replayed) -> None:
    rows = [row for row in plain() if row.seed == 0 or row.architecture.depth == 8]
    study = replayed(rows, trials=16, reeval_fraction=0.25)
    fresh = [row for row in study.rows() if row.identity() in study.reeval_identities]
    assert len(fresh) == 4
    assert {row.architecture.depth for row in fresh} == {8}
    assert max(Counter((row.architecture, row.seed) for row in study.rows()).values()) == 1


def test_trials_that_search_for_lack_of_seeds_do_not_confirm(replayed: Replayed) -> None:
    every = plain()
    first = first_of({row.architecture for row in every})
    rows = [row for row in every if row.seed == 0 or (row.seed == 1 and row.architecture == first)]
    study = replayed(rows, trials=8, reeval_fraction=0.5)
    assert len({row.architecture for row in study.rows()}) == 7
    assert {row.identity() for row in study.rows() if row.seed == 0}.isdisjoint(study.reeval_identities)


def test_next_seed_goes_on_from_the_seed_of_the_search() -> None:
    assert [next_seed(7, range(7, 7 + taken)) for taken in range(3)] == [7, 8, 9]
    assert next_seed(2**63 - 1, {2**63 - 1}) == 0
    assert [next_seed(4, (), (3, 5, 9)), next_seed(4, {5}, (3, 5, 9)), next_seed(4, {5, 9}, (3, 5, 9))] == [5, 9, 3]
    with raises("out-of-range", option="--seeds", most=3):
        next_seed(4, {3, 5, 9}, (3, 5, 9))


def test_recorded_failures_and_paused_trainings_fail_again(replayed: Replayed) -> None:
    lost = [
        replace(row, status="failed", error="Diverged: loss is nan", metrics={}, test={}, costs=Costs())
        if row.architecture.depth == 8
        else replace(row, status="pruned", steps=40, curve=row.curve[:4], test={})
        if row.architecture.depth == 4
        else row
        for row in plain()
    ]
    kept = [replace(row, costs=TABLE.costs(row.architecture)) if row.seed else row for row in lost]
    study = replayed(kept, reeval_fraction=0)
    assert {(row.architecture.depth, row.status) for row in study.rows()} == {
        (1, "complete"), (2, "complete"), (4, "failed"), (8, "failed")}  # fmt: skip
    reasons = {row.architecture.depth: str(row.error) for row in study.rows()}
    assert reasons[1] == reasons[2] == "None"
    assert all(token in reasons[4] for token in ("RecordedFailure: ", "40", "pruned"))
    assert reasons[8] == "RecordedFailure: Diverged: loss is nan"
    assert all(row.costs == TABLE.costs(row.architecture) for row in study.rows())


def test_replayed_trainings_stop_at_a_rung_and_resume(replayed: Replayed) -> None:
    rows = replayed(trials=18, objectives="accuracy,flops", reeval_fraction=0, rungs=nas.Rungs(1, 0.2), seed=7).rows()
    pruned_rows = [row for row in rows if row.status == "pruned"]
    assert pruned_rows
    for row in pruned_rows:
        at = TABLE.evaluate(row.architecture, row.seed).curve[1]
        assert (row.steps, row.metrics, row.test, len(row.curve)) == (20, at["metrics"], {}, 2)
    for row in rows:
        if row.status == "complete":
            assert of(row) == of(TABLE.evaluate(row.architecture, row.seed))
    assert sum(row.steps for row in rows) < 0.8 * 18 * 100


def test_max_steps_stop_a_replayed_training(tmp_path: Path) -> None:
    asked = {"arch": "depth=8,topology=dca(k=2)", "seed": 2, "storage": f"sqlite:///{tmp_path}/s.db"}
    early = nas.evaluate(write_table(tmp_path), max_steps=35, **asked)  # type: ignore[arg-type]
    whole = nas.evaluate(write_table(tmp_path), **asked)  # type: ignore[arg-type]
    assert (early.status, early.steps) == ("pruned", 40)
    assert of(whole) == of(TABLE.evaluate(whole.architecture, 2))
    unknown = nas.evaluate(write_table(tmp_path), arch="depth=3", storage=str(asked["storage"]))
    assert unknown.status == "failed"
    assert "depth=3" in str(unknown.error)


def test_budget_bounds_recorded_costs(replayed: Replayed) -> None:
    study = replayed(plain(), budget="flops<=1000", trials=50, reeval_fraction=0)
    inside = {row.architecture for row in plain() if (row.costs.flops or 0) <= 1000}
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


def test_impossible_questions_to_a_table_are_refused_before_the_first_trial(replayed: Replayed) -> None:
    with grouped() as case:
        for change, kind, fields in MISTAKES:
            with case(str(change)), raises(kind, **fields):
                replayed(**change)


def test_invalid_recorded_recipe_and_unknown_table_are_refused(replayed: Replayed) -> None:
    with raises("bad-data", table="toys"):
        replayed([replace(training_row(LITTLE, 0), recipe={"a b": 1})])
    with raises("unknown-name", value="stdlib-topologies", nearest="stdlib-lm-topologies"):
        nas.search("replay:stdlib-topologies")
    assert "replay:NAME" in dict(read_lists(ListKind.TASKS)[ListKind.TASKS])


def test_other_table_content_is_another_evaluation(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"arch": "depth=8", "storage": f"sqlite:///{tmp_path}/s.db"}
    first = nas.evaluate(write_table(tmp_path), **asked)
    second = nas.evaluate(write_table(tmp_path, table_rows(noise=0.5)), **asked)
    assert first.metrics != second.metrics
    assert Store(asked["storage"]).find_complete(first.identity()) is not None
