"""Paused trials: which resume, their expected gains, and their part in the model."""

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
from nas.samplers.encoding import CandidateEncoding
from nas.samplers.history import History, TrialTable
from nas.samplers.promotion import MIN_COMPLETE, fill_predicted_values, predict_end, promotion_gains
from nas.store.optuna_study import new_trial, record_params
from results.stats.gaussian_process import Features, GaussianProcess, Observations
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.catalog import per_block
from toy_space import ALL, params, rung_study

pytestmark = pytest.mark.usefixtures("quiet")
SLOW = pytest.mark.slow


def block_params(architecture: Architecture) -> int:
    return sum(
        heads * head_dim for heads, head_dim in zip(*map(architecture.by_block, ("heads", "head_dim")), strict=True)
    )


LARGE = BudgetDP(
    per_block(Architecture(depth=2, width=8, heads=2, head_dim=4, hidden=16)),
    lambda architecture: {"params": block_params(architecture)},
    parse_budget(["20<=params<=30"]),
)


@pytest.mark.parametrize("inner", ["surrogate", *(pytest.param(n, marks=SLOW) for n in ("tpe", "nsga2", "random"))])
def test_a_resumed_trial_is_the_same_member_of_a_large_space(inner: str) -> None:
    sampler = BudgetSampler(LARGE, inner)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler, storage="sqlite://")
    for number in range(12):
        trial = study.ask()
        sampler.propose(trial)
        study.tell(trial, state=TrialState.PRUNED) if number == 11 else study.tell(trial, (number / 12, 1.0))
    pruned_trial = study.trials[-1]
    axes = sampler.infer_relative_search_space(study, pruned_trial)
    assert sampler.sample_relative(study, new_trial(study, pruned_trial), axes) == pruned_trial.params


SAMPLER = BudgetSampler(ALL, "random", costs=lambda architecture: (math.nan, float(params(architecture))))
COORDINATES = CandidateEncoding.of(ALL)
BY_COST = sorted(range(len(COORDINATES)), key=lambda member: params(COORDINATES.candidates[member].architecture))


def table_of(study: optuna.Study) -> TrialTable:
    study._thread_local.cached_all_trials = None  # as when a turn begins
    return History(study, COORDINATES).trial_table()


def add_trial(study: optuna.Study, member: int, state: TrialState, *accuracies: float, end: float = 0.0) -> int:
    """Add a trial of a member with these accuracies at its rungs; return its number."""
    cost, trial = float(params(COORDINATES.candidates[member].architecture)), new_trial(study)
    axes = SAMPLER.infer_relative_search_space(study, trial)
    record_params(study, trial, COORDINATES.point(member), axes)
    if accuracies:
        pairs = [[accuracy, cost] for accuracy in accuracies]
        study._storage.set_trial_user_attr(trial._trial_id, "reports", pairs)
    values = [end, cost] if state == TrialState.COMPLETE else None
    study._storage.set_trial_state_values(trial._trial_id, state, values)
    return trial.number


def next_promotion(study: optuna.Study, *, searching: bool = False) -> int | None:
    study._thread_local.cached_all_trials = None
    return SAMPLER.promote(study, searching=searching)


def add_complete_trials(study: optuna.Study) -> None:
    """Add enough complete trials to predict ends, at all costs: the end is 1.5 times the value at the rung."""
    number = 3 * MIN_COMPLETE
    for index in range(number):
        member, good = BY_COST[index * (len(BY_COST) - 1) // (number - 1)], 7 * index % number
        add_trial(study, member, TrialState.COMPLETE, 0.4 + 0.01 * good, end=0.6 + 0.015 * good)


def test_all_resume_until_enough_trials_are_complete() -> None:
    study = rung_study()
    for member in range(MIN_COMPLETE - 1):
        add_trial(study, member, TrialState.COMPLETE, 0.5, end=0.9)
    pruned_trial = add_trial(study, 20, TrialState.PRUNED, 0.1)
    assert next_promotion(study) == next_promotion(study, searching=True) == pruned_trial
    new_trial(study, study.trials[pruned_trial])
    assert next_promotion(study) is None  # it runs


def test_trials_that_may_improve_the_front_resume() -> None:
    study = rung_study()
    add_complete_trials(study)
    cheap, costly = BY_COST[3], BY_COST[-3]
    add_trial(study, costly, TrialState.PRUNED, 0.4)
    assert next_promotion(study) is None  # the cheapest trial was better
    good = add_trial(study, costly, TrialState.PRUNED, 0.7)
    better = add_trial(study, cheap, TrialState.PRUNED, 0.7)
    assert next_promotion(study) == better
    new_trial(study, study.trials[better])
    assert next_promotion(study) == good
    add_trial(study, BY_COST[4], TrialState.COMPLETE, 0.7, end=1.4)
    assert next_promotion(study) is None  # as good as it may become, at less cost


def test_new_architectures_come_first_until_pauses_outnumber_ends() -> None:
    study = rung_study()
    add_complete_trials(study)
    for number in range(3 * MIN_COMPLETE + 1):
        assert next_promotion(study, searching=True) is None
        add_trial(study, BY_COST[2 * number], TrialState.PRUNED, 0.9)
    assert next_promotion(study, searching=True) is not None


def test_trials_of_a_higher_rung_resume_first() -> None:
    study = rung_study()
    add_complete_trials(study)
    add_trial(study, BY_COST[2], TrialState.PRUNED, 0.9)
    higher = add_trial(study, BY_COST[3], TrialState.PRUNED, 0.9, 0.95)
    assert next_promotion(study) == higher  # no trial of that rung is complete yet


def test_gains_are_expected_gains_of_hypervolume() -> None:
    random = np.random.default_rng(0)
    number, places = 20, COORDINATES.features.at(np.arange(0, 60, 2))
    cost = np.array([float(params(COORDINATES.candidates[index].architecture)) for index in range(0, 60, 2)])
    early = -random.random(30) - 0.5 * (np.arange(30) >= number)  # paused trials are better
    ends = 0.8 * early - 0.1 + 0.02 * random.standard_normal(30)
    known_objectives = np.stack([np.full(30, np.nan), cost], axis=1)
    rung_values = np.stack([early, cost], axis=1)
    errors = np.full((number, 2), np.nan)
    values = np.stack([ends, cost], axis=1)[:number]
    gains = promotion_gains(places, known_objectives, rung_values, values, errors, np.random.default_rng(0))

    mean, std = ends[:number].mean(), ends[:number].std()
    features = Features(np.column_stack([places.numeric, (early - early.min()) / np.ptp(early)]), places.one_hot)
    process = GaussianProcess(features.at(np.arange(number)), Observations.single((ends[:number] - mean) / std))
    means, variances = process.predict(features)
    expected = np.stack([mean + std * means, cost], axis=1)
    worst = expected.max(axis=0) + 0.02 * np.ptp(expected, axis=0)
    moves = std * variances / np.sqrt(variances + process.noise)

    def volume(points: list[tuple[float, float]]) -> float:
        total, limit = 0.0, worst[1]
        for value, flops in sorted(points):
            if flops < limit:
                total, limit = total + max(worst[0] - value, 0.0) * (limit - flops), flops
        return total

    front_points = [(float(one), float(two)) for one, two in expected[:number]]
    best = volume(front_points)
    for index, gain in enumerate(gains, start=number):
        outcomes = [
            expected[index, 0] + moves[index] * NormalDist().inv_cdf((quantile + 0.5) / 8) for quantile in range(8)
        ]
        exact = np.mean([volume([*front_points, (value, float(cost[index]))]) - best for value in outcomes]) / best
        assert gain == pytest.approx(exact, abs=0.01, rel=0.5)  # estimated with random directions
    assert gains.max() > 0.01
    assert gains.min() < 0.001


def test_a_paused_trial_has_no_values_and_is_no_failure() -> None:
    study = rung_study()
    add_trial(study, 0, TrialState.COMPLETE, 0.5, 0.6, end=0.7)
    add_trial(study, 1, TrialState.PRUNED, 0.5)
    add_trial(study, 2, TrialState.PRUNED)  # over the budget
    add_trial(study, 3, TrialState.FAIL)
    table = table_of(study)
    assert table.is_paused.tolist() == [False, True, False, False]
    assert table.has_failed.tolist() == [False, False, True, True]
    assert table.rung_values[0, :3, 0].tolist() == pytest.approx([-0.5, -0.6, np.nan], nan_ok=True)
    pruned_trial = study._storage.get_trial(study.trials[1]._trial_id)
    new_trial(study, pruned_trial)
    table = table_of(study)
    assert table.indices.tolist() == [0, 2, 3, 1]
    assert table.root_numbers.tolist() == [0, 2, 3, 1]  # the number of the training's first trial
    assert table.running.tolist() == [False, False, False, True]
    assert not table.is_paused.any()


def test_ends_are_predicted_by_regression_on_resumed_trials() -> None:
    random = np.random.default_rng(0)
    for number in (MIN_COMPLETE - 1, 9):
        study, early = rung_study(), random.random(number)
        ends = 0.3 + 0.5 * early + 0.01 * random.standard_normal(number)
        for member, (value, end) in enumerate(zip(early, ends, strict=True)):
            add_trial(study, member, TrialState.COMPLETE, float(value), float(value), end=float(end))
        add_trial(study, 20, TrialState.PRUNED, 0.4)
        table = table_of(study)
        prediction = fill_predicted_values(table)
        if number < MIN_COMPLETE:
            assert np.isnan(prediction.values[-1]).all()
            continue
        line = linregress(early, ends)
        assert prediction.values[-1] == pytest.approx(
            [-(line.intercept + 0.4 * line.slope), table.rung_values[-1, 0, 1]]
        )
        residual = ((ends - line.intercept - line.slope * early) ** 2).sum() / (number - 2)
        further = 1 + 1 / number + (0.4 - early.mean()) ** 2 / (early.var() * number)
        assert prediction.errors[-1] == pytest.approx([np.sqrt(residual * further), 0.0])
        assert np.array_equal(prediction.values[:-1], table.values[:-1])
        assert np.array_equal(prediction.is_paused, np.zeros(number + 1, dtype=bool))


def test_the_latest_rung_is_used() -> None:
    study = rung_study()
    for member in range(MIN_COMPLETE):
        add_trial(study, member, TrialState.COMPLETE, 0.5 + 0.1 * (-1) ** member, member / 10, end=member / 10)
    add_trial(study, 20, TrialState.PRUNED, 0.5, 0.25)
    assert fill_predicted_values(table_of(study)).values[-1, 0] == pytest.approx(-0.25)


def test_a_positive_metric_is_not_predicted_below_zero() -> None:
    study = rung_study()
    for member in range(MIN_COMPLETE):
        loss = 0.2 + 0.1 * member
        add_trial(study, member, TrialState.COMPLETE, -loss, end=-loss)
    add_trial(study, 20, TrialState.PRUNED, 0.5)  # the line is at -0.5 there
    assert fill_predicted_values(table_of(study)).values[-1, 0] == pytest.approx(0.1)


def test_equal_rung_values_predict_the_mean() -> None:
    same, ends = np.full((4, 1), 0.5), np.array([[1.0], [2.0], [3.0], [4.0]])
    values, errors = predict_end(same, ends, np.array([[0.5]]))
    assert values == pytest.approx(np.array([[2.5]]))
    assert errors == pytest.approx(np.array([[np.sqrt(2.5 * 1.25)]]))
    assert predict_end(same, ends, np.array([[0.7]]))[0] == pytest.approx(np.array([[2.7]]))  # 0.2 more
