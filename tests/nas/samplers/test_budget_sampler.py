"""BudgetSampler: every sampler proposes new candidates within the budget, reproducibly."""

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
def test_every_trial_is_new_and_within_the_budget_to_the_last_member(inner: str) -> None:
    sampler = BudgetSampler(BAND, inner)
    study = study_with(sampler)
    assert sampler.remaining(study) == len(BAND) > 30
    candidates = search(study, sampler, len(BAND))
    assert set(candidates) == set(BAND)
    assert sampler.remaining(study) == 0
    with pytest.raises(NoCandidates):
        sampler.propose(study.ask())


def test_gaussian_processes_of_optuna_keep_to_the_budget() -> None:
    sampler = BudgetSampler(BAND, "gp")
    candidates = search(study_with(sampler), sampler, 12)
    assert len(set(candidates) & set(BAND)) == 12


@pytest.mark.parametrize("inner", QUICK)
def test_proposals_are_recorded_and_parallel_trials_differ(inner: str) -> None:
    sampler = BudgetSampler(ALL, inner)
    study = study_with(sampler)
    candidates = search(study, sampler, 16)
    assert [trial.params for trial in study.trials] == [SPACE.members[candidate] for candidate in candidates]
    assert [sampler.candidate(trial.params) for trial in study.trials] == candidates
    parallel = [sampler.propose(study.ask()) for _ in range(10)]
    assert len(set(parallel)) == 10
    distinct = len({sampler.candidate(trial.params) for trial in study.trials})
    assert distinct == 26 if inner in ONCE else distinct > 16


@pytest.mark.parametrize("inner", QUICK)
def test_resumed_study_equals_uninterrupted_study_and_seeds_differ(inner: str) -> None:
    whole = BudgetSampler(BAND, inner, seed=3)
    expected = search(study_with(whole), whole, 22)
    storage, candidates = optuna.storages.InMemoryStorage(), []
    for trials in (5, 9, 8):  # each with a new sampler and study, as in a new process
        again = BudgetSampler(BAND, inner, seed=3)
        candidates += search(study_with(again, storage), again, trials)
    assert candidates == expected
    other = BudgetSampler(BAND, inner, seed=4)
    assert search(study_with(other), other, 8) != expected[:8]


def test_study_in_a_database_equals_study_in_memory(tmp_path: Path) -> None:
    whole = BudgetSampler(BAND, seed=3)
    expected = search(study_with(whole), whole, 11)
    candidates = []
    for trials in (8, 3):
        again = BudgetSampler(BAND, seed=3)
        candidates += search(study_with(again, f"sqlite:///{tmp_path}/s.db"), again, trials)
    assert candidates == expected


def test_base_is_tried_first() -> None:
    sampler = BudgetSampler(ALL)
    assert search(study_with(sampler), sampler, 1) == [Candidate(BASE)]


def test_candidate_nearest_to_the_base_is_tried_first() -> None:
    larger = within("params>=50")
    sampler = BudgetSampler(larger)
    (first,) = search(study_with(sampler), sampler, 1)
    assert Candidate(BASE) not in larger.candidates
    assert first.architecture.topology == "resnet"  # another topology is farther than any number
    assert abs(first.architecture.depth - 4) <= 2


def test_trials_in_any_state_are_not_proposed_again() -> None:
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


def test_finished_trials_after_a_running_one_count() -> None:
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


def test_half_recorded_trial_gets_its_first_proposal(tmp_path: Path) -> None:
    whole = BudgetSampler(ALL)
    expected = search(study_with(whole), whole, 11)
    sampler = BudgetSampler(ALL)
    study = study_with(sampler, f"sqlite:///{tmp_path}/s.db")
    search(study, sampler, 10)
    study.ask().suggest_int("depth", 1, 8, log=True)  # and then its process dies
    later = BudgetSampler(ALL)
    same_study = study_with(later, f"sqlite:///{tmp_path}/s.db")
    assert later.propose(optuna.Trial(same_study, same_study.trials[-1]._trial_id)) == expected[-1]


def test_proposal_keeps_recorded_parameters() -> None:
    sampler = BudgetSampler(ALL, "random")
    study = study_with(sampler)
    study.add_trial(optuna.create_trial(state=TrialState.RUNNING, params={"depth": 6}, distributions={
        "depth": IntDistribution(1, 8, log=True)}))  # fmt: skip
    assert sampler.propose(optuna.Trial(study, study.trials[0]._trial_id)).architecture.depth == 6


def test_enqueued_architecture_is_tried_even_twice() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    target = next(candidate for candidate in ALL if candidate.architecture.topology == "dca(k=4)")
    study.enqueue_trial(SPACE.members[target])
    assert sampler.remaining(study) == len(ALL) - 1
    assert search(study, sampler, 1) == [target]
    study.enqueue_trial(SPACE.members[target])
    assert search(study, sampler, 2) == [target, Candidate(BASE)]


def test_proposal_completes_an_enqueued_part() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    study.enqueue_trial({"depth": 8, "topology": "ancre"})
    (candidate,) = search(study, sampler, 1)
    assert (candidate.architecture.depth, candidate.architecture.topology[:5]) == (8, "ancre")


def test_parameters_outside_the_budget_are_an_error() -> None:
    sampler = BudgetSampler(BAND)
    study = study_with(sampler)
    study.enqueue_trial({"depth": 8, "heads": 4, "head_dim": 16})
    with raises("infeasible", params=(("depth", 8), ("heads", 4), ("head_dim", 16))):
        sampler.propose(study.ask())
    with raises("infeasible", params=(("depth", 4),)):  # not a whole architecture
        BudgetSampler(ALL).candidate({"depth": 4})


def test_study_with_other_topologies_is_an_error() -> None:
    sampler = BudgetSampler(ALL)
    study = study_with(sampler)
    search(study, sampler, 3)
    wider = replace(SPACE, axes={**SPACE.axes, "topology": ("resnet", "dca", "ancre", "rmt")})
    later = BudgetSampler(Feasible(wider, tuple(wider)))
    with raises("mismatch", option="topology", value=("resnet", "dca", "ancre", "rmt")):
        search(study_with(later, study._storage), later, 1)


def test_suggestion_of_an_axis_that_does_not_apply_is_an_error() -> None:
    sampler = BudgetSampler(ALL)
    trial = study_with(sampler).ask()
    with pytest.raises(ValueError, match=r"dca\.k"):
        trial.suggest_int("dca.k", 1, 4, log=True)


def test_axes_are_recorded_with_matching_distributions() -> None:
    sampler = BudgetSampler(ALL, "random")
    study = study_with(sampler)
    search(study, sampler, 40)
    distributions = {name: kind for trial in study.trials for name, kind in trial.distributions.items()}
    assert distributions == {
        "depth": IntDistribution(1, 8, log=True),
        "heads": IntDistribution(1, 4, log=True),
        "head_dim": IntDistribution(2, 16, log=True),
        "topology": CategoricalDistribution(("resnet", "dca", "ancre")),
        "dca.k": IntDistribution(1, 4, log=True),
        "ancre.temperature": FloatDistribution(0.01, 1.0, log=True),
    }
