"""Early stopping: where trainings are held, which of them go on, and what a search that holds them finds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial
from scipy.stats import linregress

import nas.search_plan
from nas.auditing import Audit
from nas.cautions import too_early
from nas.early_stopping import PAIRS, EarlyStopping, Rungs, check_reported, expected_end, go_on
from nas.sampling import BudgetSampler
from nas.sampling.axes import Coordinates
from nas.sampling.held import as_if_ended
from nas.sampling.history import History, Tried
from nas.storage.optuna_study import conclude, first_of, new_trial, note_length, record
from results.pareto import front
from results.row import Costs
from search_spaces.errors import UserError
from toy_rows import a_row
from toy_searches import TOYS, Search
from toy_space import ALL

pytestmark = pytest.mark.usefixtures("quiet")

WAYS: Any = {"accuracy": "max", "flops": "min"}
HELD: dict[str, Any] = {"task": f"{TOYS}:Learning", "rungs": 2, "grace": 0.1, "factor": 3.0, "trials": 24}
"""Held after 10 and after 30 of 100 steps."""


def test_what_ended_better_at_no_greater_cost_ends_others() -> None:
    random = np.random.default_rng(0)
    for number in (1, 2, 7, 40):
        ended, expected = random.random((12, 2)).round(1), random.random((number, 2)).round(1)  # some are equal
        errors = np.stack([0.2 * random.random(number), np.zeros(number)], axis=1)
        stays = []
        for values, error in zip(expected, errors, strict=True):
            hoped = [value - 1.0 * off for value, off in zip(values, error, strict=True)]
            pairs = [list(zip(one, hoped, strict=True)) for one in ended]
            beaten = [all(a <= b for a, b in pair) and any(a < b for a, b in pair) for pair in pairs]
            stays.append(not any(beaten))
        assert go_on(ended, expected, errors).tolist() == stays
        assert go_on(ended, expected, errors + 9).all()


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


def test_what_is_known_on_the_way_may_be_searched_for() -> None:
    check_reported({"accuracy": "max", "params": "min", "step_ms": "min"}, {"accuracy": "max"})


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
    fronts = [front(study.table, WAYS)["key"].to_pylist() for study in (held, whole)]
    assert set(fronts[0]) == set(fronts[1])


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
    search: Search, elsewhere: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, until: int
) -> None:
    asked = {**HELD, "trials": 16, "confirm": 0.25, "sampler": "surrogate"}
    whole, concluded = search(**asked, storage=elsewhere("whole")), list[int]()

    def interrupted(study: optuna.Study, number: int, *others: Any) -> None:
        conclude(study, number, *others)
        concluded.append(number)
        if len(concluded) == until:
            raise KeyboardInterrupt

    monkeypatch.setattr(nas.search_plan, "conclude", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search(**asked)
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
    kept: dict[str, Any] = {"reports": [[[accuracy, flops], [0.01, 0.0]] for accuracy in reports]} if reports else {}
    if continues is not None:
        kept["continues"] = continues
    values = [end, flops] if state == TrialState.COMPLETE else None
    study.add_trial(create_trial(state=state, values=values, user_attrs=kept))


def next_of(study: optuna.Study) -> int | None:
    study._thread_local.cached_all_trials = None  # as a turn begins
    found = EarlyStopping(study, Rungs(2, 0.1, 3.0), WAYS).next()
    return None if found is None else first_of(found)


def test_until_so_many_have_ended_all_go_on() -> None:
    study = a_study()
    for number in range(PAIRS - 1):
        a_trial(study, TrialState.COMPLETE, 0.5 + number / 100)
    a_trial(study, TrialState.PRUNED, 0.1)
    assert next_of(study) == PAIRS - 1
    a_trial(study, TrialState.RUNNING, continues=PAIRS - 1)
    assert next_of(study) is None  # it is under way


def test_what_is_not_expected_to_be_on_the_front_stays_until_that_changes() -> None:
    study = a_study()
    for number in range(PAIRS):
        a_trial(study, TrialState.COMPLETE, 0.5 + number / 100, end=0.7 + number / 100 + (-1) ** number / 1000)
    a_trial(study, TrialState.PRUNED, 0.52)
    assert next_of(study) is None  # there is 0.57 for as many FLOPs
    a_trial(study, TrialState.PRUNED, 0.57)
    assert next_of(study) == PAIRS + 1
    a_trial(study, TrialState.FAIL, continues=PAIRS + 1)
    assert next_of(study) is None
    a_trial(study, TrialState.PRUNED, 0.1, flops=999.0)
    assert next_of(study) == PAIRS + 3  # which costs less than all
    a_trial(study, TrialState.RUNNING, continues=PAIRS + 3)
    for number, end in enumerate((0.1, 0.7, 0.1, 0.75)):
        a_trial(study, TrialState.COMPLETE, 0.5 + number / 100, end=end)
    assert next_of(study) == PAIRS  # early reports tell less than they seemed to


def test_what_is_higher_up_goes_on_first() -> None:
    study = a_study()
    a_trial(study, TrialState.PRUNED, 0.5)
    a_trial(study, TrialState.PRUNED, 0.5, 0.6)
    a_trial(study, TrialState.COMPLETE, 0.5, 0.6, 0.7)
    assert next_of(study) == 1


def test_a_trial_is_held_at_the_next_rung() -> None:
    study = a_study(steps=None)
    stopping = EarlyStopping(study, Rungs(2, 0.1, 3), WAYS)
    a_trial(study, TrialState.RUNNING)
    assert stopping.until(study.trials[0]) is None
    curve: Any = [{"step": step, "metrics": {"accuracy": step / 1000, "accuracy_se": 0.1}} for step in (15, 30, 45, 90)]
    row = a_row(directions={"accuracy": "max"}, curve=tuple(curve), steps=100, metrics={"accuracy": 0.1})
    assert stopping.reports(row) == []  # it has no FLOPs
    row = replace(row, costs=Costs(flops=7))
    assert stopping.reports(row) == [[[0.015, 7.0], [0.1, 0.0]], [[0.03, 7.0], [0.1, 0.0]]]
    assert stopping.until(study.trials[0]) == 10
    a_trial(study, TrialState.PRUNED, 0.5)
    a_trial(study, TrialState.RUNNING, continues=1)
    study._thread_local.cached_all_trials = None  # as a turn begins
    assert stopping.until(study.trials[2]) == 30
    a_trial(study, TrialState.PRUNED, 0.5, 0.6, continues=1)
    study._thread_local.cached_all_trials = None
    assert stopping.until(study.trials[2]) is None


def tried_of(study: optuna.Study) -> Tried:
    study._thread_local.cached_all_trials = None
    return History(study, Coordinates.of(ALL)).tried()


def at(study: optuna.Study, member: int, state: TrialState, *reports: float, end: float = 0.0) -> None:
    sampler, coordinates = BudgetSampler(ALL), Coordinates.of(ALL)
    trial = new_trial(study)
    point, axes = coordinates.point(member), sampler.infer_relative_search_space(study, trial)
    record(study, trial, point, axes)
    if reports:
        said = [[[accuracy, 1000.0], [0.01, 0.0]] for accuracy in reports]
        study._storage.set_trial_user_attr(trial._trial_id, "reports", said)
    study._storage.set_trial_state_values(
        trial._trial_id, state, [end, 1000.0] if state == TrialState.COMPLETE else None
    )


def test_what_was_held_has_neither_values_nor_failed() -> None:
    study = a_study()
    at(study, 0, TrialState.COMPLETE, 0.5, 0.6, end=0.7)
    at(study, 1, TrialState.PRUNED, 0.5)
    at(study, 2, TrialState.PRUNED)  # beyond the budget
    at(study, 3, TrialState.FAIL)
    tried = tried_of(study)
    assert tried.held.tolist() == [False, True, False, False]
    assert tried.failed.tolist() == [False, False, True, True]
    assert tried.reports[0, :3, 0, 0].tolist() == pytest.approx([-0.5, -0.6, np.nan], nan_ok=True)
    held = study._storage.get_trial(study.trials[1]._trial_id)
    new_trial(study, held)
    tried = tried_of(study)
    assert tried.indices.tolist() == [0, 2, 3, 1]
    assert tried.numbers.tolist() == [0, 2, 3, 1]  # that of the trial which began the training
    assert tried.running.tolist() == [False, False, False, True]
    assert not tried.held.any()


def test_how_a_training_would_have_ended_is_told_by_those_that_went_on() -> None:
    random = np.random.default_rng(0)
    for pairs in (PAIRS - 1, 9):
        study, early = a_study(), random.random(pairs)
        ends = 0.3 + 0.5 * early + 0.01 * random.standard_normal(pairs)
        for member, (report, end) in enumerate(zip(early, ends, strict=True)):
            at(study, member, TrialState.COMPLETE, float(report), float(report), end=float(end))
        at(study, 20, TrialState.PRUNED, 0.4)
        tried = tried_of(study)
        told = as_if_ended(tried)
        if pairs < PAIRS:
            assert np.isnan(told.values[-1]).all()
            continue
        line = linregress(early, ends)
        assert told.values[-1] == pytest.approx([-(line.intercept + 0.4 * line.slope), 1000.0])
        residual = ((ends - line.intercept - line.slope * early) ** 2).sum() / (pairs - 2)
        further = 1 + 1 / pairs + (0.4 - early.mean()) ** 2 / (early.var() * pairs)
        assert told.errors[-1] == pytest.approx([np.sqrt(residual * further), 0.0])
        assert np.array_equal(told.values[:-1], tried.values[:-1])
        assert np.array_equal(told.held, np.zeros(pairs + 1, dtype=bool))


def test_a_later_report_tells_more() -> None:
    study = a_study()
    for member in range(PAIRS):
        at(study, member, TrialState.COMPLETE, 0.5 + 0.1 * (-1) ** member, member / 10, end=member / 10)
    at(study, 20, TrialState.PRUNED, 0.5, 0.25)
    assert as_if_ended(tried_of(study)).values[-1, 0] == pytest.approx(-0.25)


def test_the_same_report_of_all_tells_their_mean() -> None:
    same, ends = np.full((4, 1), 0.5), np.array([[1.0], [2.0], [3.0], [4.0]])
    values, errors = expected_end(same, ends, np.array([[0.5]]))
    assert values == pytest.approx(np.array([[2.5]]))
    assert errors == pytest.approx(np.array([[np.sqrt(2.5 * 1.25)]]))


def an_audit(**taus: float) -> Audit:
    return Audit("title", ({"metric": "accuracy", "tau_seeds": 0.8, **taus},), (), ())


def test_an_audit_may_say_that_early_reports_tell_nothing() -> None:
    rungs = Rungs(2, 0.3, 3)
    assert too_early(an_audit(**{"tau_at_25%": 0.5}), ["accuracy", "flops"], rungs) is None
    assert too_early(an_audit(**{"tau_at_10%": 0.1}), ["accuracy"], rungs) is None  # which is before the first rung
    assert too_early(an_audit(**{"tau_at_25%": 0.1}), ["flops"], rungs) is None
    said = too_early(an_audit(**{"tau_at_25%": 0.1}), ["accuracy", "flops"], rungs)
    assert said is not None
    assert said.startswith(
        "by its audit, accuracy after 25% of a training does not tell how it ends (Kendall's tau 0.10,"
    )
    assert too_early(an_audit(**{"tau_at_10%": 0.1}), ["accuracy"], Rungs(1, 0.02, 3)) is not None


def test_where_early_reports_tell_nothing_nothing_is_held(
    search: Search, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "nas.searching.audit_for", lambda config, store: an_audit(reliability=0.9, **{"tau_at_10%": 0.1})
    )
    study = search(**{**HELD, "trials": 6})
    assert {row.status for row in study.rows()} == {"complete"}
    assert "no training is held at a rung" in capsys.readouterr().err


def test_a_study_is_gone_on_with_at_the_same_rungs(search: Search) -> None:
    search(**{**HELD, "trials": 3})
    with pytest.raises(UserError, match=r"study 's' was made with rungs number=2,grace=0\.1,factor=3\.0, got none"):
        search(**{**HELD, "trials": 3, "rungs": 0})
