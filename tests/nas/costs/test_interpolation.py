"""Counts that follow from those of few architectures are those that counting gives, whatever they are made of."""

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
from search_spaces.topologies.registry import TOPOLOGIES, refusal
from toy_searches import TOYS, Search
from toy_tasks import Toy


def members(
    topology: str = "resnet", widths: tuple[int, ...] = (16,), depths: tuple[int, ...] = (1, 2, 3, 4, 6, 9)
) -> list[Architecture]:
    """16 of each width and depth, whose layers are half as wide again; in an order of their own."""
    every = [
        Architecture(depth=depth, width=width, heads=heads, head_dim=head_dim, hidden=3 * width // 2, topology=topology)
        for depth, heads, head_dim, width in product(depths, (1, 2, 4, 8), (2, 4, 8, 16), widths)
    ]
    random.Random(1).shuffle(every)
    return [one for one in every if refusal(one) is None]


class Asked:
    """A way to count, and what was asked of it."""

    def __init__(self, count: Callable[[Architecture], Counts]) -> None:
        self.asked: list[Architecture] = []
        self._count = count

    def __call__(self, architecture: Architecture) -> Counts:
        self.asked.append(architecture)
        return self._count(architecture)


def vit(architecture: Architecture) -> Counts:
    counted = count_vit(architecture, (1, 8, 8), 2, 10)
    return {"params": counted.params, "macs": counted.macs}


def test_fitted_counts_of_every_topology_equal_its_closed_form() -> None:
    with grouped() as case:
        for topology in TOPOLOGIES.names():
            with case(topology):
                every, count = members(topology, depths=(1, 2, 3, 6)), Asked(vit)
                assert dict(interpolate_counts(every, count)) == {one: vit(one) for one in every}
                assert len(set(count.asked)) == len(count.asked)


def test_few_are_counted_where_counts_are_polynomials() -> None:
    with grouped() as case:
        for topology, most in {"resnet": 15, "denseformer": 15, "dca": 15, "dca(k=2)": 29, "rmt(keys=8)": 25}.items():
            with case(topology):
                count = Asked(vit)
                dict(interpolate_counts(members(topology), count))
                assert 8 < len(count.asked) <= most


def test_widths_are_fitted_as_well() -> None:
    every, count = members(widths=(8, 16, 32), depths=(1, 2, 3, 6)), Asked(vit)
    assert dict(interpolate_counts(every, count)) == {one: vit(one) for one in every}
    assert len(count.asked) < len(every) / 4


def test_counts_that_are_no_polynomial_of_depth_are_fitted_for_each_depth() -> None:
    def by_threes(one: Architecture) -> Counts:
        return {"params": math.ceil(one.depth / 3) * one.heads * one.head_dim, "macs": 2**one.depth}

    every, count = members(), Asked(by_threes)
    assert dict(interpolate_counts(every, count)) == {one: by_threes(one) for one in every}
    assert len(count.asked) < len(every) * 0.7


NO_POLYNOMIALS: list[Callable[[Architecture], Counts]] = [
    lambda one: {"params": random.Random(one.key).randrange(10**9)},
    lambda one: {"params": one.heads**one.head_dim},
    lambda one: {"params": one.depth * one.heads + (one.depth == 6)},
    lambda one: {"params": one.depth * max(1, one.heads // 3) * one.head_dim},
    lambda one: {"params": one.depth + one.heads * (one.head_dim // 3)},
    # a term that two numbers decide about together
    lambda one: {"params": one.depth * one.heads + (one.heads > 2 * one.depth)},
    lambda one: {"params": one.depth * one.heads + (one.heads >= 4 and one.head_dim <= 4)},
    lambda one: {"params": one.depth * one.heads + (one.head_dim < one.heads)},
    lambda one: {"params": one.depth * one.heads + (one.head_dim > 8 * one.heads)},
]


def test_counts_that_are_no_polynomials_are_counted() -> None:
    with grouped() as case:
        for number, count in enumerate(NO_POLYNOMIALS):
            with case(str(number)):
                every, counted = members(depths=(1, 2, 3, 6)), Asked(count)
                assert dict(interpolate_counts(every, counted)) == {one: count(one) for one in every}


def test_sizes_bounded_by_the_width_are_counted() -> None:
    def bounded(one: Architecture) -> Counts:
        return {"params": one.depth * min(one.hidden, 4 * one.width)}

    axes = product((2, 4, 6, 8), (32, 64, 96, 128), (64, 128, 256))
    every = [Architecture(depth=depth, width=width, hidden=hidden) for depth, width, hidden in axes]
    assert dict(interpolate_counts(every, bounded)) == {one: bounded(one) for one in every}


def test_topologies_are_fitted_apart() -> None:
    every, count = [*members("resnet"), *members("denseformer"), *members("hyper(streams=2)")], Asked(vit)
    assert dict(interpolate_counts(every, count)) == {one: vit(one) for one in every}
    assert len(count.asked) < len(every) / 4
    assert dict(interpolate_counts([], vit)) == {}


class Uncounted(Toy):
    """A task whose arithmetic nobody has worked out, and that notices what is built."""

    built = 0

    def closed_form(self, architecture: Architecture) -> None:
        return None

    def build(self, architecture: Architecture):  # type: ignore[no-untyped-def]
        type(self).built += 1
        return super().build(architecture)


def test_a_budget_has_the_same_members_without_a_closed_form() -> None:
    space = SearchSpace("toys", Toy.base, {"depth": tuple(range(1, 13)), "heads": (1, 2, 3, 4, 6, 8, 12, 16)})
    budget = parse_budget(["1k<=params<=3k,macs<=4k"])
    assert list(feasible_candidates(space, Uncounted(), budget)) == list(feasible_candidates(space, Toy(), budget))
    built = Uncounted.built
    assert 0 < built < 30
    assert len(list(feasible_candidates(space, Uncounted(), parse_budget([])))) == 96
    assert Uncounted.built == built


def test_a_network_over_budget_is_not_trained() -> None:
    has = budget_counts(Toy(), Toy.base)["params"]
    job = EvaluationJob(task=f"{TOYS}:Toy", architecture=Toy.base, preset="smoke")
    job = replace(job, limits=parse_budget([f"params<={has - 1}"]))
    assert evaluate(replace(job, limits=parse_budget([f"params<={has}"]))).status == "complete"
    for profiled in (False, True):
        refused = evaluate(replace(job, profiled=profiled))
        assert (refused.status, refused.steps, refused.profile) == ("over-budget", 0, {})
        assert refused.error is not None
        assert f"params={has} " in refused.error
        assert refused.error.endswith(f" params<={has - 1}")


def test_a_search_trains_no_network_larger_than_fitted(search: Search) -> None:
    axes = ["depth=1,2,3,4,5,6", "heads=1,2,3,4,5,6", "head_dim=8", "topology=resnet"]
    size = budget_counts(Toy(), replace(Toy.base, depth=5, heads=3))["params"]
    study = search(task=f"{TOYS}:Irregular", budget=f"{size * 4 // 5}<=params<={size}", axis=axes, trials=36)
    assert len(study) > 1
    (refused,) = [row for row in study.rows() if row.status != "complete"]
    assert (refused.architecture.depth, refused.architecture.heads, refused.status) == (5, 3, "over-budget")
