"""Early stopping: where trainings are held, which of them go on, and what a search that holds them finds."""

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
from nas.samplers.early_stopping import EarlyStopping
from nas.samplers.rungs import Rungs, check_reports, check_rung_objectives
from nas.store.optuna_study import root_trial_number, set_training_length
from nas.workers.resources import Resources
from results.records.row import Costs
from results.stats.pareto import front
from search_spaces.support.errors import Kind
from tasks.glue.stdlib_glue import StdlibGlue
from tasks.recipes.recipe import Recipe
from tasks.vision.digits import DigitsViT
from toy_rows import a_row
from toy_searches import TOYS, Interrupt, Search

pytestmark = pytest.mark.usefixtures("quiet")


WAYS: Any = {"accuracy": "max", "flops": "min"}
HELD: dict[str, Any] = {
    "task": f"{TOYS}:Learning",
    "rungs": Rungs(2, 0.1, 3.0),
    "trials": 24,
}
"""Held after 10 and after 30 of 100 steps."""


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


def test_mistakes_are_refused(search: Search) -> None:
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


def test_a_task_without_reports_is_not_stopped_early() -> None:
    glue = StdlibGlue()
    with raises("unsupported", option="--rungs", task="stdlib-glue"):
        check_reports(glue, glue.presets["smoke"], Rungs(1))
    check_reports(glue, glue.presets["smoke"], Rungs())
    with raises("unsupported", option="--max-steps", value=3, task="stdlib-glue"):
        check_max_steps(glue, 3)
    check_max_steps(glue, None)
    check_max_steps(DigitsViT(), 3)


def test_reported_metrics_and_costs_may_be_objectives() -> None:
    check_rung_objectives({"accuracy": "max", "params": "min", "step_ms": "min"}, {"accuracy": "max"}, Rungs(1))


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials are left at a rung once three have gone on from there."""
    monkeypatch.setattr("nas.samplers.promotion.PAIRS", 3)


ALIKE: dict[str, Any] = {
    **HELD,
    "trials": 12,
    "space": "depth-heads",
    "arch": "depth=2",
    "axis": ("depth=2", "heads=1,2,4", "topology=resnet,grn-v1,denseformer,dca(k=1)"),
    "budget": "",
}
"""All of these learn equally fast, and samplers that propose nothing twice try all of them."""


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("sampler", ["random", pytest.param("tpe", marks=pytest.mark.slow)])
def test_early_stopping_saves_steps_and_finds_the_same_front(
    search: Search, elsewhere: Callable[[str], str], capsys: pytest.CaptureFixture[str], sampler: str
) -> None:
    whole = search(**{**ALIKE, "rungs": Rungs(), "storage": elsewhere("whole")})
    assert sum(row.steps for row in whole.rows()) == 1200
    arguments = {**ALIKE, "sampler": sampler, "storage": elsewhere("held")}
    capsys.readouterr()
    held = search(**arguments)
    lines, rows = capsys.readouterr().err.splitlines(), held.rows()
    assert lines[-1].startswith("12/12 ")
    assert any("pruned" in line for line in lines)
    assert len(rows) == 12  # trainings, however often they were held
    assert {row.status for row in rows} == {"complete", "pruned"}
    assert {row.steps for row in rows} <= {10, 30, 100}
    assert rows[0].status == "complete"  # from the first it is known how long a training is
    assert sum(row.steps for row in rows) < 1200
    fronts = [front(study.table, WAYS).select(WAYS).to_pylist() for study in (held, whole)]
    costs = [one["flops"] for one in fronts[1]]
    best = [[max(one["accuracy"] for one in each if one["flops"] <= cost) for cost in costs] for each in fronts]
    assert np.subtract(*best) == pytest.approx(0.0, abs=0.02)  # what would have added next to nothing was left
    check_resumed(held, optuna.load_study(study_name="s", storage=arguments["storage"]).trials)
    with raises("mismatch", study="s", option="rungs") as refused:
        search(**{**arguments, "rungs": Rungs()})
    assert "number=2,min_fraction=0.1,reduction_factor=3.0" in str(refused.value)


def check_resumed(study: Study, trials: list[optuna.trial.FrozenTrial]) -> None:
    """Trials that were resumed began at a rung, and have the whole curve and the parameters of the stopped ones."""
    rows = [row for row in study.rows() if row.status == "complete"]
    assert {row.extra_metrics["began_at"] for row in rows[1:]} <= {10, 30}
    assert all([point["step"] for point in row.curve] == list(range(10, 101, 10)) for row in rows)
    continuing = [trial for trial in trials if root_trial_number(trial) != trial.number]
    assert continuing
    assert all(trial.params == trials[root_trial_number(trial)].params for trial in continuing)
    assert all(trials[root_trial_number(trial)].state == TrialState.PRUNED for trial in continuing)


@pytest.mark.usefixtures("soon")
def test_an_interrupted_search_stops_the_same_trials(
    search: Search, elsewhere: Callable[[str], str], interrupt: Interrupt
) -> None:
    arguments = {**HELD, "trials": 8, "space": "depth-heads", "reeval_fraction": 0.25, "sampler": "surrogate"}

    def trials_of(study: Study) -> list[tuple[Any, ...]]:
        return [(row.architecture, row.seed, row.status) for row in study.rows()]

    whole = trials_of(search(**arguments, storage=elsewhere("whole")))
    assert {status for *_, status in whole} == {"complete", "pruned"}
    for until in (1, 9):
        again = {**arguments, "storage": elsewhere(str(until))}
        interrupt(lambda again=again: search(**again), until)
        assert trials_of(search(**again)) == whole, until


@pytest.mark.usefixtures("soon")
def test_confirming_trials_and_further_seeds_are_not_stopped_early(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    study = search(**{**HELD, "trials": 12, "reeval_fraction": 0.25, "seeds": 2})
    rows = study.rows()
    confirming = [row for row in rows if row.identity() in study.reeval_identities]
    others = [row for row in rows if row.identity() not in study.reeval_identities]
    assert len(confirming) == 3
    assert any("pruned" in line for line in capsys.readouterr().err.splitlines())
    assert {row.status for row in confirming} == {"complete"}
    assert {row.architecture for row in confirming} <= {row.architecture for row in others}
    assert len({(row.architecture, row.seed) for row in rows}) == len(study)
    more = [row for row in others if row.seed]
    assert more
    assert {row.status for row in more} == {"complete"}
    first = {row.architecture for row in others if not row.seed and row.status == "complete"}
    assert {row.architecture for row in more} <= first


@pytest.mark.slow
def test_several_workers_stop_trials_early(search: Search) -> None:
    study = search(**HELD, resources=Resources(3))
    assert len(study) == 24
    assert "pruned" in {row.status for row in study.rows()}


def a_study(*, steps: int | None = 100) -> optuna.Study:
    study = optuna.create_study(directions=["maximize", "minimize"], storage="sqlite://")
    if steps is not None:
        set_training_length(study, steps)
    return study


def a_trial(
    study: optuna.Study,
    state: TrialState,
    *reports: float,
    continues: int | None = None,
    end: float = 0.7,
    flops: float = 1000.0,
) -> None:
    """One whose accuracy was so at each rung it has reached, with an error of 0.01."""
    kept: dict[str, Any] = {"reports": [[accuracy, flops] for accuracy in reports]} if reports else {}
    if continues is not None:
        kept["continues"] = continues
    values = [end, flops] if state == TrialState.COMPLETE else None
    study.add_trial(create_trial(state=state, values=values, user_attrs=kept))


def test_a_trial_is_stopped_at_the_next_rung() -> None:
    study = a_study(steps=None)
    stopping = EarlyStopping(study, Rungs(2, 0.1, 3), WAYS)
    a_trial(study, TrialState.RUNNING)
    assert stopping.max_steps(study.trials[0]) is None
    curve: Any = [{"step": step, "metrics": {"accuracy": step / 1000, "accuracy_se": 0.1}} for step in (15, 30, 45, 90)]
    row = a_row(directions={"accuracy": "max"}, curve=tuple(curve), steps=100, metrics={"accuracy": 0.1})
    assert stopping.reports(row) == []  # it has no FLOPs
    row = replace(row, costs=Costs(flops=7))
    assert stopping.reports(row) == [[0.015, 7.0], [0.03, 7.0]]
    assert stopping.max_steps(study.trials[0]) == 10
    a_trial(study, TrialState.PRUNED, 0.5)
    a_trial(study, TrialState.RUNNING, continues=1)
    study._thread_local.cached_all_trials = None  # as a turn begins
    assert stopping.max_steps(study.trials[2]) == 30
    a_trial(study, TrialState.PRUNED, 0.5, 0.6, continues=1)
    study._thread_local.cached_all_trials = None
    assert stopping.max_steps(study.trials[2]) is None
