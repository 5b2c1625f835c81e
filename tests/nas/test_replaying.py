"""A table as a task: a search of it finds what was recorded, with recorded seeds, each once."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nas
from nas.commands.listing import everything
from nas.options import Kind
from nas.seeds import next_seed
from nas.storage.store import Store
from nas.study import Study
from results.row import Costs, Row
from results.tabular import TabularBenchmark
from search_spaces.errors import UserError
from search_spaces.listed import first_of
from toy_rows import LITTLE
from toy_tables import recorded, trained, written

Replayed = Callable[..., Study]
TABLE = TabularBenchmark("toys", recorded())
LEAST = TABLE.architectures[0]


@pytest.fixture
def replayed(tmp_path: Path) -> Replayed:
    """A search of a table, each in a store of its own."""
    count = iter(range(100))

    def run(rows: list[Row] | None = None, **asked: Any) -> Study:
        storage = f"sqlite:///{tmp_path}/{next(count)}/s.db"
        one_by_one = {"workers": 1, "trials": 12, "sampler": "random"}  # in an order that does not hang on the clock
        return nas.search(written(tmp_path, rows), **{**one_by_one, "storage": storage, **asked})

    return run


def plain(seeds: tuple[int, ...] = (0, 1, 2)) -> list[Row]:
    """The rows of the twelve residual networks."""
    return [row for row in recorded(seeds) if row.architecture.topology == "resnet"]


def of(row: Row) -> list[object]:
    """What a replayed Row has of the recorded one."""
    return [row.metrics, row.test, row.costs, row.curve, row.steps, row.measures, dict(row.recipe), row.directions]


@pytest.mark.parametrize("sampler", ["random", "surrogate"])
def test_a_search_finds_what_was_recorded_and_nothing_twice(replayed: Replayed, sampler: str) -> None:
    rows = replayed(sampler=sampler).rows()
    assert [of(row) for row in rows] == [of(TABLE.evaluate(row.architecture, row.seed)) for row in rows]
    assert {row.status for row in rows} == {"complete"}
    assert len({(row.architecture, row.seed) for row in rows}) == 12
    assert rows[0].architecture == first_of(TABLE.architectures)
    assert {row.space for row in rows} == {"replay:toys"}


def test_the_same_seed_gives_the_same_search_and_another_one_other_seeds(replayed: Replayed) -> None:
    first, again, other = ([(row.architecture, row.seed) for row in replayed(seed=seed).rows()] for seed in (0, 0, 7))
    assert first == again != other
    assert {seed for _, seed in first[:9]} == {0}
    assert {seed for _, seed in other[:9]} == {1}  # the one at 7 modulo 3


def test_a_search_ends_where_every_seed_was_used(replayed: Replayed, capsys: pytest.CaptureFixture[str]) -> None:
    few = [trained(LITTLE.changed({"depth": depth}), seed) for depth in (1, 2, 4) for seed in range(depth)]
    study = replayed(few, trials=50, seeds=1)
    assert sorted((row.architecture.depth, row.seed) for row in study.rows()) == [
        (1, 0), (2, 0), (2, 1), (4, 0), (4, 1), (4, 2), (4, 3)]  # fmt: skip
    assert "every architecture within the budget has been tried" in capsys.readouterr().err
    with pytest.raises(UserError, match="--seeds must be at most 1: replay:toys"):
        replayed(few, seeds=2)


def test_where_nothing_can_be_confirmed_a_search_goes_on(replayed: Replayed) -> None:
    study = replayed(plain(seeds=(5,)), trials=8, confirm=0.5)
    assert len({row.architecture for row in study.rows()}) == 8
    assert {row.seed for row in study.rows()} == {5}
    assert not study.confirming


def test_what_has_seeds_left_is_confirmed_and_nothing_else(replayed: Replayed) -> None:
    rows = [row for row in plain() if row.seed == 0 or row.architecture.depth == 8]
    study = replayed(rows, trials=16, confirm=0.25)
    fresh = [row for row in study.rows() if row.identity() in study.confirming]
    assert len(fresh) == 4
    assert {row.architecture.depth for row in fresh} == {8}
    assert max(Counter((row.architecture, row.seed) for row in study.rows()).values()) == 1


def test_what_is_searched_for_want_of_seeds_confirms_nothing(replayed: Replayed) -> None:
    every = plain()
    first = first_of({row.architecture for row in every})
    rows = [row for row in every if row.seed == 0 or (row.seed == 1 and row.architecture == first)]
    study = replayed(rows, trials=8, confirm=0.5)
    assert len({row.architecture for row in study.rows()}) == 7
    assert {row.identity() for row in study.rows() if row.seed == 0}.isdisjoint(study.confirming)


def test_seeds_are_taken_in_their_order_from_the_searchs_own_on() -> None:
    assert [next_seed(7, range(7, 7 + taken)) for taken in range(3)] == [7, 8, 9]
    assert next_seed(2**63 - 1, {2**63 - 1}) == 0
    assert [next_seed(4, (), (3, 5, 9)), next_seed(4, {5}, (3, 5, 9)), next_seed(4, {5, 9}, (3, 5, 9))] == [5, 9, 3]
    with pytest.raises(UserError, match="all 3 recorded seeds"):
        next_seed(4, {3, 5, 9}, (3, 5, 9))


def test_what_failed_fails_again_and_what_stood_still_is_no_end(replayed: Replayed) -> None:
    lost = [
        replace(row, status="failed", error="Diverged: loss is nan", metrics={}, test={}, costs=Costs())
        if row.architecture.depth == 8
        else replace(row, status="pruned", steps=40, curve=row.curve[:4], test={})
        if row.architecture.depth == 4
        else row
        for row in plain()
    ]
    kept = [replace(row, costs=TABLE.costs(row.architecture)) if row.seed else row for row in lost]
    study = replayed(kept, confirm=0)
    reasons = {row.architecture.depth: (row.status, row.error) for row in study.rows()}
    assert reasons == {
        1: ("complete", None),
        2: ("complete", None),
        4: ("failed", "RecordedFailure: it was recorded until step 40 (pruned)"),
        8: ("failed", "RecordedFailure: Diverged: loss is nan"),
    }
    assert all(row.costs == TABLE.costs(row.architecture) for row in study.rows())


def test_trainings_are_held_at_a_rung_and_go_on_to_what_was_recorded(replayed: Replayed) -> None:
    held = replayed(trials=24, objectives="accuracy,flops", confirm=0, rungs=1, grace=0.2, seed=7).rows()
    stopped = [row for row in held if row.status == "pruned"]
    assert stopped
    for row in stopped:
        at = TABLE.evaluate(row.architecture, row.seed).curve[1]
        assert (row.steps, row.metrics, row.test, len(row.curve)) == (20, at["metrics"], {}, 2)
    for row in held:
        if row.status == "complete":
            assert of(row) == of(TABLE.evaluate(row.architecture, row.seed))
    assert sum(row.steps for row in held) < 0.8 * 24 * 100


def test_one_training_is_looked_up_until_a_step(tmp_path: Path) -> None:
    asked = {"arch": "depth=8,topology=dca(k=2)", "seed": 2, "storage": f"sqlite:///{tmp_path}/s.db"}
    early = nas.evaluate(written(tmp_path), until=35, **asked)  # type: ignore[arg-type]
    whole = nas.evaluate(written(tmp_path), **asked)  # type: ignore[arg-type]
    assert (early.status, early.steps) == ("pruned", 40)
    assert of(whole) == of(TABLE.evaluate(whole.architecture, 2))
    unknown = nas.evaluate(written(tmp_path), arch="depth=3", storage=str(asked["storage"]))
    assert "has no architecture depth=3" in str(unknown.error)


def test_a_budget_keeps_what_was_counted(replayed: Replayed) -> None:
    study = replayed(plain(), budget="flops<=1000", trials=50, confirm=0)
    inside = {row.architecture for row in plain() if (row.costs.flops or 0) <= 1000}
    assert {row.architecture for row in study.rows()} == inside
    assert 0 < len(inside) < 12


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"space": "joint"}, "a space of its own, got --space"),
        ({"arch": "depth=2"}, "got --arch"),
        ({"axis": "depth=1,2"}, "got --axis"),
        ({"settings": "lr=0.1"}, "lr was 0.01 when table 'toys' was recorded, got '0.1'"),
        ({"preset": "smoke"}, "Choose from: proxy"),
        ({"data": "x"}, "takes no --data, got 'x'"),
        ({"budget": "latency_ms<=5"}, "holds rows and no networks: what is measured of those needs task 'remembered'"),
        ({"objectives": "condition_number,flops"}, "holds rows and no networks"),
        ({"budget": "params<=10"}, "the smallest has params=1400"),
    ],
)
def test_what_a_table_cannot_be_asked_is_said_before_the_first_trial(
    replayed: Replayed, change: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        replayed(**change)


def test_a_recipe_that_no_task_can_have_and_an_unknown_table_are_said(replayed: Replayed) -> None:
    with pytest.raises(UserError, match="a recipe that no task can have"):
        replayed([replace(trained(LITTLE, 0), recipe={"a b": 1})])
    with pytest.raises(UserError, match="Did you mean 'stdlib-lm-topologies'"):
        nas.search("replay:stdlib-topologies")
    assert "replay:NAME" in dict(everything(Kind.TASKS)[Kind.TASKS])


def test_another_table_is_another_evaluation(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"arch": "depth=8", "storage": f"sqlite:///{tmp_path}/s.db"}
    first = nas.evaluate(written(tmp_path), **asked)
    second = nas.evaluate(written(tmp_path, recorded(noise=0.5)), **asked)
    assert first.metrics != second.metrics
    assert Store(asked["storage"]).known(first.identity()) is not None
