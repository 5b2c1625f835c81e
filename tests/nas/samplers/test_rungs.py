"""Early stopping: rungs, which trials stop, and the front that a search with it finds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from expect import raises
from grouped import grouped
from nas.report.study import Study
from nas.request.resolve import check_max_steps
from nas.samplers.early_stopping import EarlyStopping, check_reports, check_rung_objectives
from nas.samplers.rungs import Rungs
from nas.store.optuna_study import root_trial_number
from nas.workers.resources import Resources
from results.records.row import Costs
from results.stats.pareto import front
from search_spaces.support.errors import Kind
from tasks.glue.stdlib_glue import StdlibGlue
from tasks.recipes.recipe import Recipe
from tasks.vision.digits import DigitsViT
from toy_rows import a_row
from toy_searches import TOYS, Interrupt, Search
from toy_space import rung_study

pytestmark = pytest.mark.usefixtures("quiet")


DIRECTIONS: Any = {"accuracy": "max", "flops": "min"}
EARLY_STOPPING: dict[str, Any] = {
    "task": f"{TOYS}:Learning",
    "rungs": Rungs(2, 0.1, 3.0),
    "trials": 24,
}
"""A search with rungs after 10 and 30 of 100 steps."""


def test_rungs_are_spaced_by_the_factor() -> None:
    assert Rungs(2, 0.01, 10).steps(1000) == [10, 100]
    assert Rungs(3, 0.125, 2.0).steps(80) == [10, 20, 40]
    assert Rungs(1, 0.1, 99).steps(15) == [2]
    assert Rungs(2, 0.1, 3).steps(100) == [10, 30]  # 30.000000000000004
    assert Rungs().steps(100) == []
    assert Rungs().record() == {}
    assert repr(Rungs(2, 1 / 4, 2).record()) == repr(Rungs(2, 0.25, 2.0).record())


IMPOSSIBLE: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"number": -1}, "out-of-range", {"option": "--rungs", "value": -1, "most": 5}),
    ({"number": 6}, "out-of-range", {"option": "--rungs", "value": 6}),
    ({"number": 1.0}, "wrong-type", {"option": "--rungs", "value": 1.0}),
    ({"min_fraction": 0.0}, "out-of-range", {"option": "--min-fraction", "value": 0.0, "above": 0}),
    ({"min_fraction": 1}, "out-of-range", {"option": "--min-fraction", "value": 1, "below": 1}),
    ({"min_fraction": "half"}, "wrong-type", {"option": "--min-fraction", "value": "half"}),
    ({"reduction_factor": 1.0}, "out-of-range", {"option": "--reduction-factor", "value": 1.0, "above": 1}),
    ({"reduction_factor": float("nan")}, "out-of-range", {"option": "--reduction-factor"}),
    ({"number": 3, "min_fraction": 0.2}, "infeasible", {"option": "--rungs", "value": 3}),
]


def test_impossible_rungs_are_refused() -> None:
    with grouped() as case:
        for change, kind, fields in IMPOSSIBLE:
            with case(str(change)), raises(kind, **fields):
                Rungs(**change)


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    (
        {"objectives": "accuracy,condition_number", "rungs": Rungs(1)},
        "conflict",
        {"option": "--rungs", "objective": "condition_number"},
    ),
    (
        {"task": "digits-vit", "settings": "epochs=0,hours=1", "budget": (), "rungs": Rungs(1)},
        "conflict",
        {"option": "--rungs", "hours": 1.0},
    ),
]


def test_mistakes_raise_user_errors(search: Search) -> None:
    with grouped() as case:
        for change, kind, fields in MISTAKES:
            with case(str(change)), raises(kind, **fields):
                search(**{"space": "depth-heads", **change})


def test_trainings_in_hours_have_no_rungs() -> None:
    with raises("conflict", option="--rungs", hours=1.5):
        check_reports(DigitsViT(), Recipe(hours=1.5, batch=8, lr=0.1), Rungs(1))
    check_reports(DigitsViT(), Recipe(hours=1.5, batch=8, lr=0.1), Rungs())
    check_reports(DigitsViT(), Recipe(steps=15, batch=8, lr=0.1), Rungs(1))
    check_reports(DigitsViT(), object(), Rungs(1))


def test_a_task_without_reports_does_not_stop_early() -> None:
    glue = StdlibGlue()
    with raises("unsupported", option="--rungs", task="stdlib-glue"):
        check_reports(glue, glue.presets["smoke"], Rungs(1))
    check_reports(glue, glue.presets["smoke"], Rungs())
    with raises("unsupported", option="--max-steps", value=3, task="stdlib-glue"):
        check_max_steps(glue, 3)
    check_max_steps(glue, None)
    check_max_steps(DigitsViT(), 3)


def test_metrics_and_costs_may_be_objectives() -> None:
    check_rung_objectives({"accuracy": "max", "params": "min", "step_ms": "min"}, {"accuracy": "max"}, Rungs(1))


@pytest.fixture
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials stay at a rung once three have resumed from it."""
    monkeypatch.setattr("nas.samplers.promotion.MIN_COMPLETE", 3)


EQUAL_SPEED: dict[str, Any] = {
    **EARLY_STOPPING,
    "trials": 12,
    "space": "depth-heads",
    "arch": "depth=2",
    "axis": ("depth=2", "heads=1,2,4", "topology=resnet,grn-v1,denseformer,dca(k=1)"),
    "budget": "",
}
"""Architectures that learn equally fast; samplers that never repeat a candidate try all of them."""


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("sampler", ["random", pytest.param("tpe", marks=pytest.mark.slow)])
def test_early_stopping_saves_steps_and_finds_the_same_front(
    search: Search, store_url: Callable[[str], str], capsys: pytest.CaptureFixture[str], sampler: str
) -> None:
    full_study = search(**{**EQUAL_SPEED, "rungs": Rungs(), "storage": store_url("whole")})
    assert sum(row.steps for row in full_study.rows()) == 1200
    arguments = {**EQUAL_SPEED, "sampler": sampler, "storage": store_url("held")}
    capsys.readouterr()
    pruned_study = search(**arguments)
    lines, rows = capsys.readouterr().err.splitlines(), pruned_study.rows()
    assert lines[-1].startswith("12/12 ")
    assert any("pruned" in line for line in lines)
    assert len(rows) == 12  # trainings, however often they paused
    assert {row.status for row in rows} == {"complete", "pruned"}
    assert {row.steps for row in rows} <= {10, 30, 100}
    assert rows[0].status == "complete"  # the first tells the length of a training
    assert sum(row.steps for row in rows) < 1200
    fronts = [front(study.table, DIRECTIONS).select(DIRECTIONS).to_pylist() for study in (pruned_study, full_study)]
    costs = [point["flops"] for point in fronts[1]]
    best = [[max(point["accuracy"] for point in each if point["flops"] <= cost) for cost in costs] for each in fronts]
    assert np.subtract(*best) == pytest.approx(0.0, abs=0.02)  # the rest would have added next to nothing
    check_resumes(pruned_study, optuna.load_study(study_name="s", storage=arguments["storage"]).trials)
    with raises("mismatch", study="s", option="rungs") as error:
        search(**{**arguments, "rungs": Rungs()})
    assert "number=2,min_fraction=0.1,reduction_factor=3.0" in str(error.value)


def check_resumes(study: Study, trials: list[optuna.trial.FrozenTrial]) -> None:
    """Assert that resumed trials began at a rung, with the paused trials' parameters, and have whole curves."""
    rows = [row for row in study.rows() if row.status == "complete"]
    assert {row.extra_metrics["began_at"] for row in rows[1:]} <= {10, 30}
    assert all([point["step"] for point in row.curve] == list(range(10, 101, 10)) for row in rows)
    continuing = [trial for trial in trials if root_trial_number(trial) != trial.number]
    assert continuing
    assert all(trial.params == trials[root_trial_number(trial)].params for trial in continuing)
    assert all(trials[root_trial_number(trial)].state == TrialState.PRUNED for trial in continuing)


@pytest.mark.usefixtures("few_pairs")
def test_an_interrupted_search_stops_the_same_trials(
    search: Search, store_url: Callable[[str], str], interrupt: Interrupt
) -> None:
    arguments = {**EARLY_STOPPING, "trials": 8, "space": "depth-heads", "reeval_fraction": 0.25, "sampler": "surrogate"}

    def trials_of(study: Study) -> list[tuple[Any, ...]]:
        return [(row.architecture, row.seed, row.status) for row in study.rows()]

    trials = trials_of(search(**arguments, storage=store_url("whole")))
    assert {status for *_, status in trials} == {"complete", "pruned"}
    for until in (1, 9):
        again = {**arguments, "storage": store_url(str(until))}
        interrupt(lambda again=again: search(**again), until)
        assert trials_of(search(**again)) == trials, until


@pytest.mark.usefixtures("few_pairs")
def test_reevaluations_and_further_seeds_do_not_stop_early(search: Search, capsys: pytest.CaptureFixture[str]) -> None:
    study = search(**{**EARLY_STOPPING, "trials": 12, "reeval_fraction": 0.25, "seeds": 2})
    rows = study.rows()
    reevals = [row for row in rows if row.identity() in study.reeval_identities]
    others = [row for row in rows if row.identity() not in study.reeval_identities]
    assert len(reevals) == 3
    assert any("pruned" in line for line in capsys.readouterr().err.splitlines())
    assert {row.status for row in reevals} == {"complete"}
    assert {row.architecture for row in reevals} <= {row.architecture for row in others}
    assert len({(row.architecture, row.seed) for row in rows}) == len(study)
    more = [row for row in others if row.seed]
    assert more
    assert {row.status for row in more} == {"complete"}
    first = {row.architecture for row in others if not row.seed and row.status == "complete"}
    assert {row.architecture for row in more} <= first


@pytest.mark.slow
def test_several_workers_stop_trials_early(search: Search) -> None:
    study = search(**EARLY_STOPPING, resources=Resources(3))
    assert len(study) == 24
    assert "pruned" in {row.status for row in study.rows()}


def add_trial(
    study: optuna.Study,
    state: TrialState,
    *accuracies: float,
    continues: int | None = None,
    end: float = 0.7,
    flops: float = 1000.0,
) -> None:
    """Add a trial with these accuracies at its rungs."""
    attributes: dict[str, Any] = {"reports": [[accuracy, flops] for accuracy in accuracies]} if accuracies else {}
    if continues is not None:
        attributes["continues"] = continues
    values = [end, flops] if state == TrialState.COMPLETE else None
    study.add_trial(create_trial(state=state, values=values, user_attrs=attributes))


def test_a_trial_is_stopped_at_the_next_rung() -> None:
    study = rung_study(steps=None)
    stopping = EarlyStopping(study, Rungs(2, 0.1, 3), DIRECTIONS)
    add_trial(study, TrialState.RUNNING)
    assert stopping.max_steps(study.trials[0]) is None
    curve: Any = [{"step": step, "metrics": {"accuracy": step / 1000, "accuracy_se": 0.1}} for step in (15, 30, 45, 90)]
    row = a_row(directions={"accuracy": "max"}, curve=tuple(curve), steps=100, metrics={"accuracy": 0.1})
    assert stopping.rung_values(row) == []  # it has no FLOPs
    row = replace(row, costs=Costs(flops=7))
    assert stopping.rung_values(row) == [[0.015, 7.0], [0.03, 7.0]]
    assert stopping.max_steps(study.trials[0]) == 10
    add_trial(study, TrialState.PRUNED, 0.5)
    add_trial(study, TrialState.RUNNING, continues=1)
    study._thread_local.cached_all_trials = None  # as when a turn begins
    assert stopping.max_steps(study.trials[2]) == 30
    add_trial(study, TrialState.PRUNED, 0.5, 0.6, continues=1)
    study._thread_local.cached_all_trials = None
    assert stopping.max_steps(study.trials[2]) is None
