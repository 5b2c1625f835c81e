"""The budget-true sampler: every sampler proposes new candidates within the budget, reproducibly."""

from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from expect import raises
from nas.budget.bounds import Feasible
from nas.samplers.budget_sampler import BudgetSampler, NoCandidates
from search_spaces.spaces.space import Candidate
from toy_space import ALL, BAND, BASE, ONCE, QUICK, SPACE, search, study_with, within

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("inner", ONCE)
def test_every_trial_is_new_and_within_the_budget_until_none_is_left(inner: str) -> None:
    sampler = BudgetSampler(BAND, inner)
    study = study_with(sampler)
    assert sampler.remaining(study) == len(BAND) > 30
    found = search(study, sampler, len(BAND))
    assert set(found) == set(BAND)
    assert sampler.remaining(study) == 0
    with pytest.raises(NoCandidates):
        sampler.propose(study.ask())


def test_gaussian_processes_of_optuna_keep_to_the_budget() -> None:
    sampler = BudgetSampler(BAND, "gp")
    found = search(study_with(sampler), sampler, 12)
    assert len(set(found) & set(BAND)) == 12


@pytest.mark.parametrize("inner", QUICK)
def test_proposals_are_recorded_and_parallel_trials_differ(inner: str) -> None:
    sampler = BudgetSampler(ALL, inner)
    study = study_with(sampler)
    found = search(study, sampler, 16)
    assert [trial.params for trial in study.trials] == [SPACE.members[candidate] for candidate in found]
    assert [sampler.candidate(trial.params) for trial in study.trials] == found
    together = [sampler.propose(study.ask()) for _ in range(10)]
    assert len(set(together)) == 10
    distinct = len({sampler.candidate(trial.params) for trial in study.trials})
    assert distinct == 26 if inner in ONCE else distinct > 16


@pytest.mark.parametrize("inner", QUICK)
def test_resumed_study_equals_uninterrupted_study_and_seeds_differ(inner: str) -> None:
    whole = BudgetSampler(BAND, inner, seed=3)
    expected = search(study_with(whole), whole, 22)
    storage, found = optuna.storages.InMemoryStorage(), []
    for trials in (5, 9, 8):  # each with a sampler and a study of its own, as a new process has
        again = BudgetSampler(BAND, inner, seed=3)
        found += search(study_with(again, storage), again, trials)
    assert found == expected
    other = BudgetSampler(BAND, inner, seed=4)
    assert search(study_with(other), other, 8) != expected[:8]


def test_study_in_a_database_equals_study_in_memory(tmp_path: Path) -> None:
    whole = BudgetSampler(BAND, seed=3)
    expected = search(study_with(whole), whole, 11)
    found = []
    for trials in (8, 3):
        again = BudgetSampler(BAND, seed=3)
        found += search(study_with(again, f"sqlite:///{tmp_path}/s.db"), again, trials)
    assert found == expected


def test_base_is_tried_first() -> None:
    sampler = BudgetSampler(ALL)
    assert search(study_with(sampler), sampler, 1) == [Candidate(BASE)]


def test_candidate_nearest_to_the_base_is_tried_first() -> None:
    larger = within("params>=50")
    sampler = BudgetSampler(larger)
    (first,) = search(study_with(sampler), sampler, 1)
    assert Candidate(BASE) not in larger.candidates
    assert first.architecture.topology == "resnet"  # a word is farther away than any number
    assert abs(first.architecture.depth - 4) <= 2


def test_trials_in_any_state_count_as_tried() -> None:
    for state in (TrialState.RUNNING, TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE):
        sampler = BudgetSampler(ALL, "random")
        study = study_with(sampler)
        trial = study.ask()
        sampler.propose(trial)
        if state == TrialState.COMPLETE:
            study.tell(trial, (0.0, 0.0))
        elif state != TrialState.RUNNING:
            study.tell(trial, state=state)
        assert sampler.remaining(study) == len(ALL) - 1, state


def test_finished_trials_after_a_running_one_are_seen() -> None:
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


def test_one_sampler_serves_two_studies() -> None:
    sampler = BudgetSampler(ALL)
    first, second = study_with(sampler), study_with(sampler)
    search(first, sampler, 5)
    assert sampler.remaining(second) == len(ALL)
    assert sampler.remaining(first) == len(ALL) - 5


def test_half_recorded_trial_is_completed_as_first_proposed(tmp_path: Path) -> None:
    whole = BudgetSampler(ALL)
    expected = search(study_with(whole), whole, 11)
    sampler = BudgetSampler(ALL)
    study = study_with(sampler, f"sqlite:///{tmp_path}/s.db")
    search(study, sampler, 10)
    study.ask().suggest_int("depth", 1, 8, log=True)  # and then its process is gone
    after = BudgetSampler(ALL)
    taken_up = study_with(after, f"sqlite:///{tmp_path}/s.db")
    assert after.propose(optuna.Trial(taken_up, taken_up.trials[-1]._trial_id)) == expected[-1]


def test_recorded_parameters_are_kept() -> None:
    sampler = BudgetSampler(ALL, "random")
    study = study_with(sampler)
    study.add_trial(optuna.create_trial(state=TrialState.RUNNING, params={"depth": 6}, distributions={
        "depth": IntDistribution(1, 8, log=True)}))  # fmt: skip
    assert sampler.propose(optuna.Trial(study, study.trials[0]._trial_id)).architecture.depth == 6


def test_enqueued_architecture_is_tried_even_twice() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    wanted = next(candidate for candidate in ALL if candidate.architecture.topology == "dca(k=4)")
    study.enqueue_trial(SPACE.members[wanted])
    assert sampler.remaining(study) == len(ALL) - 1
    assert search(study, sampler, 1) == [wanted]
    study.enqueue_trial(SPACE.members[wanted])
    assert search(study, sampler, 2) == [wanted, Candidate(BASE)]


def test_enqueued_part_of_an_architecture_is_completed() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    study.enqueue_trial({"depth": 8, "topology": "ancre"})
    (found,) = search(study, sampler, 1)
    assert (found.architecture.depth, found.architecture.topology[:5]) == (8, "ancre")


def test_parameters_outside_the_budget_are_refused() -> None:
    sampler = BudgetSampler(BAND)
    study = study_with(sampler)
    study.enqueue_trial({"depth": 8, "heads": 4, "head_dim": 16})
    with raises("infeasible", params=(("depth", 8), ("heads", 4), ("head_dim", 16))):
        sampler.propose(study.ask())
    with raises("infeasible", params=(("depth", 4),)):  # which is no whole architecture
        BudgetSampler(ALL).candidate({"depth": 4})


def test_study_with_other_topologies_is_not_continued() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    search(study, sampler, 3)
    wider = replace(SPACE, axes={**SPACE.axes, "topology": ("resnet", "dca", "ancre", "rmt")})
    after = BudgetSampler(Feasible(wider, tuple(wider)))
    with raises("mismatch", option="topology", value=("resnet", "dca", "ancre", "rmt")):
        search(study_with(after, study._storage), after, 1)


def test_axis_that_does_not_apply_cannot_be_suggested() -> None:
    sampler = BudgetSampler(ALL)
    trial = study_with(sampler).ask()
    with pytest.raises(ValueError, match=r"dca\.k"):
        trial.suggest_int("dca.k", 1, 4, log=True)


def test_axes_are_recorded_with_matching_distributions() -> None:
    sampler = BudgetSampler(ALL, "random")
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
