"""Early stopping: where trainings are held, which of them go on, and what a search that holds them finds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from nas.asking import check_until
from nas.early_stopping import EarlyStopping, Rungs, check_reported, check_reports
from nas.storage.optuna_study import first_of, note_length
from results.pareto import front
from results.row import Costs
from search_spaces.errors import UserError
from tasks.digits import DigitsViT
from tasks.glue.stdlib_glue import StdlibGlue
from tasks.recipe import Recipe
from toy_rows import a_row
from toy_searches import TOYS, Interrupted, Search

pytestmark = pytest.mark.usefixtures("quiet")


WAYS: Any = {"accuracy": "max", "flops": "min"}
HELD: dict[str, Any] = {"task": f"{TOYS}:Learning", "rungs": 2, "grace": 0.1, "factor": 3.0, "trials": 24}
"""Held after 10 and after 30 of 100 steps."""


def test_rungs_lie_by_equal_factors_from_the_grace_on() -> None:
    assert Rungs(2, 0.01, 10).steps(1000) == [10, 100]
    assert Rungs(3, 0.125, 2.0).steps(80) == [10, 20, 40]
    assert Rungs(1, 0.1, 99).steps(15) == [2]
    assert Rungs(2, 0.1, 3).steps(100) == [10, 30]  # 30.000000000000004
    assert Rungs().steps(100) == []
    assert Rungs().record() == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rungs": -1}, r"--rungs must be a whole number from 0 to 5, got -1\."),
        ({"rungs": 6}, r"got 6\."),
        ({"rungs": 1.0}, r"got 1\.0\."),
        ({"grace": 0.0}, r"--grace must be a share of a training, above 0 and below 1, got 0\.0\."),
        ({"grace": 1}, r"got 1\."),
        ({"factor": 1.0}, r"--factor must be above 1 and at most 1000, got 1\.0\."),
        ({"factor": float("nan")}, r"got nan\."),
        (
            {"rungs": 3, "grace": 0.2, "factor": 3.0},
            r"the last of --rungs 3 would lie at 1\.8 of a training, by --grace 0\.2 and --factor 3\.0: it must",
        ),
        ({"objectives": "accuracy,condition_number", "rungs": 1}, r"condition_number is measured at the end\."),
    ],
)
def test_what_cannot_be_is_said_in_a_line(search: Search, change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        search(**change)


def test_trainings_in_hours_have_no_rungs(search: Search) -> None:
    with pytest.raises(UserError, match=r"and with hours=1\.0 each training takes as many as it can"):
        search(task="digits-vit", settings="epochs=0,hours=1", objectives="accuracy,flops", budget=(), rungs=1)
    with pytest.raises(UserError, match=r"--rungs lie at steps, and with hours=1\.5 each .* Set steps, and hours"):
        check_reports(DigitsViT(), Recipe(hours=1.5, batch=8, lr=0.1), Rungs(1))
    check_reports(DigitsViT(), Recipe(hours=1.5, batch=8, lr=0.1), Rungs())
    check_reports(DigitsViT(), Recipe(steps=15, batch=8, lr=0.1), Rungs(1))
    check_reports(DigitsViT(), object(), Rungs(1))


def test_a_task_that_reports_nothing_on_the_way_is_held_and_stopped_nowhere() -> None:
    glue = StdlibGlue()
    with pytest.raises(UserError, match="--rungs hold trainings at their reports, and stdlib-glue has none"):
        check_reports(glue, glue.presets["smoke"], Rungs(1))
    check_reports(glue, glue.presets["smoke"], Rungs())
    with pytest.raises(UserError, match="--until stops a training at a report, and stdlib-glue has none"):
        check_until(glue, 3)
    check_until(glue, None)
    check_until(DigitsViT(), 3)


def test_what_is_known_on_the_way_may_be_searched_for() -> None:
    check_reported({"accuracy": "max", "params": "min", "step_ms": "min"}, {"accuracy": "max"}, Rungs(1))


ALIKE: dict[str, Any] = {
    **HELD,
    "space": "depth-heads",
    "arch": "depth=2",
    "axis": ("depth=2", "heads=1,2,3,4,6,8", "topology=resnet,grn-v1,denseformer,dca(k=1)"),
    "budget": "",
}
"""All of these learn equally fast, and samplers that propose nothing twice try all of them."""


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_a_search_holds_what_others_beat_and_finds_the_same_front(
    search: Search, elsewhere: Callable[[str], str], sampler: str
) -> None:
    whole = search(**{**ALIKE, "rungs": 0, "sampler": sampler, "storage": elsewhere("whole")})
    held = search(**ALIKE, sampler=sampler)
    assert len(held) == 24  # trainings, however often they were held
    assert {row.status for row in held.rows()} == {"complete", "pruned"}
    assert {row.steps for row in held.rows()} <= {10, 30, 100}
    assert held.rows()[0].status == "complete"  # from the first it is known how long a training is
    assert sum(row.steps for row in held.rows()) < sum(row.steps for row in whole.rows()) == 2400
    fronts = [front(study.table, WAYS).select(WAYS).to_pylist() for study in (held, whole)]
    costs = [one["flops"] for one in fronts[1]]
    best = [[max(one["accuracy"] for one in each if one["flops"] <= cost) for cost in costs] for each in fronts]
    assert np.subtract(*best) == pytest.approx(0.0, abs=0.02)  # what would have added next to nothing was left


def test_what_goes_on_goes_on_where_it_was_held(search: Search, asked: dict[str, Any]) -> None:
    study = search(**HELD)
    rows = [row for row in study.rows() if row.status == "complete"]
    assert {row.measures["began_at"] for row in rows[1:]} <= {10, 30}
    assert all([point["step"] for point in row.curve] == list(range(10, 101, 10)) for row in rows)
    trials = optuna.load_study(study_name="s", storage=asked["storage"]).trials
    continuing = [trial for trial in trials if first_of(trial) != trial.number]
    assert continuing
    assert all(trial.params == trials[first_of(trial)].params for trial in continuing)
    assert all(trials[first_of(trial)].state == TrialState.PRUNED for trial in continuing)


@pytest.mark.parametrize("until", [1, 9, 20])
def test_a_search_that_was_interrupted_holds_the_same(
    search: Search,
    elsewhere: Callable[[str], str],
    interrupted: Interrupted,
    until: int,
) -> None:
    asked = {**HELD, "trials": 16, "confirm": 0.25, "sampler": "surrogate"}
    whole = search(**asked, storage=elsewhere("whole"))
    interrupted(lambda: search(**asked), until)
    again = search(**asked)
    assert [(row.architecture, row.seed, row.status) for row in again.rows()] == [
        (row.architecture, row.seed, row.status) for row in whole.rows()
    ]


def test_what_confirms_is_held_nowhere(search: Search) -> None:
    study = search(**{**HELD, "confirm": 0.25})
    confirming = [row for row in study.rows() if row.identity() in study.confirming]
    assert len(confirming) == 6
    assert {row.status for row in confirming} == {"complete"}
    earlier = {row.architecture for row in study.rows() if row.identity() not in study.confirming}
    assert {row.architecture for row in confirming} <= earlier
    assert len({(row.architecture, row.seed) for row in study.rows()}) == len(study)


def test_more_seeds_are_held_nowhere(search: Search) -> None:
    study = search(**{**HELD, "seeds": 2})
    more = [row for row in study.rows() if row.seed]
    assert {row.status for row in more} == {"complete"}
    assert {row.architecture for row in more} <= {
        row.architecture for row in study.rows() if not row.seed and row.status == "complete"
    }


def test_many_workers_hold_trainings(search: Search) -> None:
    study = search(**HELD, workers=3)
    assert len(study) == 24
    assert "pruned" in {row.status for row in study.rows()}


def test_it_is_told_how_many_trainings_there_were(search: Search, capsys: pytest.CaptureFixture[str]) -> None:
    search(**{**HELD, "trials": 12})
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("12/12 ")
    assert any("pruned: " in line for line in lines)


def a_study(*, steps: int | None = 100) -> optuna.Study:
    study = optuna.create_study(directions=["maximize", "minimize"], storage="sqlite://")
    if steps is not None:
        note_length(study, steps)
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


def test_a_trial_is_held_at_the_next_rung() -> None:
    study = a_study(steps=None)
    stopping = EarlyStopping(study, Rungs(2, 0.1, 3), WAYS)
    a_trial(study, TrialState.RUNNING)
    assert stopping.until(study.trials[0]) is None
    curve: Any = [{"step": step, "metrics": {"accuracy": step / 1000, "accuracy_se": 0.1}} for step in (15, 30, 45, 90)]
    row = a_row(directions={"accuracy": "max"}, curve=tuple(curve), steps=100, metrics={"accuracy": 0.1})
    assert stopping.reports(row) == []  # it has no FLOPs
    row = replace(row, costs=Costs(flops=7))
    assert stopping.reports(row) == [[0.015, 7.0], [0.03, 7.0]]
    assert stopping.until(study.trials[0]) == 10
    a_trial(study, TrialState.PRUNED, 0.5)
    a_trial(study, TrialState.RUNNING, continues=1)
    study._thread_local.cached_all_trials = None  # as a turn begins
    assert stopping.until(study.trials[2]) == 30
    a_trial(study, TrialState.PRUNED, 0.5, 0.6, continues=1)
    study._thread_local.cached_all_trials = None
    assert stopping.until(study.trials[2]) is None


def test_a_study_is_gone_on_with_at_the_same_rungs(search: Search) -> None:
    search(**{**HELD, "trials": 3})
    with pytest.raises(UserError, match=r"study 's' was made with rungs number=2,grace=0\.1,factor=3\.0, got none"):
        search(**{**HELD, "trials": 3, "rungs": 0})
