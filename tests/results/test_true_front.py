"""What some architectures are worth, beside a computation of another kind: by counting the cells of a fine grid."""

from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import numpy as np
import pytest

from results.row import Direction
from results.tabular import TabularBenchmark
from results.true_front import TrueFront
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from toy_rows import LITTLE
from toy_tables import a_table, recorded, trained

WAYS: dict[str, Direction] = {"accuracy": "max", "flops": "min"}


def naive(table: TabularBenchmark, chosen: list[Architecture]) -> float:
    """The area that accuracies on test and FLOPs cover: the widths of FLOPs, at the best accuracy within each."""
    rows = [row for row in table.rows if row.status == "complete"]
    flops = sorted({float(row.costs.flops or 0) for row in rows})
    flops.append(flops[-1] + (flops[-1] - flops[0]) / 10)
    tests = [row.test["accuracy"] for row in rows]
    worst, area = min(tests) - (max(tests) - min(tests)) / 10, 0.0
    for low, high in pairwise(flops):
        within = [one for one in chosen if (table.costs(one).flops or 0) <= low]
        means = [fmean(row.test["accuracy"] for row in rows if row.architecture == one) for one in within]
        area += (high - low) * max(max(means, default=worst) - worst, 0.0)
    return area


@pytest.mark.parametrize("seed", range(5))
def test_a_share_is_of_the_area_by_means_on_test(seed: int) -> None:
    table = a_table(*recorded(noise=0.1))
    every = list(table.architectures)
    draw = np.random.default_rng(seed)
    chosen = [every[i] for i in draw.permutation(len(every))[: 3 + seed]]
    share = TrueFront(table, WAYS).share(chosen)
    assert share == pytest.approx(naive(table, chosen) / naive(table, every))
    assert 0 <= share < 1


def test_the_whole_table_is_everything_and_nothing_is_nothing() -> None:
    table = a_table()
    front = TrueFront(table, WAYS)
    assert front.share(table.architectures) == pytest.approx(1)
    assert front.share([]) == 0
    assert front.share([LITTLE]) == 0  # which is not in the table


def test_failed_trainings_are_worth_nothing_and_spoil_no_mean() -> None:
    big = LITTLE.changed({"depth": 4})
    whole = [trained(one, seed) for one in (LITTLE, big) for seed in (0, 1)]
    lost = [*whole[:3], replace(whole[3], status="failed", error="x", metrics={}, test={})]
    front = TrueFront(a_table(*lost), WAYS)
    assert front.values[big][0] == -whole[2].test["accuracy"]
    tests, flops = ([one(row) for row in whole[:3]] for one in (lambda r: r.test["accuracy"], lambda r: r.costs.flops))
    assert front.reference.tolist() == pytest.approx([
        -min(tests) + (max(tests) - min(tests)) / 10, max(flops) + (max(flops) - min(flops)) / 10,
    ])  # fmt: skip
    gone = [*whole[:2], *(replace(row, status="pruned") for row in whole[2:])]
    assert list(TrueFront(a_table(*gone, trained(LITTLE.changed({"depth": 2}), 0)), WAYS).values) == [
        LITTLE, LITTLE.changed({"depth": 2})]  # fmt: skip


@pytest.mark.parametrize(
    ("objectives", "says"),
    [
        ({"acuracy": "max"}, "Did you mean 'accuracy'"),
        ({"latency_ms": "min"}, "unknown objective 'latency_ms' of table 'toys'"),
        ({"accuracy": "max", "skipped": "min"}, "nothing in table 'toys' is better"),  # of which all have as much
    ],
)
def test_what_has_no_front_is_said(objectives: dict[str, Direction], says: str) -> None:
    with pytest.raises(UserError, match=says):
        TrueFront(a_table(), objectives)


def test_validation_does_not_judge_itself() -> None:
    with pytest.raises(UserError, match="no test_accuracy: accuracy chose"):
        TrueFront(a_table(*(replace(row, test={}) for row in recorded())), WAYS)


def test_what_is_best_in_one_objective_alone_is_worth_something() -> None:
    table = a_table()
    front = TrueFront(table, WAYS)
    best = min(table.architectures, key=lambda one: front.values[one][0])
    assert table.costs(best).flops == max(table.costs(one).flops or 0 for one in table.architectures)
    assert front.share([best]) > 0
    assert front.share([one for one in table.architectures if one != best]) < 1
