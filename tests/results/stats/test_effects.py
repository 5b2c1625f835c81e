"""Effects of an axis, against computations without least squares."""

from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau
from scipy.stats import t as student

from expect import raises
from results.stats.effects import Effects, agreement, comparable, effects, plain_names
from results.stats.intervals import interval

RANDOM = np.random.default_rng(0)


def line(topology: str, depth: int, seed: int, accuracy: float, **more: Any) -> dict[str, Any]:
    shape = {"topology": topology, "depth": depth, "width": 32, "hidden": 64, "heads": 4, "head_dim": 8}
    return {"task": "t", "status": "complete", "seed": seed, "accuracy": accuracy, **shape, **more}


def effects_by_value(lines: list[dict[str, Any]], **how: Any) -> dict[Any, dict[str, Any]]:
    table = effects(lines, how.pop("axis", "topology"), "accuracy", how.pop("direction", "max"), **how)
    return {record["value"]: record for record in table.records()}


def test_one_shape_pairs_differences_by_seed() -> None:
    of_seed = [0.0, 3.0, -5.0]  # much larger than the effect, and equal for both
    noise = [0.01, -0.02, 0.03]
    plain = [line("resnet", 2, seed, of_seed[seed]) for seed in range(3)]
    other = [line("dca", 2, seed, 0.5 + of_seed[seed] + noise[seed]) for seed in range(3)]
    records = effects_by_value([*plain, *other])
    low, high = interval([0.5 + off for off in noise], 1)
    assert records["dca"]["difference"] == pytest.approx(0.5 + fmean(noise))
    assert (records["dca"]["low"], records["dca"]["high"]) == (pytest.approx(low), pytest.approx(high))
    assert records["dca"]["verdict"] == "better"
    assert records["resnet"] == {
        "value": "resnet",
        "n": 3,
        "mean": pytest.approx(-2 / 3),
        "difference": 0.0,
    } | dict.fromkeys(("low", "high", "verdict"))
    assert effects_by_value([*plain, *other], direction="min")["dca"]["verdict"] == "worse"
    alone = line("dca", 4, 0, 9.0)  # a shape without other rows
    assert effects_by_value([*plain, *other, alone]) == records


def test_several_shapes_compare_means_over_seeds_within_each_shape() -> None:
    means = {key: RANDOM.normal() for key in product(("resnet", "dca", "ancre"), (1, 2, 4))}
    lines = [
        line(topology, depth, seed, 10 * depth + value + off * len(topology))
        for (topology, depth), value in means.items()
        for seed, off in enumerate((-0.1, 0.1))
    ]
    records = effects_by_value(lines)
    for topology in ("dca", "ancre"):
        differences = [means[topology, depth] - means["resnet", depth] for depth in (1, 2, 4)]
        assert records[topology]["difference"] == pytest.approx(fmean(differences))
        assert records[topology]["n"] == 3
    residuals = [
        value
        - fmean(means[topology, other] for other in (1, 2, 4))
        - fmean(means[other, depth] for other in ("resnet", "dca", "ancre"))
        + fmean(means.values())
        for (topology, depth), value in means.items()
    ]
    variance = sum(off**2 for off in residuals) / 4  # nine architectures, three topologies, three depths
    reach = student.ppf(1 - 0.05 / 2 / 2, 4) * np.sqrt(variance * 2 / 3)
    assert records["dca"]["high"] - records["dca"]["difference"] == pytest.approx(reach)


def test_values_missing_in_some_shapes_are_compared_through_others() -> None:
    of_depth, of_topology = {1: 0.0, 2: 5.0, 4: 7.0}, {"resnet": 0.0, "dca": 1.0, "ancre": -2.0}
    cells = [("resnet", 1), ("dca", 1), ("dca", 2), ("ancre", 2), ("ancre", 4), ("resnet", 4)]
    records = effects_by_value([line(name, depth, 0, of_depth[depth] + of_topology[name]) for name, depth in cells])
    assert {name: record["difference"] for name, record in records.items()} == pytest.approx(of_topology)


def test_values_that_share_no_shape_are_left_out_and_listed() -> None:
    lines = [line("resnet", 1, 0, 0.1), line("dca", 1, 0, 0.2), line("ancre", 2, 0, 0.3), line("none", 2, 0, 0.4)]
    table = effects([*lines, line("rmt", 4, 0, 0.9)], "topology", "accuracy", "max")
    assert (table.values, table.incomparable, table.degrees_of_freedom) == (
        ("resnet", "dca"),
        ("ancre", "none", "rmt"),
        0,
    )
    with raises("missing-rows", axis="topology", metric="accuracy", at=None, values=2):
        effects([lines[0], lines[2]], "topology", "accuracy", "max")
    assert effects(lines[2:], "topology", "accuracy", "max").values == ("ancre", "none")


def test_sizes_group_rows_unless_they_match_costs() -> None:
    same_cost = [line("resnet", 1, 0, 0.1), line("dca", 1, 0, 0.3, hidden=50, recipe_lr=2e-3)]
    assert effects_by_value([{"recipe_lr": 1e-3, **row} for row in same_cost])["dca"]["difference"] == pytest.approx(
        0.2
    )
    sizes = [
        line(name, 1, 0, value + hidden, hidden=hidden)
        for name, hidden, value in (("resnet", 32, 0.1), ("resnet", 64, 0.1), ("dca", 64, 0.3))
    ]
    assert effects_by_value(sizes)["dca"]["difference"] == pytest.approx(0.2)
    rates = [{**row, "recipe_lr": row["hidden"], "hidden": 64} for row in sizes]
    assert effects_by_value(rates)["dca"]["difference"] == pytest.approx(0.2)


def test_topologies_may_have_their_own_size_and_rate_at_two_training_lengths() -> None:
    """One table of one recipe, and one with equal costs and tuned rates."""
    plain = [
        line(name, 1, s, v, recipe_lr=1e-3, recipe_epochs=9)
        for s in (0, 1)
        for name, v in (("resnet", 0.5), ("dca", 0.6))
    ]
    long = [
        line(name, 1, s, v, hidden=hidden, recipe_lr=rate, recipe_epochs=3)
        for s in (0, 1)
        for name, hidden, rate, v in (("resnet", 64, 1e-3, 0.3), ("dca", 60, 2e-3, 0.4), ("rmt", 50, 3e-3, 0.1))
    ]
    records = effects_by_value([*plain, *long])
    assert {name: row["difference"] for name, row in records.items()} == pytest.approx(
        {"resnet": 0, "dca": 0.1, "rmt": -0.2}
    )
    assert {name: row["n"] for name, row in records.items()} == {"resnet": 2, "dca": 2, "rmt": 1}


def test_equal_cost_takes_out_what_the_cost_explains() -> None:
    def lines() -> Any:
        for depth, heads, topology in product((1, 2, 4), (2, 4, 8, 16), ("resnet", "dca", "rmt")):
            flops = 1000 * depth * heads ** (1 + 0.1 * depth)
            of_topology = {"resnet": 0.0, "dca": 0.3, "rmt": -2.0}[topology]
            value = 0.2 * np.log(flops) - 0.01 * np.log(flops) ** 2 + 0.05 * depth + of_topology
            if (topology, depth) not in {("rmt", 4), ("dca", 1)}:  # else depth and topology would be independent
                yield line(topology, depth, 0, value, heads=heads, flops=flops)

    records = effects_by_value([*lines()], axis="depth", at="flops")
    assert {depth: records[depth]["difference"] for depth in records} == pytest.approx({1: 0.0, 2: 0.05, 4: 0.15})
    deep = [row for row in lines() if row["depth"] == 2]
    over = effects_by_value(deep, axis="topology", at="flops")
    assert (over["dca"]["difference"], over["rmt"]["difference"]) == (pytest.approx(0.3), pytest.approx(-2.0))


def test_equal_cost_of_one_shape_pairs_differences_by_seed() -> None:
    noise = {"resnet": (0.1, 3.1, -5.2), "dca": (0.6, 3.7, -4.9), "rmt": (0.2, 3.0, -5.0)}  # mainly by seed
    lines = [line(name, 2, seed, value, flops=1000) for name, row in noise.items() for seed, value in enumerate(row)]
    records, plain = effects_by_value(lines, at="flops"), effects_by_value(lines)
    for name, column in product(("dca", "rmt"), ("difference", "low", "high", "n")):
        assert records[name][column] == pytest.approx(plain[name][column])
    assert records["dca"]["verdict"] == "better"


def test_differences_by_rounding_alone_are_zero() -> None:
    lines = [
        line(name, 2, seed, 1e6 + more + 1e-8 * RANDOM.normal())
        for name, more in (("resnet", 0), ("dca", 0), ("rmt", 500))
        for seed in range(3)
    ]
    records = effects_by_value(lines)
    assert {name: records[name]["difference"] for name in ("dca", "rmt")} == {"dca": 0, "rmt": pytest.approx(500)}
    assert [records[name]["verdict"] for name in ("dca", "rmt")] == ["not distinguishable", "better"]
    assert records["rmt"]["low"] == records["rmt"]["high"] == records["rmt"]["difference"]


def test_too_few_rows_at_equal_cost_are_refused() -> None:
    lines = [line(name, 2, 0, 0.5, flops=flops) for name, flops in (("resnet", 1000), ("dca", 2000))]
    with raises("missing-rows", axis="topology", metric="accuracy", at="flops", values=2):
        effects_by_value(lines, at="flops")


def test_incomplete_rows_and_rows_without_a_number_take_no_part() -> None:
    lines = [line("resnet", 1, 0, 0.1), line("dca", 1, 0, 0.2), line("dca", 1, 1, 0.9) | {"status": "pruned"}]
    lines += [line("resnet", 1, 1, float("nan")), line("resnet", 1, 2, 0.1) | {"accuracy": None}]
    records = effects_by_value(lines)
    assert records["dca"]["difference"] == pytest.approx(0.1)
    assert (records["dca"]["n"], records["dca"]["low"], records["dca"]["verdict"]) == (1, None, None)


def orders(values: dict[str, float], direction: str = "max", spread: float = 0.01) -> Any:
    lines = [
        line(name, depth, 0, value + depth + spread * RANDOM.normal())
        for name, value in values.items()
        for depth in (1, 2, 3)
    ]
    return effects(lines, "topology", "accuracy", direction)  # type: ignore[arg-type]


def test_agreement_is_kendalls_tau_of_common_values() -> None:
    first = {name: RANDOM.normal() for name in ("resnet", "dca", "ancre", "rmt", "hyper")}
    other = {name: RANDOM.normal() for name in (*first, "mhc")}
    tau = kendalltau([*first.values()], [other[name] for name in first]).statistic
    tau_record = agreement(orders(first), orders(other))
    assert tau_record is not None
    assert (tau_record["values"], tau_record["tau"]) == (5, pytest.approx(tau))
    assert tau_record["low"] - 1e-9 <= tau <= tau_record["high"] + 1e-9
    reversed_by_direction = agreement(orders(first), orders(other, "min"))
    assert reversed_by_direction is not None
    assert reversed_by_direction["tau"] == pytest.approx(-tau)


def test_values_that_differ_by_rounding_are_ties() -> None:
    values = {"resnet": 0.0, "dca": 0.3, "dca(k=2)": 0.3 + 1e-13, "rmt": 0.7, "hyper": -0.4}
    distinct = orders({**values, "dca(k=2)": 0.4}, spread=0.0)
    for scale in (1.0, 1e6):
        tied = orders({name: scale * value for name, value in values.items()}, spread=0.0)
        tau_record = agreement(tied, distinct)
        assert tau_record is not None
        assert (tau_record["tau"], tau_record["low"], tau_record["high"]) == pytest.approx((0.9, 0.9, 0.9))  # 9 of 10


def test_noise_widens_the_interval_of_tau() -> None:
    values = {name: float(place) for place, name in enumerate(("resnet", "dca", "ancre", "rmt", "hyper"))}
    sure, unsure = (agreement(orders(values, spread=s), orders(values, spread=s)) for s in (0.001, 3.0))
    assert sure is not None
    assert unsure is not None
    assert (sure["tau"], sure["low"], sure["high"]) == (1, 1, 1)
    assert unsure["high"] - unsure["low"] > 0.5


def test_topologies_with_other_options_match_where_each_stands_once() -> None:
    first = orders({"resnet": 0, "dca(k=2)": 1, "hyper(streams=2)": 2, "hyper(streams=4)": 3})
    tau_record = agreement(first, orders({"resnet": 0, "dca": 1, "hyper": 2, "ancre": 4, "hyper(streams=4)": 3}))
    assert tau_record is not None
    assert tau_record["values"] == 3
    assert agreement(first, orders({"resnet": 0, "dca(k=2)": 1, "hyper": 2})) is None
    pair = agreement(first, orders({"resnet": 2, "dca": 9, "dca(k=2)": 3, "hyper(streams=2)": 4}))
    assert pair is not None
    assert (pair["values"], pair["tau"]) == (3, 1)  # dca(k=2) matches dca(k=2)


def test_topology_of_some_blocks_keeps_its_name() -> None:
    values = ["resnet", "dca(k=2)[:2]+resnet", "rmt(keys=32)", 4]
    assert plain_names(values) == ["resnet", "dca(k=2)[:2]+resnet", "rmt", 4]


def test_groups_of_one_task_are_named_by_what_differs() -> None:
    rows = [
        {"task": "a", "preset": "smoke", "data": "x"},
        {"task": "a", "preset": "proxy", "data": "x"},
        {"task": "b", "preset": "proxy", "data": "y"},
        {"task": "b", "preset": "proxy", "data": "y"},
    ]
    assert {name: len(group) for name, group in comparable(rows).items()} == {"a, smoke": 1, "a, proxy": 1, "b": 2}


def test_draws_follow_students_distribution() -> None:
    covariance = np.array([[0.0, 0.0, 0.0], [0.0, 4.0, 1.2], [0.0, 1.2, 1.0]])
    table = Effects("topology", "loss", "min", None, ("a", "b", "c"), np.zeros(3), (1, 1, 1), np.array([0.0, 5, -2]),
                  covariance, 10, (), 0.0, {})  # fmt: skip
    draws = table.draws(np.random.default_rng(0))
    assert draws.mean(axis=0) == pytest.approx([0, -5, 2], abs=0.15)
    assert np.cov(draws.T) == pytest.approx(covariance * 10 / 8, abs=0.35)


def test_costs_are_relative_to_the_reference_at_equal_shape() -> None:
    factors = {"resnet": 1.0, "dca": 1.2, "rmt": 0.8}
    lines = [
        line(topology, depth, seed, RANDOM.normal(), params=round(1000 * depth * factor), flops=2000 * depth)
        for topology, factor in factors.items()
        for depth in (1, 2, 4)
        for seed in (0, 1)
        if (topology, depth) != ("rmt", 4)  # a mean over all shapes would not be equal
    ]
    for name, record in effects_by_value(lines).items():
        assert (record["params_ratio"], record["flops_ratio"]) == (pytest.approx(factors[name]), 1)
        assert "time_ratio" not in record


def test_cost_ratios_at_equal_cost_are_one() -> None:
    lines = [
        line("resnet", depth, seed, RANDOM.normal(), heads=heads, params=100 * depth * heads, flops=depth * heads**2)
        for depth in (1, 2, 4)
        for heads in (1, 2, 3, 4, 6)
        for seed in (0, 1)
    ]
    for record in effects_by_value(lines, axis="depth", at="flops").values():
        assert record["flops_ratio"] == 1
        # heads = sqrt(flops / depth), so that params = 100 sqrt(depth flops)
        assert record["params_ratio"] == pytest.approx(record["value"] ** 0.5)


def test_times_are_compared_on_one_device_alone() -> None:
    def ratios(**changes: Any) -> list[Any]:
        lines = [
            line(topology, 1, seed, RANDOM.normal(), wall_s=seconds * (1 + seed), device="cpu", threads=1)
            for topology, seconds in (("resnet", 2.0), ("dca", 3.0))
            for seed in (0, 1)
        ]
        lines[0] |= changes
        return [record.get("time_ratio") for _, record in sorted(effects_by_value(lines).items())]

    assert ratios() == [pytest.approx(1.5), 1.0]
    for changes in ({"device": "gpu"}, {"threads": 2}, {"device": None}, {"wall_s": None}):
        assert ratios(**changes) == [None, None], changes
