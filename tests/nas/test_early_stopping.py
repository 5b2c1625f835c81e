"""Early stopping: where trainings are held, which of them go on, and what a search that holds them finds."""

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial
from scipy.stats import linregress

import nas.search_plan
from nas.auditing import Audit
from nas.budget import parse_budget
from nas.cautions import too_early
from nas.early_stopping import EarlyStopping, Rungs, check_reported
from nas.sampling import BudgetSampler
from nas.sampling.axes import Coordinates
from nas.sampling.held import PAIRS, as_if_ended, expected_end, gains_of
from nas.sampling.history import History, Tried
from nas.storage.optuna_study import conclude, first_of, new_trial, note_length, record
from nas.unlisted.programme import Programme
from results.pareto import front
from results.process import Places, Process, Readings
from results.row import Costs
from search_spaces.architecture import Architecture
from search_spaces.catalog import per_block
from search_spaces.errors import UserError
from toy_rows import a_row
from toy_searches import TOYS, Search
from toy_space import ALL, params

pytestmark = pytest.mark.usefixtures("quiet")


def of_blocks(architecture: Architecture) -> int:
    return sum(heads * head_dim for heads, head_dim in zip(*map(architecture.each, ("heads", "head_dim")), strict=True))


LARGE = Programme(
    per_block(Architecture(depth=6, width=8, heads=2, head_dim=4, hidden=16)),
    lambda architecture: {"params": of_blocks(architecture)},
    parse_budget(["60<=params<=70"]),
)
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


@pytest.mark.parametrize("inner", ["tpe", "nsga2", "random", "surrogate"])
def test_what_goes_on_is_the_same_member_of_a_large_space(inner: str) -> None:
    sampler = BudgetSampler(LARGE, inner)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler, storage="sqlite://")
    for number in range(12):
        trial = study.ask()
        sampler.propose(trial)
        study.tell(trial, state=TrialState.PRUNED) if number == 11 else study.tell(trial, (number / 12, 1.0))
    held = study.trials[-1]
    axes = sampler.infer_relative_search_space(study, held)
    assert sampler.sample_relative(study, new_trial(study, held), axes) == held.params


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


SAMPLER = BudgetSampler(ALL, "random", costs=lambda architecture: (math.nan, float(params(architecture))))
COORDINATES = Coordinates.of(ALL)
BY_COST = sorted(range(len(COORDINATES)), key=lambda member: params(COORDINATES.candidates[member].architecture))


def tried_of(study: optuna.Study) -> Tried:
    study._thread_local.cached_all_trials = None  # as a turn begins
    return History(study, COORDINATES).tried()


def at(study: optuna.Study, member: int, state: TrialState, *reports: float, end: float = 0.0) -> int:
    """A trial of a member, whose accuracy was so at each rung it has reached, with an error of 0.01; its number."""
    cost, trial = float(params(COORDINATES.candidates[member].architecture)), new_trial(study)
    axes = SAMPLER.infer_relative_search_space(study, trial)
    record(study, trial, COORDINATES.point(member), axes)
    if reports:
        said = [[accuracy, cost] for accuracy in reports]
        study._storage.set_trial_user_attr(trial._trial_id, "reports", said)
    values = [end, cost] if state == TrialState.COMPLETE else None
    study._storage.set_trial_state_values(trial._trial_id, state, values)
    return trial.number


def next_of(study: optuna.Study, *, searching: bool = False) -> int | None:
    study._thread_local.cached_all_trials = None
    return SAMPLER.going_on(study, searching=searching)


def known_line(study: optuna.Study) -> None:
    """Enough to tell how others end, whatever they cost: by what was said at the rung and half as much again."""
    number = 3 * PAIRS
    for one in range(number):
        member, good = BY_COST[one * (len(BY_COST) - 1) // (number - 1)], 7 * one % number
        at(study, member, TrialState.COMPLETE, 0.4 + 0.01 * good, end=0.6 + 0.015 * good)


def test_until_so_many_have_ended_all_go_on() -> None:
    study = a_study()
    for member in range(PAIRS - 1):
        at(study, member, TrialState.COMPLETE, 0.5, end=0.9)
    held = at(study, 20, TrialState.PRUNED, 0.1)
    assert next_of(study) == next_of(study, searching=True) == held
    new_trial(study, study.trials[held])
    assert next_of(study) is None  # it is under way


def test_what_is_expected_to_add_to_the_front_goes_on() -> None:
    study = a_study()
    known_line(study)
    cheap, dear = BY_COST[3], BY_COST[-3]
    at(study, dear, TrialState.PRUNED, 0.4)
    assert next_of(study) is None  # what cost the least was better
    good = at(study, dear, TrialState.PRUNED, 0.7)
    better = at(study, cheap, TrialState.PRUNED, 0.7)
    assert next_of(study) == better
    new_trial(study, study.trials[better])
    assert next_of(study) == good
    at(study, BY_COST[4], TrialState.COMPLETE, 0.7, end=1.4)
    assert next_of(study) is None  # which is as good as it may become, for less


def test_new_architectures_come_first_until_more_are_held_than_have_ended() -> None:
    study = a_study()
    known_line(study)
    for number in range(3 * PAIRS + 1):
        assert next_of(study, searching=True) is None
        at(study, BY_COST[2 * number], TrialState.PRUNED, 0.9)
    assert next_of(study, searching=True) is not None


def test_what_is_higher_up_goes_on_first() -> None:
    study = a_study()
    known_line(study)
    at(study, BY_COST[2], TrialState.PRUNED, 0.9)
    higher = at(study, BY_COST[3], TrialState.PRUNED, 0.9, 0.95)
    assert next_of(study) == higher  # where none has gone on to its end yet


def test_gains_are_those_of_the_hypervolume_by_what_may_come_out() -> None:
    random = np.random.default_rng(0)
    number, places = 20, COORDINATES.as_places.at(np.arange(0, 60, 2))
    cost = np.array([float(params(COORDINATES.candidates[one].architecture)) for one in range(0, 60, 2)])
    early = -random.random(30) - 0.5 * (np.arange(30) >= number)  # what is held is better
    ends = 0.8 * early - 0.1 + 0.02 * random.standard_normal(30)
    counted = np.stack([np.full(30, np.nan), cost], axis=1)
    reports = np.stack([early, cost], axis=1)
    errors = np.full((number, 2), np.nan)
    values = np.stack([ends, cost], axis=1)[:number]
    gains = gains_of(places, counted, reports, values, errors, np.random.default_rng(0))

    mean, unit = ends[:number].mean(), ends[:number].std()
    told = Places(np.column_stack([places.sizes, (early - early.min()) / np.ptp(early)]), places.words)
    process = Process(told.at(np.arange(number)), Readings.single((ends[:number] - mean) / unit))
    means, variances = process.expected(told)
    expected = np.stack([mean + unit * means, cost], axis=1)
    worst = expected.max(axis=0) + 0.02 * np.ptp(expected, axis=0)
    moves = unit * variances / np.sqrt(variances + process.noise)

    def volume(points: list[tuple[float, float]]) -> float:
        total, left = 0.0, worst[1]
        for value, flops in sorted(points):
            if flops < left:
                total, left = total + max(worst[0] - value, 0.0) * (left - flops), flops
        return total

    found = [(float(one), float(two)) for one, two in expected[:number]]
    best = volume(found)
    for held, gain in enumerate(gains, start=number):
        may_be = [expected[held, 0] + moves[held] * NormalDist().inv_cdf((one + 0.5) / 8) for one in range(8)]
        exact = np.mean([volume([*found, (value, float(cost[held]))]) - best for value in may_be]) / best
        assert gain == pytest.approx(exact, abs=0.01, rel=0.5)  # by random directions
    assert gains.max() > 0.01
    assert gains.min() < 0.001


def test_what_was_held_has_neither_values_nor_failed() -> None:
    study = a_study()
    at(study, 0, TrialState.COMPLETE, 0.5, 0.6, end=0.7)
    at(study, 1, TrialState.PRUNED, 0.5)
    at(study, 2, TrialState.PRUNED)  # beyond the budget
    at(study, 3, TrialState.FAIL)
    tried = tried_of(study)
    assert tried.held.tolist() == [False, True, False, False]
    assert tried.failed.tolist() == [False, False, True, True]
    assert tried.reports[0, :3, 0].tolist() == pytest.approx([-0.5, -0.6, np.nan], nan_ok=True)
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
        assert told.values[-1] == pytest.approx([-(line.intercept + 0.4 * line.slope), tried.reports[-1, 0, 1]])
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
    later = {"tau_at_10%": 0.1, "tau_at_25%": 0.5}
    assert too_early(an_audit(**later), ["accuracy"], rungs) is None  # the former is before the first rung
    assert too_early(an_audit(**{"tau_at_25%": 0.1}), ["accuracy"], Rungs(1, 0.1, 3)) is not None  # nothing was earlier
    assert too_early(an_audit(**{"tau_at_10%": 0.0, "tau_seeds": 0.0}), ["accuracy"], rungs) is not None
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
