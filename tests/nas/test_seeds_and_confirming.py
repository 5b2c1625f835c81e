"""Seeds of a search: none twice, at least so many, and fresh ones at its end for what may be on the front."""

import math
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest

import nas
import nas.search_plan
from nas.early_stopping import MOST_RUNGS
from nas.sampling import BudgetSampler, Proposer, Situation, racing
from nas.sampling.beliefs import Beliefs
from nas.sampling.history import Tried, measured
from nas.searching import Evidence
from nas.storage.optuna_study import confirm_from
from nas.storage.store import Store
from nas.study import Study
from results.process import Process, Readings
from results.row import Row
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from toy_searches import Interrupted, Search
from toy_space import ALL, BAND, study_with

pytestmark = pytest.mark.usefixtures("quiet")


SMALL = ("depth=1,2", "heads=1,2")


def seeds_of(rows: list[Row]) -> Counter[Architecture]:
    pairs = [(row.architecture, row.seed) for row in rows]
    assert len(set(pairs)) == len(pairs)  # none is trained twice with the same seed
    return Counter(architecture for architecture, _ in pairs)


@pytest.mark.parametrize("sampler", ["random", "surrogate"])
def test_each_architecture_gets_so_many_seeds_at_least(search: Search, sampler: str) -> None:
    seeds = seeds_of(search(trials=12, seeds=3, sampler=sampler).rows())
    assert sum(seeds.values()) == 12
    assert min(seeds.values()) == 3


def test_a_share_of_the_trials_confirms_with_fresh_seeds(search: Search) -> None:
    study = search(trials=12, confirm=0.25)
    rows = study.rows()
    assert len(seeds_of(rows[:9])) == 9  # of random search all are new
    assert {row.architecture for row in rows[9:]} <= {row.architecture for row in rows[:9]}
    assert study.confirming == {row.identity() for row in rows[9:]}
    fronts = [one for one in study.standings() if one.confirmed]
    assert {identity for one in fronts for identity in one.identities} >= study.confirming
    assert all(one.chance > 0.1 for one in fronts)


def test_what_confirmed_when_a_wiring_had_several_texts_still_does(search: Search) -> None:
    study = search(trials=12, confirm=0.25)
    assert any(row.architecture.topology == "hyper" for row in study.rows()[9:])
    with closing(sqlite3.connect(study.storage.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute(
            """UPDATE nas_rows SET identity = 'x' || substr(identity, 2),
            row = replace(row, '"topology": "hyper"', '"topology": "hyper(streams=4)"')
            WHERE row LIKE '%"topology": "hyper"%'"""
        )
    again = nas.load(study.name, storage=study.storage)
    assert again.rows() == study.rows()
    assert again.confirming == study.confirming


def test_a_training_that_was_held_confirms_nothing_when_it_goes_on(search: Search) -> None:
    study = search(trials=12, confirm=0.25)
    Store(study.storage, make=True).add(study.rows()[0], study.name, 12)  # behind those that confirm
    assert Store(study.storage).confirming(study.name) == study.confirming


def test_a_search_that_goes_on_confirms_anew(search: Search) -> None:
    assert len(search(trials=8, confirm=0.25).confirming) == 2
    study = search(trials=20, confirm=0.25)
    rows = study.rows()
    assert len(rows) == 20
    assert study.confirming == {row.identity() for row in rows[15:]}
    seeds_of(rows)
    assert search(trials=20, confirm=0.25).rows() == rows  # there is nothing more to do


@pytest.mark.parametrize("until", [5, 11])
def test_confirming_in_two_goes_is_confirming_in_one(search: Search, interrupted: Interrupted, until: int) -> None:
    whole = search(trials=16, confirm=0.5, sampler="surrogate")
    interrupted(lambda: search(trials=16, confirm=0.5, sampler="surrogate", study="t"), until)
    again = search(trials=16, confirm=0.5, sampler="surrogate", study="t")
    assert [(row.architecture, row.seed) for row in again.rows()] == [
        (row.architecture, row.seed) for row in whole.rows()
    ]
    assert again.confirming == whole.confirming


def test_where_all_have_been_tried_what_is_to_confirm_still_does(search: Search) -> None:
    study = search(space="depth-heads", arch="depth=1,heads=1", axis=SMALL, budget="", trials=16, confirm=0.25)
    seeds = seeds_of(study.rows())
    assert (len(seeds), sum(seeds.values()), len(study.confirming)) == (4, 16, 12)
    again = search(space="depth-heads", arch="depth=1,heads=1", axis=SMALL, budget="", trials=18, confirm=0.25)
    assert (len(again), len(again.confirming)) == (18, 14)


def test_where_all_have_been_tried_each_gets_its_seeds(search: Search) -> None:
    study = search(space="depth-heads", arch="depth=1,heads=1", axis=SMALL, budget="", trials=16, seeds=3)
    assert sorted(seeds_of(study.rows()).values()) == [3] * 4


def test_many_workers_may_confirm_what_is_under_way(search: Search) -> None:
    study = search(
        space="depth-heads", arch="depth=1,heads=1", axis=("depth=1,2", "heads=1"), budget="", trials=12, confirm=0.5,
        workers=3,
    )  # fmt: skip
    assert sum(seeds_of(study.rows()).values()) == 12


@pytest.mark.parametrize(("trials", "confirm"), [(14, 0.25), (15, 0.25), (40, 0.25), (13, 0.5)])
def test_a_study_extended_by_any_number_holds_so_many(
    search: Search, capsys: pytest.CaptureFixture[str], trials: int, confirm: float
) -> None:
    search(trials=12, confirm=0.25)
    study = search(trials=trials, confirm=confirm)
    assert len(study) == trials
    assert study.confirming
    assert "has been tried" not in capsys.readouterr().err


def test_one_more_trial_takes_nothing_from_what_was_confirmed(search: Search) -> None:
    before = search(trials=12, confirm=0.25).confirming
    after = search(trials=13, confirm=0.25).confirming
    assert len(before) == 3
    assert before < after


@pytest.mark.parametrize(("share", "trials", "confirming"), [(0.29, 100, 29), (0.57, 100, 57), (0.25, 3, 0)])
def test_a_share_of_the_trials_confirms(share: float, trials: int, confirming: int) -> None:
    assert Evidence(trials, 1, share).confirming == confirming


def test_a_seed_is_given_with_its_candidate_or_anew(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator dies when it has written a seed, before the candidate that it is for."""
    record, calls = nas.search_plan.record, list[int]()

    def dies(*others: Any) -> None:
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        record(*others)

    monkeypatch.setattr(nas.search_plan, "record", dies)
    with pytest.raises(KeyboardInterrupt):
        search(trials=8, confirm=0.25)
    study = search(trials=8, confirm=0)
    assert len(seeds_of(study.rows())) >= 6
    assert len(study) == 8


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seeds": 0}, r"--seeds must be from 1 to --trials \(8\) in a search, got 0"),
        ({"seeds": 9}, r"--seeds must be from 1 to --trials \(8\) in a search, got 9"),
        ({"confirm": 1}, "--confirm must be a share of the trials, from 0 to below 1, got 1"),
        ({"confirm": -0.1}, "--confirm must be a share of the trials, from 0 to below 1, got -0.1"),
        ({"confirm": math.nan}, "--confirm must be a share of the trials, from 0 to below 1, got nan"),
        ({"confirm": "much"}, "--confirm must be a share of the trials, from 0 to below 1, got 'much'"),
    ],
)
def test_seeds_and_shares_that_cannot_be_are_refused(search: Search, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        search(**changes)


def test_the_largest_seed_is_followed_by_the_least(search: Search) -> None:
    rows = search(trials=4, seeds=2, seed=2**63 - 1).rows()
    assert {row.seed for row in rows} == {2**63 - 1, 0}


def test_stores_without_searches_confirm_nothing(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    assert Store(url, make=True).confirming("any") == frozenset()
    assert isinstance(nas.load, object)
    assert Study("any", url, []).confirming == frozenset()


class Taught(Proposer):
    """Asks for what it was told."""

    said: dict[str, Situation] = {}  # noqa: RUF012  # of the last proposal

    def propose(self, situation: Situation) -> int:
        self.said["last"] = situation
        return int(situation.untried[0])


def situation(values: list[tuple[float, float]], **sampler: Any) -> Situation:
    """What a proposer is told after trials with these values, one candidate each."""
    made = BudgetSampler(ALL, f"{__name__}:Taught", **sampler)
    study = study_with(made)
    for one in values:
        trial = study.ask()
        made.propose(trial)
        study.tell(trial, one)
    made.propose(study.ask())
    return Taught.said["last"]


def test_what_counting_tells_is_believed_whatever_was_measured() -> None:
    def costs(architecture: Architecture) -> tuple[float, float]:
        return math.nan, float(architecture.depth)

    told = situation([(n % 3, 1.0) for n in range(10)], costs=costs)
    known = measured(told.tried)
    every = np.arange(0, len(told.coordinates), 17)
    expected = Beliefs(told, known).expected(every)
    depths = np.array([told.coordinates.candidates[i].architecture.depth for i in every], dtype=float)
    assert np.corrcoef(expected.values[:, 1], depths)[0, 1] == pytest.approx(1)
    assert (expected.moves[:, 1] == 0).all()
    assert (expected.moves[:, 0] > 0).all()
    drawn = Beliefs(told, known).draws(every, 3, np.random.default_rng(0))
    assert drawn[:, :, 1] == pytest.approx(np.repeat(expected.values[None, :, 1], 3, axis=0))


def test_outcomes_are_spread_about_what_is_expected_by_what_a_training_moves() -> None:
    told = situation([(math.sin(n), float(n)) for n in range(12)])
    expected = Beliefs(told, measured(told.tried)).expected(np.arange(30))
    outcomes = expected.outcomes(2.0, np.random.default_rng(0))
    assert outcomes.mean(axis=0) == pytest.approx(expected.values)
    assert outcomes.std(axis=0) == pytest.approx(
        2.0 * expected.moves * np.std(outcomes[:, 0, 0]) / 2 / expected.moves[0, 0]
    )
    assert np.std(outcomes[:, 0, 0]) == pytest.approx(2.0 * expected.moves[0, 0], rel=0.15)


def test_a_move_is_by_how_much_one_more_training_may_change_what_is_expected() -> None:
    told = situation([(math.sin(n), float(n)) for n in range(12)])
    known = measured(told.tried)
    beliefs = Beliefs(told, known)
    at = np.array([3], dtype=np.intp)
    (process, _), places = beliefs._processes, told.coordinates.as_places
    (before,), (variance,) = process.expected(places.at(at))
    after = []
    for deviations in (0.0, 1.0):  # one more reading there, and one by as much higher as readings vary
        read = before + deviations * math.sqrt(variance + process.noise)
        readings, _, _ = Readings.of(known.values[:, 0], known.seeds, known.errors[:, 0], known.within[:, 0])
        later = places.at(np.concatenate([known.indices, at]))
        more = readings.and_more(np.array([read]))
        after.append(Process(later, more, process.scales, process.unit).expected(places.at(at))[0][0])
    assert beliefs.expected(at).moves[0, 0] == pytest.approx(after[1] - after[0])


def test_what_has_all_its_seeds_confirms_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    told = situation([(1.0, 1.0), (0.5, 2.0), (0.9, 3.0)])
    candidates = measured(told.tried).indices
    monkeypatch.setattr(racing, "chances", lambda draws: np.array([0.9, 0.5, 0.2]))
    assert racing.contender(told, since=3, spent=candidates[:0]) == candidates[0]
    assert racing.contender(told, since=3, spent=candidates[:1]) == candidates[1]


def test_trainings_that_confirm_go_to_candidates_by_their_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    told = situation([(1.0, 1.0), (0.5, 2.0), (0.9, 3.0)])
    candidates = measured(told.tried).indices
    monkeypatch.setattr(racing, "chances", lambda draws: np.array([0.9, 0.5, 0.2]))
    given: list[int] = []
    for number in range(16):
        values = np.concatenate([told.tried.values, np.zeros((number, 2))])
        indices = np.array([*told.tried.indices, *given], dtype=np.intp)
        every = np.arange(len(indices))
        unknown = np.full_like(values, np.nan)
        nothing = np.full((len(indices), MOST_RUNGS, 2), np.nan)
        tried = Tried(indices, values, unknown, np.zeros(len(indices), dtype=bool), every, nothing)
        given.append(
            racing.contender(replace(told, tried=tried, again=tried.repeatable), since=3, spent=tried.indices[:0])
        )
    assert [given.count(int(index)) for index in candidates] == [9, 5, 2]


def test_trials_that_confirm_at_once_are_shared_out() -> None:
    sampler = BudgetSampler(BAND, "random")
    study = study_with(sampler)
    worst = [1.0 if direction == optuna.study.StudyDirection.MINIMIZE else -1.0 for direction in study.directions]
    for value in range(4):
        trial = study.ask()
        sampler.propose(trial)
        study.tell(trial, (worst[0] * value, -worst[1] * value))  # none beats another
    confirm_from(study, 4)
    proposed = [sampler.propose(study.ask()) for _ in range(6)]
    assert len(set(proposed)) > 1
    assert set(proposed) <= {sampler.candidate(trial.params) for trial in study.trials[:4]}


def test_what_is_under_way_makes_nothing_surer_far_from_it() -> None:
    told = situation([(math.sin(n), float(n)) for n in range(12)])
    known, own = measured(told.tried), told.tried.indices[0]
    under_way = replace(
        told.tried, indices=np.full_like(told.tried.indices, own), running=np.ones_like(told.tried.running)
    )
    beside = Beliefs(replace(told, tried=told.tried + under_way), known).expected(np.arange(len(told.coordinates)))
    alone = Beliefs(told, known).expected(np.arange(len(told.coordinates)))
    moves = beside.moves / alone.moves
    assert moves[own].max() < 0.6
    assert np.median(moves) > 0.95
