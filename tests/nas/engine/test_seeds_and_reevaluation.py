"""Seeds of a search: none twice, a minimum per architecture, and new ones for re-evaluation at the end."""

import math
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

import nas
import nas.engine.plan
import nas.engine.run
from expect import raises
from grouped import grouped
from nas.engine.run import TrialCounts
from nas.report.study import Study
from nas.samplers import reevaluation
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.history import TrialTable, candidate_means
from nas.samplers.posterior import Posterior
from nas.samplers.proposer import Proposer, SearchState
from nas.samplers.rungs import MAX_RUNGS
from nas.store.optuna_study import set_first_reevaluation
from nas.store.store import Store
from nas.workers.pool import make_pool
from results.records.row import Row
from results.stats.gaussian_process import GaussianProcess, Observations
from search_spaces.architecture.architecture import Architecture
from toy_searches import Interrupt, Search, a_search
from toy_space import ALL, BAND, study_with

pytestmark = pytest.mark.usefixtures("quiet")


SMALL: dict[str, Any] = {
    "space": "depth-heads", "arch": "depth=1,heads=1", "axis": ("depth=1,2", "heads=1,2"), "budget": "",
}  # fmt: skip
"""Four architectures."""

WITH_HYPER: dict[str, Any] = {"space": "joint", "axis": "topology=resnet,hyper", "seed": 2}


@pytest.fixture
def search_args(search_args: dict[str, Any]) -> dict[str, Any]:
    """Arguments with a space that is counted quickly."""
    return {**search_args, "space": "depth-heads"}


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate in this process: a resumed search would start one of its own, which takes seconds."""
    monkeypatch.setattr(
        nas.engine.run, "make_pool", lambda *words, **more: make_pool(*words, **{**more, "isolate": False})
    )


def seeds_of(rows: list[Row]) -> Counter[Architecture]:
    pairs = [(row.architecture, row.seed) for row in rows]
    assert len(set(pairs)) == len(pairs)  # none is trained twice with the same seed
    return Counter(architecture for architecture, _ in pairs)


@pytest.fixture(scope="module")
def study_with_reevals(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Twelve trials with three re-evaluations; no test writes to its store."""
    arguments = {**a_search(tmp_path_factory.mktemp("confirmed")), **WITH_HYPER}
    return nas.search(**{**arguments, "trials": 12, "reeval_fraction": 0.25})


@pytest.fixture
def storage(study_with_reevals: Study, tmp_path: Path) -> str:
    """The URL of a copy of that store."""
    shutil.copytree(Path(study_with_reevals.storage.removeprefix("sqlite:///")).parent, tmp_path / "copy")
    return f"sqlite:///{tmp_path}/copy/studies.db"


def test_each_architecture_gets_a_minimum_of_seeds(search: Search) -> None:
    for sampler in ("random", "surrogate"):
        seeds = seeds_of(search(trials=6, seeds=3, sampler=sampler, study=sampler).rows())
        assert sorted(seeds.values()) == [3, 3], sampler


def test_fraction_of_the_trials_reevaluates_with_new_seeds(study_with_reevals: Study) -> None:
    rows = study_with_reevals.rows()
    assert len(seeds_of(rows[:9])) == 9  # random search repeats no architecture
    assert {row.architecture for row in rows[9:]} <= {row.architecture for row in rows[:9]}
    assert study_with_reevals.reeval_identities == {row.identity() for row in rows[9:]}
    fronts = [summary for summary in study_with_reevals.summaries() if summary.is_held_out]
    assert {identity for summary in fronts for identity in summary.identities} >= study_with_reevals.reeval_identities
    assert all(summary.p_front > 0.1 for summary in fronts)


def test_resumed_training_is_no_reevaluation(study_with_reevals: Study, storage: str) -> None:
    Store(storage, make=True).add(study_with_reevals.rows()[0], "s", 12)  # after the re-evaluations
    assert Store(storage).reevaluations("s") == study_with_reevals.reeval_identities


@pytest.mark.parametrize(("trials", "reeval_fraction"), [(13, 0.25), (14, 0.25), (15, 0.25), (20, 0.25), (13, 0.5)])
def test_longer_study_has_all_its_trials_and_new_reevaluations(
    search: Search,
    study_with_reevals: Study,
    storage: str,
    capsys: pytest.CaptureFixture[str],
    trials: int,
    reeval_fraction: float,
) -> None:
    study = search(**WITH_HYPER, trials=trials, reeval_fraction=reeval_fraction, storage=storage)
    rows = study.rows()
    seeds_of(rows)
    assert len(study) == trials
    assert study.reeval_identities
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"{trials}/{trials} ")
    if trials == 20:
        assert study.reeval_identities == {row.identity() for row in rows[15:]}
        assert search(**WITH_HYPER, trials=20, reeval_fraction=0.25, storage=storage).rows() == rows  # nothing to do
    if (trials, reeval_fraction) == (13, 0.25):  # one more trial keeps all re-evaluations
        assert study_with_reevals.reeval_identities < study.reeval_identities


@pytest.mark.usefixtures("in_this_process")
def test_resumed_reevaluation_equals_an_uninterrupted_one(search: Search, interrupt: Interrupt) -> None:
    arguments: dict[str, Any] = {"trials": 8, "reeval_fraction": 0.5, "sampler": "surrogate"}
    study = search(**arguments)
    for until in (3, 6):
        interrupt(lambda until=until: search(**arguments, study=f"to {until}"), until)
        resumption = search(**arguments, study=f"to {until}")
        assert [(row.architecture, row.seed) for row in resumption.rows()] == [
            (row.architecture, row.seed) for row in study.rows()
        ]
        assert resumption.reeval_identities == study.reeval_identities


def test_reevaluation_uses_all_trials_left_after_the_last_member(search: Search) -> None:
    study = search(**SMALL, trials=8, reeval_fraction=0.25)
    seeds = seeds_of(study.rows())
    assert (len(seeds), sum(seeds.values()), len(study.reeval_identities)) == (4, 8, 4)
    resumption = search(**SMALL, trials=10, reeval_fraction=0.25)
    assert (len(resumption), len(resumption.reeval_identities)) == (10, 6)


def test_all_architectures_of_a_small_space_get_their_seeds(search: Search) -> None:
    study = search(**{**SMALL, "axis": ("depth=1,2", "heads=1")}, trials=8, seeds=3)
    assert sorted(seeds_of(study.rows()).values()) == [3] * 2


def test_number_of_reevaluations_rounds_the_fraction_down() -> None:
    for share, trials, reevals in ((0.29, 100, 29), (0.57, 100, 57), (0.25, 3, 0)):
        assert TrialCounts(trials, 1, share).reevals == reevals


@pytest.mark.usefixtures("in_this_process")
def test_seed_without_its_candidate_is_used_again(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator dies after it has written a seed, and before its candidate."""
    record_params, calls = nas.engine.plan.record_params, list[int]()

    def die(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        record_params(*arguments)

    monkeypatch.setattr(nas.engine.plan, "record_params", die)
    with pytest.raises(KeyboardInterrupt):
        search(trials=8, reeval_fraction=0.25)
    study = search(trials=8, reeval_fraction=0)
    assert len(seeds_of(study.rows())) >= 6
    assert len(study) == 8


def test_impossible_seeds_and_fractions_are_errors(search: Search) -> None:
    with grouped() as case:
        for seeds in (0, 9):
            with case(f"seeds {seeds}"), raises("out-of-range", option="--seeds", value=seeds, least=1, most=8):
                search(seeds=seeds)
        for share, kind in ((1, "out-of-range"), (-0.1, "out-of-range"), ("much", "wrong-type")):
            with case(f"confirm {share}"), raises(kind, option="--reeval-fraction", value=share):  # type: ignore[arg-type]
                search(reeval_fraction=share)
        with case("confirm nan"), raises("out-of-range", option="--reeval-fraction", least=0, below=1):
            search(reeval_fraction=math.nan)


def test_largest_seed_is_followed_by_the_smallest(search: Search) -> None:
    rows = search(trials=2, seeds=2, seed=2**63 - 1).rows()
    assert {row.seed for row in rows} == {2**63 - 1, 0}


def test_store_without_searches_has_no_reevaluations(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    assert Store(url, make=True).reevaluations("any") == frozenset()
    assert Study("any", url, []).reeval_identities == frozenset()


class StateRecorder(Proposer):
    """A proposer that records the state that it gets."""

    states: dict[str, SearchState] = {}  # noqa: RUF012  # of the last proposal

    def propose(self, state: SearchState) -> int:
        self.states["last"] = state
        return int(state.new[0])


def search_state(values: list[tuple[float, float]], **sampler: Any) -> SearchState:
    """The state of a proposer after trials with these values, one candidate each."""
    budget_sampler = BudgetSampler(ALL, f"{__name__}:StateRecorder", **sampler)
    study = study_with(budget_sampler)
    for outcome in values:
        trial = study.ask()
        budget_sampler.propose(trial)
        study.tell(trial, outcome)
    budget_sampler.propose(study.ask())
    return StateRecorder.states["last"]


def test_posterior_takes_counted_costs_as_exact() -> None:
    def costs(architecture: Architecture) -> tuple[float, float]:
        return math.nan, float(architecture.depth)

    state = search_state([(n % 3, 1.0) for n in range(10)], costs=costs)
    means = candidate_means(state.trials)
    members = np.arange(0, len(state.coordinates), 17)
    expected = Posterior(state, means).predict(members)
    depths = np.array([state.coordinates.candidates[i].architecture.depth for i in members], dtype=float)
    assert np.corrcoef(expected.values[:, 1], depths)[0, 1] == pytest.approx(1)
    assert (expected.change_stds[:, 1] == 0).all()
    assert (expected.change_stds[:, 0] > 0).all()
    draws = Posterior(state, means).draws(members, 3, np.random.default_rng(0))
    assert draws[:, :, 1] == pytest.approx(np.repeat(expected.values[None, :, 1], 3, axis=0))


def test_outcomes_spread_about_the_expected_value() -> None:
    state = search_state([(math.sin(n), float(n)) for n in range(12)])
    expected = Posterior(state, candidate_means(state.trials)).predict(np.arange(30))
    outcomes = expected.lookahead_values(2.0, np.random.default_rng(0))
    assert outcomes.mean(axis=0) == pytest.approx(expected.values)
    assert outcomes.std(axis=0) == pytest.approx(
        2.0 * expected.change_stds * np.std(outcomes[:, 0, 0]) / 2 / expected.change_stds[0, 0]
    )
    assert np.std(outcomes[:, 0, 0]) == pytest.approx(2.0 * expected.change_stds[0, 0], rel=0.15)


def test_move_is_the_change_of_the_expected_value_by_one_more_training() -> None:
    state = search_state([(math.sin(n), float(n)) for n in range(12)])
    means = candidate_means(state.trials)
    posterior = Posterior(state, means)
    index = np.array([3], dtype=np.intp)
    (process, _), features = posterior._processes, state.coordinates.features
    (before,), (variance,) = process.predict(features.at(index))
    after = []
    for deviations in (0.0, 1.0):  # one more observation, and one a standard deviation higher
        reading = before + deviations * math.sqrt(variance + process.noise)
        readings, _, _ = Observations.standardize(
            means.values[:, 0], means.seeds, means.errors[:, 0], means.squared_deviations[:, 0]
        )
        later = features.at(np.concatenate([means.indices, index]))
        more = readings.extend(np.array([reading]))
        after.append(
            GaussianProcess(later, more, process.scales, process.variance_scale).predict(features.at(index))[0][0]
        )
    assert posterior.predict(index).change_stds[0, 0] == pytest.approx(after[1] - after[0])


def test_candidate_without_spare_seeds_gets_no_reevaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    state = search_state([(1.0, 1.0), (0.5, 2.0), (0.9, 3.0)])
    candidates = candidate_means(state.trials).indices
    monkeypatch.setattr(reevaluation, "front_probabilities", lambda draws: np.array([0.9, 0.5, 0.2]))
    assert reevaluation.next_reevaluation(state, since=3, exclude=candidates[:0]) == candidates[0]
    assert reevaluation.next_reevaluation(state, since=3, exclude=candidates[:1]) == candidates[1]


def test_reevaluations_follow_the_front_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    state = search_state([(1.0, 1.0), (0.5, 2.0), (0.9, 3.0)])
    candidates = candidate_means(state.trials).indices
    monkeypatch.setattr(reevaluation, "front_probabilities", lambda draws: np.array([0.9, 0.5, 0.2]))
    proposals: list[int] = []
    for number in range(16):
        values = np.concatenate([state.trials.values, np.zeros((number, 2))])
        indices = np.array([*state.trials.indices, *proposals], dtype=np.intp)
        numbers = np.arange(len(indices))
        unknown = np.full_like(values, np.nan)
        nothing = np.full((len(indices), MAX_RUNGS, 2), np.nan)
        trials = TrialTable(indices, values, unknown, np.zeros(len(indices), dtype=bool), numbers, nothing)
        proposals.append(
            reevaluation.next_reevaluation(
                replace(state, trials=trials, repeatable=trials.repeatable), since=3, exclude=trials.indices[:0]
            )
        )
    assert [proposals.count(int(index)) for index in candidates] == [9, 5, 2]


def test_parallel_reevaluations_have_several_candidates() -> None:
    sampler = BudgetSampler(BAND, "random")
    study = study_with(sampler)
    worst = [1.0 if direction == optuna.study.StudyDirection.MINIMIZE else -1.0 for direction in study.directions]
    for value in range(4):
        trial = study.ask()
        sampler.propose(trial)
        study.tell(trial, (worst[0] * value, -worst[1] * value))  # none beats another
    set_first_reevaluation(study, 4)
    proposals = [sampler.propose(study.ask()) for _ in range(6)]
    assert len(set(proposals)) > 1
    assert set(proposals) <= {sampler.candidate(trial.params) for trial in study.trials[:4]}


def test_running_trial_reduces_uncertainty_only_nearby() -> None:
    state = search_state([(math.sin(n), float(n)) for n in range(12)])
    means, index = candidate_means(state.trials), state.trials.indices[0]
    running = replace(
        state.trials, indices=np.full_like(state.trials.indices, index), running=np.ones_like(state.trials.running)
    )
    members = np.arange(len(state.coordinates))
    beside = Posterior(replace(state, trials=state.trials + running), means).predict(members)
    alone = Posterior(state, means).predict(members)
    change_stds = beside.change_stds / alone.change_stds
    assert change_stds[index].max() < 0.6
    assert np.median(change_stds) > 0.95
