"""Summaries of architectures: means, errors, fronts and tiers."""

import math
from statistics import fmean

import numpy as np
import pytest

from architecture_lines import WAYS, line, summaries_of
from expect import raises
from results.records import table
from results.stats.architecture_summary import expected_columns, summarize, tiers_of
from results.stats.features import features_of
from results.stats.pareto import front, not_surely_dominated


def test_means_over_seeds_have_errors_of_examples_and_seeds() -> None:
    values = {1: [0.5, 0.6, 0.55], 2: [0.7, 0.74], 3: [0.8]}
    summaries = summaries_of([line(d, v, seed=seed) for d, each in values.items() for seed, v in enumerate(each)])
    squares = sum((value - fmean(each)) ** 2 for each in values.values() for value in each)
    between_seeds = squares / 3  # six values, three means
    for depth, each in values.items():
        summary = summaries[f"k{depth}"]
        assert summary.record["accuracy"] == pytest.approx(fmean(each))
        assert summary.record["accuracy_se"] == pytest.approx(math.sqrt(0.01**2 + between_seeds / len(each)))
        assert summary.record["test_accuracy"] == pytest.approx(fmean(each) - 0.01)
        assert summary.record["seeds"] == len(each)
        assert summary.identities == tuple(f"{depth}-{seed}" for seed in range(len(each)))
        assert not summary.is_held_out
    assert list(summaries) == ["k1", "k2", "k3"]


def test_seed_errors_are_pooled_in_units_of_the_example_errors() -> None:
    values, example_errors = {1: [0.5, 0.6], 2: [0.9, 0.92], 3: [0.95]}, {1: 0.04, 2: 0.02, 3: 0.01}
    summaries = summaries_of(
        [line(d, v, seed=s, accuracy_se=example_errors[d]) for d, each in values.items() for s, v in enumerate(each)]
    )
    multiple = math.sqrt((2 * (0.05 / 0.04) ** 2 + 2 * (0.01 / 0.02) ** 2) / 2)  # four deviations, two means
    for depth, each in values.items():
        error = example_errors[depth] * math.sqrt(1 + multiple**2 / len(each))
        assert summaries[f"k{depth}"].record["accuracy_se"] == pytest.approx(error)


def test_held_out_seeds_replace_search_seeds() -> None:
    lines = [line(1, 0.5), line(2, 0.9), line(2, 0.7, seed=1), line(2, 0.72, seed=2)]
    summaries = summaries_of(lines, held_out={"2-1", "2-2"})
    assert summaries["k2"].record["accuracy"] == pytest.approx(0.71)
    assert (summaries["k2"].is_held_out, summaries["k2"].record["seeds"]) == (True, 2)
    assert (summaries["k1"].is_held_out, summaries["k1"].record["seeds"]) == (False, 1)


def test_incomplete_rows_and_rows_without_a_value_take_no_part() -> None:
    lines = [line(1, 0.5), line(2, 0.6, status="failed"), line(3, math.nan), {**line(4, 0.7), "accuracy": None}]
    assert list(summaries_of(lines)) == ["k1"]
    assert summaries_of([line(1, 0.5, status="failed")]) == {}


def test_duplicate_rows_count_once_and_keyless_rows_differ_by_shape() -> None:
    assert summaries_of([line(1, 0.5), line(1, 0.5)])["k1"].record["seeds"] == 1
    keyless = [{name: value for name, value in line(d, 0.5).items() if name != "key"} for d in (1, 2)]
    assert len(summarize(table.from_records(keyless), WAYS)) == 2
    odd = [line(1, 0.5, topology="My net #3"), line(2, 0.6, topology="a/b"), line(3, 0.7, topology=None)]
    assert len(summaries_of(odd)) == 3


def test_objectives_may_have_the_names_of_other_columns() -> None:
    lines = [line(d, 0.5, command_error=0.1 * d, speed_steps=1.0 * d, command="nas", started="now") for d in (1, 2)]
    summaries = summaries_of(lines, objectives={"command_error": "min", "speed_steps": "max"})
    assert [summary.on_front for summary in summaries.values()] == [True, True]


def test_rows_that_are_not_comparable_have_fronts_of_their_own() -> None:
    for name in ("task", "data", "preset", "start", "task_version"):
        other = {name: 2 if name == "task_version" else "other"}
        summaries = summarize(table.from_records([line(1, 0.9), line(2, 0.1, **other)]), WAYS)
        assert [summary.on_front for summary in summaries] == [True, True]
    assert [s.on_front for s in summarize(table.from_records([line(1, 0.9), line(2, 0.1)]), WAYS)] == [True, False]


def test_each_recipe_is_a_candidate() -> None:
    lines = [line(1, 0.5, recipe_lr=0.1), line(1, 0.7, seed=1, recipe_lr=0.2), line(1, 0.8, seed=2, recipe_lr=0.2)]
    summaries = summarize(table.from_records(lines), WAYS)
    assert sorted(summary.record["seeds"] for summary in summaries) == [1, 2]


def test_tiers_depend_on_draws_and_example_errors() -> None:
    random = np.random.default_rng(5)
    expected = np.array([1.0, 0.9, 0.5, 0.45, 0.0, 0.93])
    draws = expected + 0.01 * random.normal(size=(2000, 6))
    front = np.array([0, 1, 2, 3, 4])
    assert tiers_of(draws, np.zeros(6), front).tolist() == [1, 2, 3, 4, 5, 2]
    assert tiers_of(draws, np.full(6, 0.1), front).tolist() == [1, 1, 2, 2, 3, 1]
    assert tiers_of(draws, np.full(6, 10.0), front).tolist() == [1] * 6


def test_two_standard_errors_keep_a_point_from_being_surely_dominated() -> None:
    values = np.array([[0.0, 1.0], [0.5, 1.0], [0.1, 1.0], [0.2, 0.5]])
    errors = np.array([[0.0, 0.0], [0.1, 0.0], [0.049, 0.0], [0.0, 0.0]])
    assert not_surely_dominated(values, errors).tolist() == [True, False, False, True]
    assert not_surely_dominated(values, errors * 1.03).tolist() == [True, False, True, True]


def test_front_has_all_points_that_no_other_surely_dominates() -> None:
    for objectives in (1, 2, 3):
        draw = np.random.default_rng(objectives)
        for number in (1, 2, 40):
            values = draw.integers(0, 6, (number, objectives)) / 4  # to give ties
            values[draw.random(values.shape) < 0.02] = np.nan
            errors = draw.integers(0, 3, values.shape) / 8
            optimistic = values - 2 * errors
            stands = [
                not any((other <= point).all() and (other < point).any() for other in values) for point in optimistic
            ]  # pair by pair
            assert not_surely_dominated(values, errors).tolist() == stands


def test_impossible_objectives_are_refused() -> None:
    with raises("unknown-name", option="column", value="acuracy", nearest="accuracy"):
        summaries_of([line(1, 0.5)], objectives={"acuracy": "max"})
    with raises("missing-value", option="objectives"):
        summaries_of([line(1, 0.5)], objectives={})


def test_coordinates_tell_architectures_apart() -> None:
    records = [
        {"depth": 1, "width": 8, "params": 100, "topology": "dca(k=2)", "recipe_lr": 0.1, "recipe_schedule": "flat"},
        {"depth": 4, "width": 8, "params": 1000, "topology": "dca(k=4)", "recipe_lr": 0.0, "recipe_schedule": "cosine"},
        {"depth": 2, "width": 8, "params": 10000, "topology": "resnet", "recipe_lr": 0.2, "recipe_schedule": "flat"},
        {"depth": 2, "width": 8, "params": 10000, "topology": "dca/resnet", "blocks": "heads=1/2"},
    ]
    places = features_of(records)
    columns = {tuple(np.round(column, 3)) for column in places.numeric.T}
    assert columns == {(0, 1, 0.5, 0.5), (0, 0.5, 1, 1), (0, 1, 0.5, 0.5), (0.5, 0, 1, 0.5)}
    distances = np.linalg.norm(places.one_hot[:, None] - places.one_hot[None], axis=2)
    assert distances[0, 1] == pytest.approx(1)  # schedules
    assert distances[0, 2] == pytest.approx(1)  # topologies
    assert distances[1, 2] == pytest.approx(math.sqrt(2))


def test_default_option_lies_on_the_line_of_its_option() -> None:
    places = features_of([{"topology": text} for text in ("resnet", "hyper(streams=16)", "hyper", "hyper(streams=8)")])
    (line,) = places.numeric.T  # other options are equal in all rows
    assert line == pytest.approx([0.5, 1, 0, 0.5])
    assert np.linalg.norm(places.one_hot[1] - places.one_hot[2]) == 0


def test_single_architecture_has_coordinates() -> None:
    assert features_of([{"depth": 3, "topology": "resnet"}]).numeric.shape == (1, 1)
    assert summaries_of([line(1, 0.5)])["k1"].on_front


def test_without_errors_all_have_one_tier() -> None:
    summaries = summaries_of([line(d, 0.5 + 0.0001 * d, error=None) for d in range(1, 6)])
    assert {summary.tier for summary in summaries.values()} == {1}


def test_presets_have_fronts_of_their_own() -> None:
    lines = [line(1, 0.5) | {"preset": "smoke"}, line(2, 0.9) | {"preset": "proxy"}]
    assert sum(summary.on_front for summary in summaries_of(lines).values()) == 2
    assert len(front(table.from_records(lines), {"accuracy": "max"})) == 2


def test_lines_without_an_architecture_are_not_grouped() -> None:
    lines = [{"name": name, "acc": value} for name, value in (("a", 0.5), ("b", 0.6), ("c", 0.9))]
    summaries = summarize(table.from_records(lines), {"acc": "max"})
    assert [summary.record["acc"] for summary in summaries] == [0.5, 0.6, 0.9]


def test_objective_is_the_mean_over_rows_of_one_architecture() -> None:
    lines = [line(1, 0.5, latency_ms=2.0), line(1, 0.5, seed=1, latency_ms=4.0), line(2, 0.6, latency_ms=9.0)]
    summaries = summaries_of(lines, objectives={"accuracy": "max", "latency_ms": "min"})
    assert {key: summary.record["latency_ms"] for key, summary in summaries.items()} == {"k1": 3.0, "k2": 9.0}


def test_summary_has_columns_of_its_posterior_means() -> None:
    assert expected_columns(WAYS) == {"expected": "accuracy"}
    assert expected_columns(["accuracy", "loss", "flops"]) == {"expected_accuracy": "accuracy", "expected_loss": "loss"}
    assert expected_columns(["params", "latency_ms"]) == {}
    for summary in summaries_of([line(1, 0.5), line(1, 0.52, seed=1), line(2, 0.4)]).values():
        columns = {
            "expected": summary.expected["accuracy"],
            "p_front": summary.p_front,
            "on_front": str(summary.on_front).lower(),
            "tier": summary.tier,
        }
        assert summary.columns() == {**summary.record, **columns}
    assert summaries_of([line(1, 0.5, error=None)])["k1"].columns()["p_front"] is None


def test_requested_numbers_are_averaged_over_held_out_seeds() -> None:
    lines = [line(1, 0.5, seed=seed, wall_s=wall_s, steps=steps) for seed, (wall_s, steps) in enumerate(
        [(9.0, 1), (2.0, 10), (3.0, 11), (None, 13)])]  # fmt: skip
    record = summaries_of(lines, held_out={"1-1", "1-2", "1-3"}, averages=["wall_s", "steps"])["k1"].record
    assert (record["wall_s"], record["steps"]) == (2.5, 11)
    assert "wall_s" not in summaries_of(lines)["k1"].record
