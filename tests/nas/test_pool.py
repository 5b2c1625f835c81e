"""The budget-true sampler in a space that cannot be listed: what it keeps to is what it keeps to in a list."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial
from scipy.stats import chisquare

from nas.budget import parse_budget
from nas.sampling import BudgetSampler, Exhausted
from nas.sampling.axes import Coordinates
from nas.sampling.pool import Growing
from nas.unlisted.programme import Programme
from search_spaces.architecture import Architecture
from search_spaces.catalog import per_block
from search_spaces.errors import UserError
from search_spaces.space import Candidate, Point, SearchSpace
from toy_space import ONCE, QUICK, study_with

pytestmark = pytest.mark.usefixtures("quiet")

BASE = Architecture(depth=6, width=8, heads=2, head_dim=4, hidden=16)
SPACE = per_block(BASE).with_axes({"recipe.lr": (0.1, 0.2, 0.4)})


def params(architecture: Architecture) -> int:
    blocks = zip(*map(architecture.each, ("heads", "head_dim", "hidden")), strict=True)
    return sum(4 * heads * head_dim + hidden for heads, head_dim, hidden in blocks)


def within(text: str, space: SearchSpace = SPACE) -> Programme:
    return Programme(space, lambda architecture: {"params": params(architecture)}, parse_budget([text]))


BAND = within("280<=params<=300")
FEW = within(
    "params<=280",
    SearchSpace("few", BASE, {f"hidden:{n}": (8, 16) for n in range(1, 4)} | {"recipe.lr": (0.1, 0.2)}),
)


def measure(candidate: Candidate) -> tuple[float, float]:
    architecture = candidate.architecture
    slope = sum(b * hidden for b, hidden in enumerate(architecture.each("hidden")))
    return slope + 20 * architecture.topology.count("dca") + dict(candidate.settings).get("lr", 0), params(architecture)


def search(study: optuna.Study, sampler: BudgetSampler, trials: int) -> list[Candidate]:
    found = []
    for _ in range(trials):
        trial = study.ask()
        found.append(sampler.propose(trial))
        study.tell(trial, measure(found[-1]))
    return found


@pytest.mark.parametrize("inner", QUICK)
def test_every_trial_is_new_and_inside_and_is_what_is_recorded(inner: str) -> None:
    sampler = BudgetSampler(BAND, inner)
    study = study_with(sampler)
    assert sampler.remaining(study) == BAND.number > 10**9
    found = search(study, sampler, 16)
    assert found[0].architecture.topology == "resnet"  # the base is near
    assert len(set(found)) == 16
    assert all(280 <= params(candidate.architecture) <= 300 and candidate in BAND for candidate in found)
    assert [sampler.candidate(trial.params) for trial in study.trials] == found
    assert sampler.remaining(study) == BAND.number - 16


@pytest.mark.parametrize("inner", ONCE)
def test_a_space_is_searched_until_nothing_is_left(inner: str) -> None:
    sampler = BudgetSampler(FEW, inner)
    study = study_with(sampler)
    assert 8 < FEW.number < 16
    assert len(set(search(study, sampler, FEW.number))) == FEW.number
    assert sampler.remaining(study) == 0
    with pytest.raises(Exhausted):
        sampler.propose(study.ask())


def test_the_last_of_many_members_is_found() -> None:
    values = {"heads": (1, 2), "hidden": (8, 16, 32)}
    axes_of_blocks = {f"{field}:{block}": values[field] for block in range(1, 4) for field in values}
    many = within("params<=1M", SearchSpace("many", BASE, axes_of_blocks))
    sampler = BudgetSampler(many, "random")
    study = study_with(sampler)
    axes = sampler.infer_relative_search_space(study, None)  # type: ignore[arg-type]  # it is not looked at
    *others, last = (dict(zip(many.space.axes, values, strict=True)) for values in product(*many.space.axes.values()))
    assert len(others) == many.number - 1 == 215
    for point in others:
        study.add_trial(create_trial(params=point, distributions=axes, values=[0.0, 0.0]))
    assert search(study, sampler, 1) == [many.space.candidate(last)]
    assert sampler.remaining(study) == 0


@pytest.mark.parametrize("inner", QUICK)
def test_a_study_in_several_goes_is_the_study_in_one(inner: str, tmp_path: Path) -> None:
    whole = BudgetSampler(BAND, inner, seed=3)
    expected = search(study_with(whole), whole, 14)
    found = []
    for trials in (3, 7, 4):  # each with a sampler and a study of its own, as a new process has
        again = BudgetSampler(within("280<=params<=300"), inner, seed=3)
        found += search(study_with(again, f"sqlite:///{tmp_path}/s.db"), again, trials)
    assert found == expected
    other = BudgetSampler(BAND, inner, seed=4)
    assert search(study_with(other), other, 14) != expected


def test_a_trial_that_died_half_recorded_becomes_what_it_would_have_been() -> None:
    whole = BudgetSampler(BAND)
    expected = search(study_with(whole), whole, 11)
    sampler = BudgetSampler(BAND)
    study = study_with(sampler)
    search(study, sampler, 10)
    point = SPACE.point(expected[-1]) or {}
    study.enqueue_trial({"hidden:1": point["hidden:1"], "topology:2": point["topology:2"]})
    assert search(study, sampler, 1) == expected[-1:]


def test_trials_that_run_at_once_are_all_different() -> None:
    sampler = BudgetSampler(BAND)
    study = study_with(sampler)
    search(study, sampler, 9)
    together = [sampler.propose(study.ask()) for _ in range(6)]
    assert len(set(together)) == 6
    assert len({sampler.candidate(trial.params) for trial in study.trials}) == 15


def test_what_is_enqueued_is_tried_and_what_is_outside_is_refused() -> None:
    sampler = BudgetSampler(BAND)
    study = study_with(sampler)
    wanted = BAND.draw(np.random.default_rng(1))
    study.enqueue_trial(wanted)
    assert search(study, sampler, 1) == [SPACE.candidate(wanted)]
    study.enqueue_trial({"topology:2": "dca", "heads:3": 4})
    (completed,) = search(study, sampler, 1)
    assert (completed.architecture.at(2).topology, completed.architecture.at(2).heads) == ("dca", 4)
    study.enqueue_trial({f"hidden:{n}": 64 for n in range(1, 7)})
    with pytest.raises(UserError, match="no candidate within the budget has hidden:1=64"):
        sampler.propose(study.ask())
    with pytest.raises(UserError, match=r"hidden:1=4.*no candidate"):
        sampler.candidate({"hidden:1": 4})


def test_at_random_means_any_member() -> None:
    few = list(product((8, 16), repeat=3))
    space = SearchSpace("few", BASE, {f"hidden:{n}": (8, 16) for n in range(1, 4)})
    members = within("params<=1k", space)
    drawn = dict.fromkeys(few, 0)
    for seed in range(150):
        sampler = BudgetSampler(members, "random", seed)
        study = study_with(sampler)
        (second,) = search(study, sampler, 2)[1:]
        drawn[second.architecture.each("hidden")[::2]] += 1
    assert drawn.pop((16, 16, 16)) == 0  # the base, which was first
    assert chisquare(list(drawn.values())).pvalue > 0.001


@pytest.mark.parametrize("state", [TrialState.RUNNING, TrialState.FAIL])
def test_a_trial_in_any_state_counts_as_tried(state: TrialState) -> None:
    sampler = BudgetSampler(BAND, "random")
    study = study_with(sampler)
    trial = study.ask()
    sampler.propose(trial)
    if state == TrialState.FAIL:
        study.tell(trial, state=state)
    assert sampler.remaining(study) == BAND.number - 1


def place_of(point: Point) -> np.ndarray:
    return Coordinates(SPACE, {}).place(point)


def test_what_is_asked_for_by_its_place_is_the_nearest_member_and_new() -> None:
    members = [BAND.draw(np.random.default_rng(seed)) for seed in range(3)]
    here = Growing(BAND, {SPACE.candidate(point): point for point in members[:2]}, 1)
    assert here.drawn(np.arange(2)).tolist() == [0]  # the other one is a mutation of something
    random, none = np.random.default_rng(0), np.zeros(0, dtype=np.intp)
    added = here.nearest(place_of(members[2]), none, random)
    assert here.point(added) == members[2]
    assert here.is_new(added)
    assert here.nearest(place_of(members[1]), np.array([1]), random) == 1
    beside = here.nearest(place_of(members[0]), none, random)  # it was tried: one of its mutations
    assert here.is_new(beside)
    assert beside != added
    changed = [axis for axis, value in members[0].items() if here.point(beside)[axis] != value]
    assert 1 <= len(changed) <= 2


def test_blocks_that_all_move_have_moved_as_far_as_one_axis_of_all() -> None:
    alike = SearchSpace("alike", BASE, {"hidden": (8, 16, 32)})
    apart = SearchSpace("apart", BASE, {f"hidden:{n}": (8, 16, 32) for n in range(1, 7)})

    def far(space: SearchSpace, make: Callable[[int], Point]) -> float:
        coordinates = Coordinates(space, {})
        return float(np.linalg.norm(coordinates.place(make(8)) - coordinates.place(make(32))))

    whole = far(alike, lambda hidden: {"hidden": hidden})
    assert far(apart, lambda hidden: {f"hidden:{n}": hidden for n in range(1, 7)}) == pytest.approx(whole) == 1
