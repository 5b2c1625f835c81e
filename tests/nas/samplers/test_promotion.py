"""Trials that were stopped early: which resume, what they are expected to add, and what they tell the model."""

import math
from statistics import NormalDist

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from scipy.stats import linregress

from nas.budget.bounds import parse_budget
from nas.budget.implicit.budget_dp import BudgetDP
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.encoding import Coordinates
from nas.samplers.history import History, TrialTable
from nas.samplers.promotion import PAIRS, fill_predicted_values, predict_end, promotion_gains
from nas.store.optuna_study import new_trial, record_params, set_training_length
from results.stats.gaussian_process import Features, GaussianProcess, Observations
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.catalog import per_block
from toy_space import ALL, params

pytestmark = pytest.mark.usefixtures("quiet")
SLOW = pytest.mark.slow


def of_blocks(architecture: Architecture) -> int:
    return sum(
        heads * head_dim for heads, head_dim in zip(*map(architecture.by_block, ("heads", "head_dim")), strict=True)
    )


LARGE = BudgetDP(
    per_block(Architecture(depth=2, width=8, heads=2, head_dim=4, hidden=16)),
    lambda architecture: {"params": of_blocks(architecture)},
    parse_budget(["20<=params<=30"]),
)


def a_study(*, steps: int | None = 100) -> optuna.Study:
    study = optuna.create_study(directions=["maximize", "minimize"], storage="sqlite://")
    if steps is not None:
        set_training_length(study, steps)
    return study


@pytest.mark.parametrize("inner", ["surrogate", *(pytest.param(n, marks=SLOW) for n in ("tpe", "nsga2", "random"))])
def test_a_resumed_trial_is_the_same_member_of_a_large_space(inner: str) -> None:
    sampler = BudgetSampler(LARGE, inner)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler, storage="sqlite://")
    for number in range(12):
        trial = study.ask()
        sampler.propose(trial)
        study.tell(trial, state=TrialState.PRUNED) if number == 11 else study.tell(trial, (number / 12, 1.0))
    held = study.trials[-1]
    axes = sampler.infer_relative_search_space(study, held)
    assert sampler.sample_relative(study, new_trial(study, held), axes) == held.params


SAMPLER = BudgetSampler(ALL, "random", costs=lambda architecture: (math.nan, float(params(architecture))))
COORDINATES = Coordinates.of(ALL)
BY_COST = sorted(range(len(COORDINATES)), key=lambda member: params(COORDINATES.candidates[member].architecture))


def tried_of(study: optuna.Study) -> TrialTable:
    study._thread_local.cached_all_trials = None  # as a turn begins
    return History(study, COORDINATES).trial_table()


def at(study: optuna.Study, member: int, state: TrialState, *reports: float, end: float = 0.0) -> int:
    """A trial of a member, whose accuracy was so at each rung it has reached, with an error of 0.01; its number."""
    cost, trial = float(params(COORDINATES.candidates[member].architecture)), new_trial(study)
    axes = SAMPLER.infer_relative_search_space(study, trial)
    record_params(study, trial, COORDINATES.point(member), axes)
    if reports:
        said = [[accuracy, cost] for accuracy in reports]
        study._storage.set_trial_user_attr(trial._trial_id, "reports", said)
    values = [end, cost] if state == TrialState.COMPLETE else None
    study._storage.set_trial_state_values(trial._trial_id, state, values)
    return trial.number


def next_of(study: optuna.Study, *, searching: bool = False) -> int | None:
    study._thread_local.cached_all_trials = None
    return SAMPLER.promote(study, searching=searching)


def known_line(study: optuna.Study) -> None:
    """Enough to tell how others end, whatever they cost: by what was said at the rung and half as much again."""
    number = 3 * PAIRS
    for one in range(number):
        member, good = BY_COST[one * (len(BY_COST) - 1) // (number - 1)], 7 * one % number
        at(study, member, TrialState.COMPLETE, 0.4 + 0.01 * good, end=0.6 + 0.015 * good)


def test_all_resume_until_enough_have_ended() -> None:
    study = a_study()
    for member in range(PAIRS - 1):
        at(study, member, TrialState.COMPLETE, 0.5, end=0.9)
    held = at(study, 20, TrialState.PRUNED, 0.1)
    assert next_of(study) == next_of(study, searching=True) == held
    new_trial(study, study.trials[held])
    assert next_of(study) is None  # it is under way


def test_trials_that_may_improve_the_front_resume() -> None:
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


def test_new_architectures_come_first_until_more_are_stopped_than_ended() -> None:
    study = a_study()
    known_line(study)
    for number in range(3 * PAIRS + 1):
        assert next_of(study, searching=True) is None
        at(study, BY_COST[2 * number], TrialState.PRUNED, 0.9)
    assert next_of(study, searching=True) is not None


def test_trials_of_a_higher_rung_resume_first() -> None:
    study = a_study()
    known_line(study)
    at(study, BY_COST[2], TrialState.PRUNED, 0.9)
    higher = at(study, BY_COST[3], TrialState.PRUNED, 0.9, 0.95)
    assert next_of(study) == higher  # where none has gone on to its end yet


def test_gains_are_expected_gains_of_hypervolume() -> None:
    random = np.random.default_rng(0)
    number, places = 20, COORDINATES.features.at(np.arange(0, 60, 2))
    cost = np.array([float(params(COORDINATES.candidates[one].architecture)) for one in range(0, 60, 2)])
    early = -random.random(30) - 0.5 * (np.arange(30) >= number)  # what is held is better
    ends = 0.8 * early - 0.1 + 0.02 * random.standard_normal(30)
    counted = np.stack([np.full(30, np.nan), cost], axis=1)
    reports = np.stack([early, cost], axis=1)
    errors = np.full((number, 2), np.nan)
    values = np.stack([ends, cost], axis=1)[:number]
    gains = promotion_gains(places, counted, reports, values, errors, np.random.default_rng(0))

    mean, unit = ends[:number].mean(), ends[:number].std()
    told = Features(np.column_stack([places.sizes, (early - early.min()) / np.ptp(early)]), places.words)
    process = GaussianProcess(told.at(np.arange(number)), Observations.single((ends[:number] - mean) / unit))
    means, variances = process.predict(told)
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


def test_a_stopped_trial_has_no_values_and_has_not_failed() -> None:
    study = a_study()
    at(study, 0, TrialState.COMPLETE, 0.5, 0.6, end=0.7)
    at(study, 1, TrialState.PRUNED, 0.5)
    at(study, 2, TrialState.PRUNED)  # beyond the budget
    at(study, 3, TrialState.FAIL)
    tried = tried_of(study)
    assert tried.is_paused.tolist() == [False, True, False, False]
    assert tried.has_failed.tolist() == [False, False, True, True]
    assert tried.reports[0, :3, 0].tolist() == pytest.approx([-0.5, -0.6, np.nan], nan_ok=True)
    held = study._storage.get_trial(study.trials[1]._trial_id)
    new_trial(study, held)
    tried = tried_of(study)
    assert tried.indices.tolist() == [0, 2, 3, 1]
    assert tried.numbers.tolist() == [0, 2, 3, 1]  # that of the trial which began the training
    assert tried.running.tolist() == [False, False, False, True]
    assert not tried.is_paused.any()


def test_ends_are_predicted_by_regression_on_resumed_trials() -> None:
    random = np.random.default_rng(0)
    for pairs in (PAIRS - 1, 9):
        study, early = a_study(), random.random(pairs)
        ends = 0.3 + 0.5 * early + 0.01 * random.standard_normal(pairs)
        for member, (report, end) in enumerate(zip(early, ends, strict=True)):
            at(study, member, TrialState.COMPLETE, float(report), float(report), end=float(end))
        at(study, 20, TrialState.PRUNED, 0.4)
        tried = tried_of(study)
        told = fill_predicted_values(tried)
        if pairs < PAIRS:
            assert np.isnan(told.values[-1]).all()
            continue
        line = linregress(early, ends)
        assert told.values[-1] == pytest.approx([-(line.intercept + 0.4 * line.slope), tried.reports[-1, 0, 1]])
        residual = ((ends - line.intercept - line.slope * early) ** 2).sum() / (pairs - 2)
        further = 1 + 1 / pairs + (0.4 - early.mean()) ** 2 / (early.var() * pairs)
        assert told.errors[-1] == pytest.approx([np.sqrt(residual * further), 0.0])
        assert np.array_equal(told.values[:-1], tried.values[:-1])
        assert np.array_equal(told.is_paused, np.zeros(pairs + 1, dtype=bool))


def test_the_latest_report_is_used() -> None:
    study = a_study()
    for member in range(PAIRS):
        at(study, member, TrialState.COMPLETE, 0.5 + 0.1 * (-1) ** member, member / 10, end=member / 10)
    at(study, 20, TrialState.PRUNED, 0.5, 0.25)
    assert fill_predicted_values(tried_of(study)).values[-1, 0] == pytest.approx(-0.25)


def test_a_positive_metric_is_not_predicted_below_zero() -> None:
    study = a_study()
    for member in range(PAIRS):
        at(study, member, TrialState.COMPLETE, -0.2 - 0.1 * member, end=-0.2 - 0.1 * member)  # 0.2 and more: a loss
    at(study, 20, TrialState.PRUNED, 0.5)  # where the line is at -0.5
    assert fill_predicted_values(tried_of(study)).values[-1, 0] == pytest.approx(0.1)


def test_equal_reports_predict_the_mean() -> None:
    same, ends = np.full((4, 1), 0.5), np.array([[1.0], [2.0], [3.0], [4.0]])
    values, errors = predict_end(same, ends, np.array([[0.5]]))
    assert values == pytest.approx(np.array([[2.5]]))
    assert errors == pytest.approx(np.array([[np.sqrt(2.5 * 1.25)]]))
    assert predict_end(same, ends, np.array([[0.7]]))[0] == pytest.approx(np.array([[2.7]]))  # as much more
