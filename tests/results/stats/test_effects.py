"""What values of an axis are worth, beside what can be said without least squares."""

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


def worth(lines: list[dict[str, Any]], **how: Any) -> dict[Any, dict[str, Any]]:
    found = effects(lines, how.pop("axis", "topology"), "accuracy", how.pop("direction", "max"), **how)
    return {record["value"]: record for record in found.records()}


def test_one_shape_pairs_differences_by_seed() -> None:
    of_seed = [0.0, 3.0, -5.0]  # far more than what the topology is worth, and the same of both
    noise = [0.01, -0.02, 0.03]
    plain = [line("resnet", 2, seed, of_seed[seed]) for seed in range(3)]
    other = [line("dca", 2, seed, 0.5 + of_seed[seed] + noise[seed]) for seed in range(3)]
    found = worth([*plain, *other])
    low, high = interval([0.5 + off for off in noise], 1)
    assert found["dca"]["over"] == pytest.approx(0.5 + fmean(noise))
    assert (found["dca"]["low"], found["dca"]["high"]) == (pytest.approx(low), pytest.approx(high))
    assert found["dca"]["than"] == "better"
    assert found["resnet"] == {"value": "resnet", "n": 3, "mean": pytest.approx(-2 / 3), "over": 0.0} | dict.fromkeys(
        ("low", "high", "than")
    )
    assert worth([*plain, *other], direction="min")["dca"]["than"] == "worse"
    alone = line("dca", 4, 0, 9.0)  # of a shape that nothing else is of
    assert worth([*plain, *other, alone]) == found


def test_several_shapes_compare_means_over_seeds_within_each_shape() -> None:
    measured = {key: RANDOM.normal() for key in product(("resnet", "dca", "ancre"), (1, 2, 4))}
    lines = [
        line(topology, depth, seed, 10 * depth + value + off * len(topology))
        for (topology, depth), value in measured.items()
        for seed, off in enumerate((-0.1, 0.1))
    ]
    found = worth(lines)
    for topology in ("dca", "ancre"):
        differences = [measured[topology, depth] - measured["resnet", depth] for depth in (1, 2, 4)]
        assert found[topology]["over"] == pytest.approx(fmean(differences))
        assert found[topology]["n"] == 3
    residuals = [
        value
        - fmean(measured[topology, other] for other in (1, 2, 4))
        - fmean(measured[other, depth] for other in ("resnet", "dca", "ancre"))
        + fmean(measured.values())
        for (topology, depth), value in measured.items()
    ]
    variance = sum(off**2 for off in residuals) / 4  # nine architectures, three topologies, three depths
    reach = student.ppf(1 - 0.05 / 2 / 2, 4) * np.sqrt(variance * 2 / 3)
    assert found["dca"]["high"] - found["dca"]["over"] == pytest.approx(reach)


def test_values_missing_in_some_shapes_are_compared_through_others() -> None:
    of_depth, of_topology = {1: 0.0, 2: 5.0, 4: 7.0}, {"resnet": 0.0, "dca": 1.0, "ancre": -2.0}
    trained = [("resnet", 1), ("dca", 1), ("dca", 2), ("ancre", 2), ("ancre", 4), ("resnet", 4)]
    found = worth([line(topology, depth, 0, of_depth[depth] + of_topology[topology]) for topology, depth in trained])
    assert {name: record["over"] for name, record in found.items()} == pytest.approx(of_topology)


def test_values_that_share_no_shape_are_left_out_and_listed() -> None:
    lines = [line("resnet", 1, 0, 0.1), line("dca", 1, 0, 0.2), line("ancre", 2, 0, 0.3), line("none", 2, 0, 0.4)]
    found = effects([*lines, line("rmt", 4, 0, 0.9)], "topology", "accuracy", "max")
    assert (found.values, found.incomparable, found.freedom) == (("resnet", "dca"), ("ancre", "none", "rmt"), 0)
    with raises("missing-rows", axis="topology", metric="accuracy", at=None, values=2):
        effects([lines[0], lines[2]], "topology", "accuracy", "max")
    assert effects(lines[2:], "topology", "accuracy", "max").values == ("ancre", "none")


def test_matched_sizes_are_no_shape_and_varied_sizes_are() -> None:
    matched = [line("resnet", 1, 0, 0.1), line("dca", 1, 0, 0.3, hidden=50, recipe_lr=2e-3)]
    assert worth([{"recipe_lr": 1e-3, **one} for one in matched])["dca"]["over"] == pytest.approx(0.2)
    varied = [
        line(name, 1, 0, value + hidden, hidden=hidden)
        for name, hidden, value in (("resnet", 32, 0.1), ("resnet", 64, 0.1), ("dca", 64, 0.3))
    ]
    assert worth(varied)["dca"]["over"] == pytest.approx(0.2)
    rates = [{**one, "recipe_lr": one["hidden"], "hidden": 64} for one in varied]
    assert worth(rates)["dca"]["over"] == pytest.approx(0.2)


def test_topologies_may_have_their_own_size_and_rate_at_two_training_lengths() -> None:
    """A table of one recipe and one in which sizes were matched and rates tuned, read together."""
    plain = [
        line(name, 1, s, v, recipe_lr=1e-3, recipe_epochs=9)
        for s in (0, 1)
        for name, v in (("resnet", 0.5), ("dca", 0.6))
    ]
    tuned = [
        line(name, 1, s, v, hidden=hidden, recipe_lr=rate, recipe_epochs=3)
        for s in (0, 1)
        for name, hidden, rate, v in (("resnet", 64, 1e-3, 0.3), ("dca", 60, 2e-3, 0.4), ("rmt", 50, 3e-3, 0.1))
    ]
    found = worth([*plain, *tuned])
    assert {name: one["over"] for name, one in found.items()} == pytest.approx({"resnet": 0, "dca": 0.1, "rmt": -0.2})
    assert {name: one["n"] for name, one in found.items()} == {"resnet": 2, "dca": 2, "rmt": 1}


def test_equal_cost_takes_out_what_the_cost_explains() -> None:
    def lines() -> Any:
        for depth, heads, topology in product((1, 2, 4), (2, 4, 8, 16), ("resnet", "dca", "rmt")):
            flops = 1000 * depth * heads ** (1 + 0.1 * depth)
            of_topology = {"resnet": 0.0, "dca": 0.3, "rmt": -2.0}[topology]
            value = 0.2 * np.log(flops) - 0.01 * np.log(flops) ** 2 + 0.05 * depth + of_topology
            if (topology, depth) not in {("rmt", 4), ("dca", 1)}:  # or topologies were alike at all depths
                yield line(topology, depth, 0, value, heads=heads, flops=flops)

    found = worth([*lines()], axis="depth", at="flops")
    assert {depth: found[depth]["over"] for depth in found} == pytest.approx({1: 0.0, 2: 0.05, 4: 0.15})
    deep = [one for one in lines() if one["depth"] == 2]
    over = worth(deep, axis="topology", at="flops")
    assert (over["dca"]["over"], over["rmt"]["over"]) == (pytest.approx(0.3), pytest.approx(-2.0))


def test_equal_cost_of_one_shape_pairs_differences_by_seed() -> None:
    noise = {"resnet": (0.1, 3.1, -5.2), "dca": (0.6, 3.7, -4.9), "rmt": (0.2, 3.0, -5.0)}  # by seed, above all
    lines = [line(name, 2, seed, value, flops=1000) for name, row in noise.items() for seed, value in enumerate(row)]
    found, paired = worth(lines, at="flops"), worth(lines)
    for name, column in product(("dca", "rmt"), ("over", "low", "high", "n")):
        assert found[name][column] == pytest.approx(paired[name][column])
    assert found["dca"]["than"] == "better"


def test_differences_by_rounding_alone_are_zero() -> None:
    lines = [
        line(name, 2, seed, 1e6 + more + 1e-8 * RANDOM.normal())
        for name, more in (("resnet", 0), ("dca", 0), ("rmt", 500))
        for seed in range(3)
    ]
    found = worth(lines)
    assert {name: found[name]["over"] for name in ("dca", "rmt")} == {"dca": 0, "rmt": pytest.approx(500)}
    assert [found[name]["than"] for name in ("dca", "rmt")] == ["not distinguishable", "better"]
    assert found["rmt"]["low"] == found["rmt"]["high"] == found["rmt"]["over"]


def test_too_few_rows_at_equal_cost_are_refused() -> None:
    lines = [line(name, 2, 0, 0.5, flops=flops) for name, flops in (("resnet", 1000), ("dca", 2000))]
    with raises("missing-rows", axis="topology", metric="accuracy", at="flops", values=2):
        worth(lines, at="flops")


def test_incomplete_rows_and_rows_without_a_number_take_no_part() -> None:
    lines = [line("resnet", 1, 0, 0.1), line("dca", 1, 0, 0.2), line("dca", 1, 1, 0.9) | {"status": "pruned"}]
    lines += [line("resnet", 1, 1, float("nan")), line("resnet", 1, 2, 0.1) | {"accuracy": None}]
    found = worth(lines)
    assert found["dca"]["over"] == pytest.approx(0.1)
    assert (found["dca"]["n"], found["dca"]["low"], found["dca"]["than"]) == (1, None, None)


def orders(values: dict[str, float], direction: str = "max", spread: float = 0.01) -> Any:
    lines = [
        line(name, depth, 0, value + depth + spread * RANDOM.normal())
        for name, value in values.items()
        for depth in (1, 2, 3)
    ]
    return effects(lines, "topology", "accuracy", direction)  # type: ignore[arg-type]


def test_agreement_is_kendalls_tau_of_common_values() -> None:
    one = {name: RANDOM.normal() for name in ("resnet", "dca", "ancre", "rmt", "hyper")}
    other = {name: RANDOM.normal() for name in (*one, "mhc")}
    tau = kendalltau([*one.values()], [other[name] for name in one]).statistic
    found = agreement(orders(one), orders(other))
    assert found is not None
    assert (found["values"], found["tau"]) == (5, pytest.approx(tau))
    assert found["low"] - 1e-9 <= tau <= found["high"] + 1e-9
    reversed_by_direction = agreement(orders(one), orders(other, "min"))
    assert reversed_by_direction is not None
    assert reversed_by_direction["tau"] == pytest.approx(-tau)


def test_noise_widens_the_interval_of_tau() -> None:
    one = {name: float(place) for place, name in enumerate(("resnet", "dca", "ancre", "rmt", "hyper"))}
    sure, unsure = (agreement(orders(one, spread=s), orders(one, spread=s)) for s in (0.001, 3.0))
    assert sure is not None
    assert unsure is not None
    assert (sure["tau"], sure["low"], sure["high"]) == (1, 1, 1)
    assert unsure["high"] - unsure["low"] > 0.5


def test_topologies_with_other_options_match_where_each_stands_once() -> None:
    one = orders({"resnet": 0, "dca(k=2)": 1, "hyper(streams=2)": 2, "hyper(streams=4)": 3})
    found = agreement(one, orders({"resnet": 0, "dca": 1, "hyper": 2, "ancre": 4, "hyper(streams=4)": 3}))
    assert found is not None
    assert found["values"] == 3
    assert agreement(one, orders({"resnet": 0, "dca(k=2)": 1, "hyper": 2})) is None
    both = agreement(one, orders({"resnet": 2, "dca": 9, "dca(k=2)": 3, "hyper(streams=2)": 4}))
    assert both is not None
    assert (both["values"], both["tau"]) == (3, 1)  # dca(k=2) is held against dca(k=2)


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
    assert {name: len(own) for name, own in comparable(rows).items()} == {"a, smoke": 1, "a, proxy": 1, "b": 2}


def test_draws_follow_students_distribution() -> None:
    covariance = np.array([[0.0, 0.0, 0.0], [0.0, 4.0, 1.2], [0.0, 1.2, 1.0]])
    one = Effects("topology", "loss", "min", None, ("a", "b", "c"), np.zeros(3), (1, 1, 1), np.array([0.0, 5, -2]),
                  covariance, 10, ())  # fmt: skip
    drawn = one.draws(np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx([0, -5, 2], abs=0.15)
    assert np.cov(drawn.T) == pytest.approx(covariance * 10 / 8, abs=0.35)
