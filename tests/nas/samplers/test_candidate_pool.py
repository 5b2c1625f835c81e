"""BudgetSampler in a space that is too large to list."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial
from scipy.stats import chisquare

from expect import raises
from nas.budget.bounds import parse_budget
from nas.budget.implicit.budget_dp import BudgetDP
from nas.samplers.budget_sampler import BudgetSampler, NoCandidates
from nas.samplers.candidate_pool import MemberPool
from nas.samplers.encoding import CandidateEncoding
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.catalog import per_block
from search_spaces.spaces.space import Candidate, Point, SearchSpace
from toy_space import ONCE, QUICK, study_with

pytestmark = pytest.mark.usefixtures("quiet", "small_pools")

BASE = Architecture(depth=4, width=8, heads=2, head_dim=4, hidden=16)
THREE_RUNS = replace(BASE, depth=6)
"""An architecture with three runs of blocks."""

SPACE = per_block(BASE).with_axes({"recipe.lr": (0.1, 0.2, 0.4)})


def params(architecture: Architecture) -> int:
    blocks = zip(*map(architecture.by_block, ("heads", "head_dim", "hidden")), strict=True)
    return sum(4 * heads * head_dim + hidden for heads, head_dim, hidden in blocks)


def within(text: str, space: SearchSpace = SPACE) -> BudgetDP:
    return BudgetDP(space, lambda architecture: {"params": params(architecture)}, parse_budget([text]))


BAND = within("185<=params<=200")
FEW = within(
    "params<=280",
    SearchSpace("few", THREE_RUNS, {f"hidden:{n}": (8, 16) for n in range(1, 4)} | {"recipe.lr": (0.1, 0.2)}),
)


@pytest.fixture
def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small pools: drawing them takes most of the time of these tests."""
    monkeypatch.setattr("nas.samplers.candidate_pool.RANDOM_MEMBERS", 15)
    monkeypatch.setattr("nas.samplers.candidate_pool.MUTATIONS", 25)


def measure(candidate: Candidate) -> tuple[float, float]:
    architecture = candidate.architecture
    slope = sum(b * hidden for b, hidden in enumerate(architecture.by_block("hidden")))
    return slope + 20 * architecture.topology.count("dca") + dict(candidate.settings).get("lr", 0), params(architecture)


def search(study: optuna.Study, sampler: BudgetSampler, trials: int) -> list[Candidate]:
    candidates = []
    for _ in range(trials):
        trial = study.ask()
        candidates.append(sampler.propose(trial))
        study.tell(trial, measure(candidates[-1]))
    return candidates


@pytest.mark.parametrize("inner", ONCE)
def test_search_ends_after_every_member(inner: str) -> None:
    sampler = BudgetSampler(FEW, inner)
    study = study_with(sampler)
    assert 8 < FEW.number < 16
    assert len(set(search(study, sampler, FEW.number))) == FEW.number
    assert sampler.remaining(study) == 0
    with pytest.raises(NoCandidates):
        sampler.propose(study.ask())


def test_search_proposes_the_last_member() -> None:
    values = {"heads": (1, 2), "hidden": (8, 16, 32)}
    axes_of_blocks = {f"{field}:{block}": values[field] for block in range(1, 4) for field in values}
    many = within("params<=1M", SearchSpace("many", THREE_RUNS, axes_of_blocks))
    sampler = BudgetSampler(many, "random")
    study = study_with(sampler)
    axes = sampler.infer_relative_search_space(study, None)  # type: ignore[arg-type]  # unused
    *points, last = (dict(zip(many.space.axes, values, strict=True)) for values in product(*many.space.axes.values()))
    assert len(points) == many.number - 1 == 215
    for point in points:
        study.add_trial(create_trial(params=point, distributions=axes, values=[0.0, 0.0]))
    assert search(study, sampler, 1) == [many.space.candidate(last)]
    assert sampler.remaining(study) == 0


@pytest.fixture(scope="module")
def same_members() -> BudgetDP:
    """The same members, as in another process."""
    return within("185<=params<=200")


@pytest.mark.parametrize("inner", QUICK)
def test_trials_are_new_and_within_the_budget_and_studies_resume(
    inner: str, same_members: BudgetDP, tmp_path: Path
) -> None:
    sampler = BudgetSampler(BAND, inner, seed=3)
    study = study_with(sampler)
    assert sampler.remaining(study) == BAND.number > 10**6
    expected = search(study, sampler, 12)
    assert expected[0].architecture.topology == "resnet"  # the base is near
    assert len(set(expected)) == 12
    assert all(185 <= params(candidate.architecture) <= 200 and candidate in BAND for candidate in expected)
    assert [sampler.candidate(trial.params) for trial in study.trials] == expected
    assert sampler.remaining(study) == BAND.number - 12
    candidates = []
    storage = f"sqlite:///{tmp_path}/s.db" if inner == "random" else optuna.storages.InMemoryStorage()
    for trials in (3, 6, 3):  # each with a new sampler and study, as in a new process
        again = BudgetSampler(same_members, inner, seed=3)
        candidates += search(study_with(again, storage), again, trials)
    assert candidates == expected
    other = BudgetSampler(BAND, inner, seed=4)
    assert search(study_with(other), other, 4) != expected[:4]


def test_half_recorded_trial_gets_its_first_proposal() -> None:
    whole = BudgetSampler(BAND)
    expected = search(study_with(whole), whole, 11)
    sampler = BudgetSampler(BAND)
    study = study_with(sampler)
    search(study, sampler, 10)
    point = SPACE.point(expected[-1]) or {}
    study.enqueue_trial({"hidden:1": point["hidden:1"], "topology:2": point["topology:2"]})
    assert search(study, sampler, 1) == expected[-1:]


def test_parallel_trials_are_all_different() -> None:
    sampler = BudgetSampler(BAND)
    study = study_with(sampler)
    search(study, sampler, 9)
    parallel = [sampler.propose(study.ask()) for _ in range(6)]
    assert len(set(parallel)) == 6
    assert len({sampler.candidate(trial.params) for trial in study.trials}) == 15


def test_enqueued_point_must_be_within_the_budget() -> None:
    sampler = BudgetSampler(BAND)
    study = study_with(sampler)
    point = BAND.draw(np.random.default_rng(1))
    study.enqueue_trial(point)
    assert search(study, sampler, 1) == [SPACE.candidate(point)]
    study.enqueue_trial({"topology:2": "dca", "heads:3": 4})
    (candidate,) = search(study, sampler, 1)
    assert (candidate.architecture.at_block(2).topology, candidate.architecture.at_block(2).heads) == ("dca", 4)
    for value in (8, 16):  # some members of the pool have it
        study.enqueue_trial({"hidden:1": value})
        (candidate,) = search(study, sampler, 1)
        assert candidate.architecture.at_block(0).hidden == value
    study.enqueue_trial({f"hidden:{n}": 64 for n in range(1, 5)})
    with raises("infeasible", params=tuple((f"hidden:{n}", 64) for n in range(1, 5))):
        sampler.propose(study.ask())
    with raises("infeasible", params=(("hidden:1", 4),)):
        sampler.candidate({"hidden:1": 4})


def test_random_sampler_draws_members_uniformly() -> None:
    choices = list(product((8, 16), repeat=3))
    space = SearchSpace("few", THREE_RUNS, {f"hidden:{n}": (8, 16) for n in range(1, 4)})
    members = within("params<=1k", space)
    counts = dict.fromkeys(choices, 0)
    for seed in range(100):
        sampler = BudgetSampler(members, "random", seed)
        study = study_with(sampler)
        axes = sampler.infer_relative_search_space(study, None)  # type: ignore[arg-type]  # unused
        base = space.point(space.first) or {}
        study.add_trial(create_trial(params=base, distributions=axes, values=[0.0, 0.0]))
        (second,) = search(study, sampler, 1)
        counts[second.architecture.by_block("hidden")[::2]] += 1
    assert counts.pop((16, 16, 16)) == 0  # the base was first
    assert chisquare(list(counts.values())).pvalue > 0.001


def test_running_and_failed_trials_are_not_proposed_again() -> None:
    sampler = BudgetSampler(BAND, "random")
    study = study_with(sampler)
    trial = study.ask()
    sampler.propose(trial)
    assert sampler.remaining(study) == BAND.number - 1
    study.tell(trial, state=TrialState.FAIL)
    assert sampler.remaining(study) == BAND.number - 1


def coordinates_of(point: Point) -> np.ndarray:
    return CandidateEncoding(SPACE, {}).encode(point)


def test_nearest_member_to_a_place_is_new() -> None:
    members = [BAND.draw(np.random.default_rng(seed)) for seed in range(3)]
    pool = MemberPool(BAND, {SPACE.candidate(point): point for point in members[:2]}, 1)
    assert pool.random_members(np.arange(2)).tolist() == [0]  # the other is a mutation
    random, none = np.random.default_rng(0), np.zeros(0, dtype=np.intp)
    new_member = pool.nearest(coordinates_of(members[2]), none, random)
    assert pool.point(new_member) == members[2]
    assert pool.is_new(new_member)
    assert pool.nearest(coordinates_of(members[1]), np.array([1]), random) == 1
    neighbour = pool.nearest(coordinates_of(members[0]), none, random)  # already a trial: one of its mutations
    assert pool.is_new(neighbour)
    assert neighbour != new_member
    axes = [axis for axis, value in members[0].items() if pool.point(neighbour)[axis] != value]
    assert 1 <= len(axes) <= 2


def test_distance_over_all_blocks_equals_distance_over_one_shared_axis() -> None:
    alike = SearchSpace("alike", BASE, {"hidden": (8, 16, 32)})
    apart = SearchSpace("apart", BASE, {f"hidden:{n}": (8, 16, 32) for n in range(1, 5)})

    def distance(space: SearchSpace, make: Callable[[int], Point]) -> float:
        coordinates = CandidateEncoding(space, {})
        return float(np.linalg.norm(coordinates.encode(make(8)) - coordinates.encode(make(32))))

    expected = distance(alike, lambda hidden: {"hidden": hidden})
    assert distance(apart, lambda hidden: {f"hidden:{n}": hidden for n in range(1, 5)}) == pytest.approx(expected) == 1
