"""The share of the true front's area, against a sum over strips."""

from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import numpy as np
import pytest

from expect import raises
from results.records.row import Direction
from results.stats.tabular_benchmark import TabularBenchmark
from results.stats.true_front import TrueFront
from search_spaces.architecture.architecture import Architecture
from toy_rows import LITTLE
from toy_tables import a_table, table_rows, training_row

WAYS: dict[str, Direction] = {"accuracy": "max", "flops": "min"}


def naive(table: TabularBenchmark, subset: list[Architecture]) -> float:
    """The area under test accuracy over FLOPs, strip by strip."""
    rows = [row for row in table.rows if row.status == "complete"]
    flops = sorted({float(row.costs.flops or 0) for row in rows})
    flops.append(flops[-1] + (flops[-1] - flops[0]) / 10)
    tests = [row.test["accuracy"] for row in rows]
    worst, area = min(tests) - (max(tests) - min(tests)) / 10, 0.0
    for low, high in pairwise(flops):
        within = [a for a in subset if (table.costs(a).flops or 0) <= low]
        means = [fmean(row.test["accuracy"] for row in rows if row.architecture == a) for a in within]
        area += (high - low) * max(max(means, default=worst) - worst, 0.0)
    return area


def test_share_uses_test_means() -> None:
    table = a_table(*table_rows(noise=0.1))
    whole = list(table.architectures)
    front = TrueFront(table, WAYS)
    for seed in range(5):
        draw = np.random.default_rng(seed)
        subset = [whole[i] for i in draw.permutation(len(whole))[: 3 + seed]]
        relative_hypervolume = front.relative_hypervolume(subset)
        assert relative_hypervolume == pytest.approx(naive(table, subset) / naive(table, whole))
        assert 0 <= relative_hypervolume < 1


def test_whole_table_has_share_1_and_nothing_has_share_0() -> None:
    table = a_table()
    front = TrueFront(table, WAYS)
    assert front.relative_hypervolume(table.architectures) == pytest.approx(1)
    assert front.relative_hypervolume([]) == 0
    assert front.relative_hypervolume([LITTLE]) == 0  # not in the table


def test_failed_trainings_count_for_nothing() -> None:
    big = LITTLE.with_fields({"depth": 4})
    whole = [training_row(architecture, seed) for architecture in (LITTLE, big) for seed in (0, 1)]
    failing = [*whole[:3], replace(whole[3], status="failed", error="x", metrics={}, test={})]
    front = TrueFront(a_table(*failing), WAYS)
    assert front.values[big][0] == -whole[2].test["accuracy"]
    tests, flops = ([of(row) for row in whole[:3]] for of in (lambda r: r.test["accuracy"], lambda r: r.costs.flops))
    assert front.reference.tolist() == pytest.approx([
        -min(tests) + (max(tests) - min(tests)) / 10, max(flops) + (max(flops) - min(flops)) / 10,
    ])  # fmt: skip
    pruned_rows = [*whole[:2], *(replace(row, status="pruned") for row in whole[2:])]
    assert list(TrueFront(a_table(*pruned_rows, training_row(LITTLE.with_fields({"depth": 2}), 0)), WAYS).values) == [
        LITTLE, LITTLE.with_fields({"depth": 2})]  # fmt: skip


def test_objectives_without_a_front_are_refused() -> None:
    table = a_table()
    with raises("unknown-name", option="objective", value="acuracy", nearest="accuracy"):
        TrueFront(table, {"acuracy": "max"})
    with raises("unknown-name", option="objective", value="latency_ms"):
        TrueFront(table, {"latency_ms": "min"})
    with raises("bad-data", table="toys", objectives=("accuracy", "skipped")):  # equal in all rows
        TrueFront(table, {"accuracy": "max", "skipped": "min"})


def test_true_front_needs_test_metrics() -> None:
    with raises("missing-data", option="accuracy", table="toys", needs="test_accuracy"):
        TrueFront(a_table(*(replace(row, test={}) for row in table_rows())), WAYS)


def test_extreme_point_has_a_share() -> None:
    table = a_table()
    front = TrueFront(table, WAYS)
    best = min(table.architectures, key=lambda a: front.values[a][0])
    assert table.costs(best).flops == max(table.costs(a).flops or 0 for a in table.architectures)
    assert front.relative_hypervolume([best]) > 0
    assert front.relative_hypervolume([a for a in table.architectures if a != best]) < 1
