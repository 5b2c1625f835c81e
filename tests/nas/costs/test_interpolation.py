"""Interpolated counts equal those of the counter, whatever the formula."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product

from grouped import grouped
from nas.budget.bounds import parse_budget
from nas.budget.feasibility import feasible_candidates
from nas.costs.count import budget_counts
from nas.costs.interpolation import Counts, interpolate_counts
from nas.evaluation.evaluate import evaluate
from nas.request.job import EvaluationJob
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.vit import count_vit
from search_spaces.spaces.space import SearchSpace
from search_spaces.topologies.registry import TOPOLOGIES, incompatibility_reason
from toy_searches import TOYS, Search
from toy_tasks import Toy


def members(
    topology: str = "resnet", widths: tuple[int, ...] = (16,), depths: tuple[int, ...] = (1, 2, 3, 4, 6, 9)
) -> list[Architecture]:
    """16 architectures of each width and depth, in random order; hidden is 1.5 times the width."""
    archs = [
        Architecture(depth=depth, width=width, heads=heads, head_dim=head_dim, hidden=3 * width // 2, topology=topology)
        for depth, heads, head_dim, width in product(depths, (1, 2, 4, 8), (2, 4, 8, 16), widths)
    ]
    random.Random(1).shuffle(archs)
    return [arch for arch in archs if incompatibility_reason(arch) is None]


class CallRecorder:
    """A count function that records its calls."""

    def __init__(self, count: Callable[[Architecture], Counts]) -> None:
        self.calls: list[Architecture] = []
        self._count = count

    def __call__(self, architecture: Architecture) -> Counts:
        self.calls.append(architecture)
        return self._count(architecture)


def vit(architecture: Architecture) -> Counts:
    costs = count_vit(architecture, (1, 8, 8), 2, 10)
    return {"params": costs.params, "macs": costs.macs}


def test_fitted_counts_of_every_topology_equal_its_closed_form() -> None:
    with grouped() as case:
        for topology in TOPOLOGIES.names():
            with case(topology):
                archs, count = members(topology, depths=(1, 2, 3, 6)), CallRecorder(vit)
                assert dict(interpolate_counts(archs, count)) == {arch: vit(arch) for arch in archs}
                assert len(set(count.calls)) == len(count.calls)


def test_polynomial_counts_need_few_calls() -> None:
    with grouped() as case:
        for topology, most in {"resnet": 15, "denseformer": 15, "dca": 15, "dca(k=2)": 29, "rmt(keys=8)": 25}.items():
            with case(topology):
                count = CallRecorder(vit)
                dict(interpolate_counts(members(topology), count))
                assert 8 < len(count.calls) <= most


def test_fit_includes_widths() -> None:
    archs, count = members(widths=(8, 16, 32), depths=(1, 2, 3, 6)), CallRecorder(vit)
    assert dict(interpolate_counts(archs, count)) == {arch: vit(arch) for arch in archs}
    assert len(count.calls) < len(archs) / 4


def test_counts_that_are_no_polynomial_of_depth_are_fitted_for_each_depth() -> None:
    def by_threes(arch: Architecture) -> Counts:
        return {"params": math.ceil(arch.depth / 3) * arch.heads * arch.head_dim, "macs": 2**arch.depth}

    archs, count = members(), CallRecorder(by_threes)
    assert dict(interpolate_counts(archs, count)) == {arch: by_threes(arch) for arch in archs}
    assert len(count.calls) < len(archs) * 0.7


NO_POLYNOMIALS: list[Callable[[Architecture], Counts]] = [
    lambda arch: {"params": random.Random(arch.key).randrange(10**9)},
    lambda arch: {"params": arch.heads**arch.head_dim},
    lambda arch: {"params": arch.depth * arch.heads + (arch.depth == 6)},
    lambda arch: {"params": arch.depth * max(1, arch.heads // 3) * arch.head_dim},
    lambda arch: {"params": arch.depth + arch.heads * (arch.head_dim // 3)},
    # terms that depend on two fields together
    lambda arch: {"params": arch.depth * arch.heads + (arch.heads > 2 * arch.depth)},
    lambda arch: {"params": arch.depth * arch.heads + (arch.heads >= 4 and arch.head_dim <= 4)},
    lambda arch: {"params": arch.depth * arch.heads + (arch.head_dim < arch.heads)},
    lambda arch: {"params": arch.depth * arch.heads + (arch.head_dim > 8 * arch.heads)},
]


def test_counts_that_are_no_polynomials_come_from_the_counter() -> None:
    with grouped() as case:
        for number, count in enumerate(NO_POLYNOMIALS):
            with case(str(number)):
                archs, recorder = members(depths=(1, 2, 3, 6)), CallRecorder(count)
                assert dict(interpolate_counts(archs, recorder)) == {arch: count(arch) for arch in archs}


def test_counts_of_sizes_within_the_width_are_exact() -> None:
    def hidden_within_width(arch: Architecture) -> Counts:
        return {"params": arch.depth * min(arch.hidden, 4 * arch.width)}

    axes = product((2, 4, 6, 8), (32, 64, 96, 128), (64, 128, 256))
    archs = [Architecture(depth=depth, width=width, hidden=hidden) for depth, width, hidden in axes]
    assert dict(interpolate_counts(archs, hidden_within_width)) == {arch: hidden_within_width(arch) for arch in archs}


def test_each_topology_has_its_own_fit() -> None:
    archs, count = [*members("resnet"), *members("denseformer"), *members("hyper(streams=2)")], CallRecorder(vit)
    assert dict(interpolate_counts(archs, count)) == {arch: vit(arch) for arch in archs}
    assert len(count.calls) < len(archs) / 4
    assert dict(interpolate_counts([], vit)) == {}


class WithoutClosedForm(Toy):
    """A task without a closed form that counts its builds."""

    builds = 0

    def closed_form(self, architecture: Architecture) -> None:
        return None

    def build(self, architecture: Architecture):  # type: ignore[no-untyped-def]
        type(self).builds += 1
        return super().build(architecture)


def test_a_budget_has_the_same_members_without_a_closed_form() -> None:
    space = SearchSpace("toys", Toy.base, {"depth": tuple(range(1, 13)), "heads": (1, 2, 3, 4, 6, 8, 12, 16)})
    budget = parse_budget(["1k<=params<=3k,macs<=4k"])
    assert list(feasible_candidates(space, WithoutClosedForm(), budget)) == list(
        feasible_candidates(space, Toy(), budget)
    )
    builds = WithoutClosedForm.builds
    assert 0 < builds < 30
    assert len(list(feasible_candidates(space, WithoutClosedForm(), parse_budget([])))) == 96
    assert WithoutClosedForm.builds == builds


def test_a_network_over_budget_gets_no_training() -> None:
    size = budget_counts(Toy(), Toy.base)["params"]
    job = EvaluationJob(task=f"{TOYS}:Toy", architecture=Toy.base, preset="smoke")
    job = replace(job, limits=parse_budget([f"params<={size - 1}"]))
    assert evaluate(replace(job, limits=parse_budget([f"params<={size}"]))).status == "complete"
    for profile in (False, True):
        row = evaluate(replace(job, profiled=profile))
        assert (row.status, row.steps, row.profile) == ("over-budget", 0, {})
        assert row.error is not None
        assert f"params={size} " in row.error
        assert row.error.endswith(f" params<={size - 1}")


def test_a_search_trains_no_network_over_its_real_size(search: Search) -> None:
    axes = ["depth=1,2,3,4,5,6", "heads=1,2,3,4,5,6", "head_dim=8", "topology=resnet"]
    size = budget_counts(Toy(), replace(Toy.base, depth=5, heads=3))["params"]
    study = search(task=f"{TOYS}:Irregular", budget=f"{size * 4 // 5}<=params<={size}", axis=axes, trials=36)
    assert len(study) > 1
    (row,) = [row for row in study.rows() if row.status != "complete"]
    assert (row.architecture.depth, row.architecture.heads, row.status) == (5, 3, "over-budget")
