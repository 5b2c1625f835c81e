"""The budget-true sampler: what every way of searching keeps to."""

from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from nas.budget import Feasible
from nas.sampling import BudgetSampler, Exhausted
from search_spaces.errors import UserError
from search_spaces.space import Candidate
from toy_space import ALL, BAND, BASE, ONCE, QUICK, SPACE, search, study_with, within

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("inner", ONCE)
def test_every_trial_is_new_and_inside_the_budget_until_there_is_none_left(inner: str) -> None:
    sampler = BudgetSampler(BAND, inner)
    study = study_with(sampler)
    assert sampler.remaining(study) == len(BAND) > 30
    found = search(study, sampler, len(BAND))
    assert set(found) == set(BAND)
    assert sampler.remaining(study) == 0
    with pytest.raises(Exhausted, match="tried"):
        sampler.propose(study.ask())


def test_optunas_gaussian_processes_are_true_to_the_budget_too() -> None:
    sampler = BudgetSampler(BAND, "gp")
    found = search(study_with(sampler), sampler, 12)
    assert len(set(found) & set(BAND)) == 12


@pytest.mark.parametrize("inner", QUICK)
def test_what_is_recorded_is_what_is_proposed_and_only_where_it_applies(inner: str) -> None:
    sampler = BudgetSampler(ALL, inner)
    study = study_with(sampler)
    found = search(study, sampler, 30)
    assert [trial.params for trial in study.trials] == [SPACE.members[candidate] for candidate in found]
    assert [sampler.candidate(trial.params) for trial in study.trials] == found


@pytest.mark.parametrize("inner", QUICK)
def test_a_study_in_several_goes_is_the_study_in_one(inner: str) -> None:
    whole = BudgetSampler(BAND, inner, seed=3)
    expected = search(study_with(whole), whole, 40)
    storage, found = optuna.storages.InMemoryStorage(), []
    for trials in (5, 9, 26):  # each with a sampler and a study of its own, as a new process has
        again = BudgetSampler(BAND, inner, seed=3)
        found += search(study_with(again, storage), again, trials)
    assert found == expected


def test_a_study_in_a_database_is_the_study_in_memory(tmp_path: Path) -> None:
    whole = BudgetSampler(BAND, seed=3)
    expected = search(study_with(whole), whole, 14)
    found = []
    for trials in (10, 4):
        again = BudgetSampler(BAND, seed=3)
        found += search(study_with(again, f"sqlite:///{tmp_path}/s.db"), again, trials)
    assert found == expected


@pytest.mark.parametrize("inner", QUICK)
def test_seeds_differ_and_repeat(inner: str) -> None:
    runs = []
    for seed in (0, 0, 1):
        sampler = BudgetSampler(ALL, inner, seed)
        runs.append(search(study_with(sampler), sampler, 20))
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("inner", QUICK)
def test_trials_that_run_at_once_are_all_different(inner: str) -> None:
    sampler = BudgetSampler(ALL, inner)
    study = study_with(sampler)
    search(study, sampler, 20)
    together = [sampler.propose(study.ask()) for _ in range(16)]
    assert len(set(together)) == 16
    distinct = len({sampler.candidate(trial.params) for trial in study.trials})
    assert distinct == 36 if inner in ONCE else distinct > 20


def test_the_base_is_tried_first() -> None:
    sampler = BudgetSampler(ALL)
    assert search(study_with(sampler), sampler, 1) == [Candidate(BASE)]


def test_where_the_base_is_outside_the_budget_the_nearest_inside_is_tried_first() -> None:
    larger = within("params>=50")
    sampler = BudgetSampler(larger)
    (first,) = search(study_with(sampler), sampler, 1)
    assert Candidate(BASE) not in larger.candidates
    assert first.architecture.topology == "resnet"  # a word is farther away than any number
    assert abs(first.architecture.depth - 4) <= 2


@pytest.mark.parametrize("state", [TrialState.RUNNING, TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE])
def test_a_trial_in_any_state_counts_as_tried(state: TrialState) -> None:
    sampler = BudgetSampler(ALL, "random")
    study = study_with(sampler)
    trial = study.ask()
    sampler.propose(trial)
    if state == TrialState.COMPLETE:
        study.tell(trial, (0.0, 0.0))
    elif state != TrialState.RUNNING:
        study.tell(trial, state=state)
    assert sampler.remaining(study) == len(ALL) - 1


def test_finished_trials_are_seen_behind_one_that_runs_long() -> None:
    sampler = BudgetSampler(ALL, "random")
    study = study_with(sampler)
    search(study, sampler, 3)
    long = study.ask()
    sampler.propose(long)
    search(study, sampler, 3)
    assert sampler.remaining(study) == len(ALL) - 7
    study.tell(long, (0.0, 0.0))
    assert sampler.remaining(study) == len(ALL) - 7
    assert BudgetSampler(ALL).remaining(study) == len(ALL) - 7


def test_one_sampler_tells_two_studies_apart() -> None:
    sampler = BudgetSampler(ALL)
    first, second = study_with(sampler), study_with(sampler)
    search(first, sampler, 5)
    assert sampler.remaining(second) == len(ALL)
    assert sampler.remaining(first) == len(ALL) - 5


def test_a_trial_that_died_half_recorded_becomes_what_it_would_have_been(tmp_path: Path) -> None:
    whole = BudgetSampler(ALL)
    expected = search(study_with(whole), whole, 15)
    sampler = BudgetSampler(ALL)
    study = study_with(sampler, f"sqlite:///{tmp_path}/s.db")
    search(study, sampler, 14)
    study.ask().suggest_int("depth", 1, 8, log=True)  # and then its process is gone
    after = BudgetSampler(ALL)
    taken_up = study_with(after, f"sqlite:///{tmp_path}/s.db")
    assert after.propose(optuna.Trial(taken_up, taken_up.trials[-1]._trial_id)) == expected[-1]


def test_what_was_recorded_is_kept_whatever_would_be_proposed_now() -> None:
    sampler = BudgetSampler(ALL, "random")
    study = study_with(sampler)
    study.add_trial(optuna.create_trial(state=TrialState.RUNNING, params={"depth": 6}, distributions={
        "depth": IntDistribution(1, 8, log=True)}))  # fmt: skip
    assert sampler.propose(optuna.Trial(study, study.trials[0]._trial_id)).architecture.depth == 6


def test_an_enqueued_architecture_is_tried_as_it_is_also_again() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    wanted = next(candidate for candidate in ALL if candidate.architecture.topology == "dca(k=4)")
    study.enqueue_trial(SPACE.members[wanted])
    assert sampler.remaining(study) == len(ALL) - 1
    assert search(study, sampler, 1) == [wanted]
    study.enqueue_trial(SPACE.members[wanted])
    assert search(study, sampler, 2) == [wanted, Candidate(BASE)]


def test_an_enqueued_part_is_completed() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    study.enqueue_trial({"depth": 8, "topology": "ancre"})
    (found,) = search(study, sampler, 1)
    assert (found.architecture.depth, found.architecture.topology[:5]) == (8, "ancre")


def test_an_enqueued_architecture_outside_the_budget_is_refused() -> None:
    sampler = BudgetSampler(BAND)
    study = study_with(sampler)
    study.enqueue_trial({"depth": 8, "heads": 4, "head_dim": 16})
    with pytest.raises(UserError, match=r"within the budget has depth=8"):
        sampler.propose(study.ask())


def test_parameters_that_are_no_architecture_are_refused() -> None:
    with pytest.raises(UserError, match=r"depth=4.*no candidate"):
        BudgetSampler(ALL).candidate({"depth": 4})


def test_a_study_goes_on_with_the_topologies_it_was_begun_with_or_not_at_all() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    search(study, sampler, 3)
    wider = replace(SPACE, axes={**SPACE.axes, "topology": ("resnet", "dca", "ancre", "rmt")})
    after = BudgetSampler(Feasible(wider, tuple(wider)))
    with pytest.raises(UserError, match="begun with other values of axis 'topology' than resnet, dca, ancre, rmt"):
        search(study_with(after, study._storage), after, 1)


def test_an_axis_that_does_not_apply_cannot_be_asked_for() -> None:
    sampler = BudgetSampler(ALL)
    trial = study_with(sampler).ask()
    with pytest.raises(ValueError, match=r"dca\.k.*propose"):
        trial.suggest_int("dca.k", 1, 4, log=True)


def test_axes_are_recorded_with_distributions_of_their_kind() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    search(study, sampler, 40)
    recorded = {name: kind for trial in study.trials for name, kind in trial.distributions.items()}
    assert recorded == {
        "depth": IntDistribution(1, 8, log=True),
        "heads": IntDistribution(1, 4, log=True),
        "head_dim": IntDistribution(2, 16, log=True),
        "topology": CategoricalDistribution(("resnet", "dca", "ancre")),
        "dca.k": IntDistribution(1, 4, log=True),
        "ancre.temperature": FloatDistribution(0.01, 1.0, log=True),
    }
