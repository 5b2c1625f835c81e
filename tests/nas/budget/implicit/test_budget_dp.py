"""BudgetDP on real closed forms, compared with a list of all members."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.stats import chisquare

from expect import raises
from grouped import grouped
from nas.budget.bounds import Budget, feasible, parse_budget
from nas.budget.implicit.budget_dp import BudgetDP
from nas.budget.implicit.decomposition import MAX_SHAPES
from nas.costs.count import budget_counts, count
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.catalog import per_block
from search_spaces.spaces.parsing import parse_architecture
from search_spaces.spaces.space import Point, SearchSpace
from search_spaces.support.spec import Scalar
from tasks.base import Task
from tasks.load import load_task
from tasks.registry import TASKS

SMALL: dict[str, tuple[Scalar, ...]] = {
    "heads:1": (2, 4),
    "heads:2": (1, 4),
    **{f"head_dim:{block}": (8, 16) for block in range(1, 5)},
    "hidden:1": (32, 64),
    "hidden:2": (64, 160),
    "topology:1": ("resnet", "hyper", "rmt"),
    "topology:2": ("resnet", "rmt(keys=8)"),
}


def task_and_base(name: str, arch: str = "") -> tuple[Task, Architecture]:
    task = load_task(name)
    return task, parse_architecture(arch, task.base)


@cache
def digits_counts(architecture: Architecture) -> dict[str, int]:
    """Costs of digits-vit, cached for all tests: there are tens of thousands of architectures."""
    return budget_counts(task_and_base("digits-vit")[0], architecture)


def digits(
    axes: Mapping[str, tuple[Scalar, ...]] = SMALL,
) -> tuple[SearchSpace, Callable[[Architecture], dict[str, int]]]:
    return (small() if axes is SMALL else SearchSpace("small", task_and_base("digits-vit")[1], axes)), digits_counts


@cache
def small() -> SearchSpace:
    """The space of most tests, built once."""
    return SearchSpace("small", task_and_base("digits-vit")[1], SMALL)


def points_of(space: SearchSpace, counts: Callable[[Architecture], dict[str, int]], budget: Budget) -> list[Point]:
    """The points of all members, by enumeration."""
    return [space.members[candidate] for candidate in feasible(space, counts, budget)]


def key(point: Mapping[str, Scalar]) -> frozenset[tuple[str, Scalar]]:
    return frozenset(point.items())


BUDGETS = [
    "",
    "params<=36k",
    "34k<=params<=37k",
    "macs<=620k",
    "params<=36k,flops<=1.2M",
    "33k<=params<=40k,600k<=macs<=800k",
    "params>=45k",
]


@pytest.mark.parametrize("text", BUDGETS)
def test_number_members_and_draws_equal_those_of_a_list(text: str) -> None:
    space, counts = digits()
    expected = points_of(space, counts, parse_budget([text]))
    dp = BudgetDP(space, counts, parse_budget([text]))
    assert dp.number == len(expected) > 0
    random, inside = np.random.default_rng(0), {key(point) for point in expected}
    assert {key(dp.draw(random)) for _ in range(100)} <= inside
    points = [space.members[candidate] for candidate in space][::7]
    assert [dp.allows(point) for point in points] == [key(point) in inside for point in points]
    assert all((candidate in dp) == (key(space.members[candidate]) in inside) for candidate in list(space)[::97])


def test_members_and_recipes_are_drawn_uniformly() -> None:
    space, counts = digits({**SMALL, "recipe.lr": (0.1, 0.2, 0.4)})
    budget = parse_budget(["25k<=params<=26k"])
    inside = Counter({key(point): 0 for point in points_of(space, counts, budget)})
    dp, random = BudgetDP(space, counts, budget), np.random.default_rng(7)
    assert dp.number == len(inside)
    assert 50 < len(inside) < 1000
    draws = Counter(key(dp.draw(random)) for _ in range(10 * len(inside)))
    assert set(draws) <= set(inside)
    assert chisquare([draws[point] for point in inside]).pvalue > 0.001


@pytest.mark.parametrize(
    "axes",
    [
        {"depth": (2, 4, 8), "hidden:1": (32, 64), "hidden:2": (64, 96)},  # runs of blocks of several lengths
        {"topology": ("resnet", "dca", "rmt"), "dca.k": (1, 2), "head_dim:1": (4, 8), "head_dim:2": (8, 16)},
        {"heads": (2, 4), "head_dim:1": (8, 16), "head_dim:2": (8,), "topology:1": ("resnet", "rmt")},
        {"depth": (2, 4), "heads": (2, 4, 8), "recipe.lr": (0.1, 0.2)},  # blocks that are all alike
        {"topology:1": ("resnet", "ancre"), "topology:2": ("denseformer", "resnet")},
    ],
)
def test_any_kind_of_space_is_counted_exactly(axes: dict[str, tuple[Scalar, ...]]) -> None:
    space, counts = digits(axes)
    points = [space.members[candidate] for candidate in space]
    for text in ("", "params<=36k", "30k<=params<=50k,macs<=1M"):
        expected = points_of(space, counts, parse_budget([text]))
        dp = BudgetDP(space, counts, parse_budget([text]))
        assert dp.number == len(expected)
        random = np.random.default_rng(0)
        inside = set(map(key, expected))
        assert {key(dp.draw(random)) for _ in range(12 * len(expected))} == inside  # every member is drawn
        assert [dp.allows(point) for point in points] == [key(point) in inside for point in points]
        assert dp.space_size == len(points)


def test_cost_of_hidden_features_depends_on_the_topology() -> None:
    topologies = {f"topology:{run}": ("resnet", "depth-lstm") for run in (1, 2)}
    space, counts = digits({**topologies, "hidden:1": (16, 48, 64), "hidden:2": (24, 64, 96)})
    for text in ("params<=66k", "60k<=params<=70k", "params<=34k"):
        expected = points_of(space, counts, parse_budget([text]))
        assert 0 < len(expected) < len(space)
        assert BudgetDP(space, counts, parse_budget([text])).number == len(expected)


ONE_TASK_PER_MODEL = ("digits-vit", "digits-dit", "goal-point-maze", "lra-listops", "stdlib-lm", "stdlib-mlm")
"""Tasks of the default suite, one of each model; the others differ in sizes."""


@pytest.mark.parametrize(
    "names", [ONE_TASK_PER_MODEL, pytest.param(TASKS.names(), marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_draws_and_mutations_on_tasks_are_inside_the_budget(names: Sequence[str]) -> None:
    with grouped() as case:
        for name in names:
            with case(name):
                check_draws(name)


def check_draws(name: str) -> None:
    if name.startswith("goal-") and not find_spec("gymnasium_robotics"):
        return
    task, base = task_and_base(name, "depth=2")
    space, base_counts = per_block(base), budget_counts(task, base)
    budget = parse_budget(
        [f"params<={int(base_counts['params'] * 1.02)}", f"{base_counts['flops'] // 2}<=flops<={base_counts['flops']}"]
    )
    dp = BudgetDP(space, lambda architecture: budget_counts(task, architecture), budget)
    random = np.random.default_rng(0)
    for _ in range(2):
        point = dp.draw(random)
        mutation = dp.mutate(point, random)
        assert mutation is not None
        assert 1 <= sum(mutation[axis] != value for axis, value in point.items()) <= 2
        for candidate_point in (point, mutation):
            assert budget.allows(budget_counts(task, space.candidate(candidate_point).architecture))
    totals = count(task, space.candidate(point).architecture)  # this compares the counter with the closed form
    assert budget.allows({"params": totals.params or 0, "flops": totals.flops or 0})


def far_from(target: Point) -> Callable[[str, Scalar], float]:
    def distance(axis: str, value: Scalar) -> float:
        if isinstance(value, str):
            return float(value != target[axis])
        return abs(np.log(float(value) / float(target[axis]))) ** 2

    return distance


@pytest.mark.parametrize("text", BUDGETS[1:])
def test_nearest_member_equals_that_of_a_list(text: str) -> None:
    space, counts = digits()
    inside = points_of(space, counts, parse_budget([text]))
    dp = BudgetDP(space, counts, parse_budget([text]))
    points = [space.members[candidate] for candidate in space]
    for target in points[:: len(points) // 4]:
        distance = far_from(target)
        nearest = dp.nearest(distance)
        assert nearest is not None
        assert key(nearest) in set(map(key, inside))
        distances = [sum(distance(axis, value) for axis, value in point.items()) for point in (nearest, *inside)]
        assert distances[0] == pytest.approx(min(distances[1:]))


def test_member_is_its_own_nearest_in_a_huge_space() -> None:
    task, base = task_and_base("stdlib-lm", "depth=16")
    space, budget = per_block(base), parse_budget(["2M<=params<=2100k", "macs<=400M"])
    dp = BudgetDP(space, lambda architecture: budget_counts(task, architecture), budget)
    assert dp.number > 10**33
    random = np.random.default_rng(0)
    for _ in range(2):
        point = dp.draw(random)
        assert dp.nearest(far_from(point)) == point
    assert dp.nearest(far_from(space.point(space.first) or {})) is not None


def test_infeasible_budget_tells_the_range_of_costs() -> None:
    space, counts = digits()
    amounts = [counts(architecture)["params"] for architecture in space.architectures]
    with raises("infeasible", space="small", budget="params<=1000", ranges=(("params", min(amounts), max(amounts)),)):
        BudgetDP(space, counts, parse_budget(["params<=1k"]))


def test_costs_that_do_not_add_up_over_blocks_are_an_error() -> None:
    space, counts = digits()

    def odd(architecture: Architecture) -> dict[str, int]:
        return {"params": counts(architecture)["params"] + len(set(architecture.by_block("hidden")))}

    with raises("unsupported", space="small") as error:
        BudgetDP(space, odd, parse_budget(["params<=40k"]))
    assert len(set(re.findall(r"params=(\d+)", str(error.value)))) == 2  # counted, and by blocks


def test_few_costs_are_counted_and_none_without_bounds() -> None:
    space, counts = digits()
    calls: list[Architecture] = []

    def record_call(architecture: Architecture) -> dict[str, int]:
        calls.append(architecture)
        return counts(architecture)

    assert BudgetDP(space, record_call, Budget()).number == len(space)
    assert not calls
    BudgetDP(per_block(space.base), record_call, parse_budget(["params<=36k"]))
    assert len(calls) < 100


def test_size_of_a_space_does_not_depend_on_the_budget() -> None:
    for axes in (SMALL, {"depth": (2, 4, 8), "hidden:1": (32, 64)}):  # of 8 blocks all are too large
        space, counts = digits(axes)
        small = BudgetDP(space, counts, parse_budget(["params<=36k"]))
        assert small.number < small.space_size == len(space)
        assert small.space_size == BudgetDP(space, lambda architecture: {}, Budget()).number


def test_too_many_shapes_are_an_error() -> None:
    widths, hidden = tuple(range(16, 416, 4)), tuple(range(1, 301))
    space, counts = digits({"width": widths, "hidden": hidden, "heads": (1, 2, 4, 8, 16, 32, 64)})
    assert not space.is_enumerable
    with raises("too-large", space="small", most=MAX_SHAPES):
        BudgetDP(space, counts, Budget())
