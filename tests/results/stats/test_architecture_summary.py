"""How architectures stand: means and errors beside naive ones, and chances that come true."""

import math
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from expect import raises
from results.records import table
from results.stats import architecture_summary
from results.stats.architecture_summary import ArchitectureSummary, summarize, tiers_of
from results.stats.features import features_of
from results.stats.pareto import front, non_dominated, not_surely_dominated

WAYS = {"accuracy": "max", "flops": "min"}


def line(depth: int, accuracy: float, *, seed: int = 0, error: float | None = 0.01, **more: Any) -> dict[str, Any]:
    return {
        "task": "any",
        "key": f"k{depth}",
        "depth": depth,
        "topology": "dca(k=2)" if depth % 2 else "resnet",
        "flops": 1000 * depth,
        "seed": seed,
        "status": "complete",
        "identity": f"{depth}-{seed}",
        "accuracy": accuracy,
        "accuracy_se": error,
        "test_accuracy": accuracy - 0.01,
        "test_accuracy_se": error,
        **more,
    }


def stand(lines: list[dict[str, Any]], **more: Any) -> dict[str, ArchitectureSummary]:
    found = summarize(table.from_records(lines), more.pop("objectives", WAYS), **more)
    return {one.record["key"]: one for one in found}


def test_means_over_seeds_have_errors_of_examples_and_seeds() -> None:
    values = {1: [0.5, 0.6, 0.55], 2: [0.7, 0.74], 3: [0.8]}
    found = stand([line(depth, v, seed=seed) for depth, each in values.items() for seed, v in enumerate(each)])
    squares = sum((value - fmean(each)) ** 2 for each in values.values() for value in each)
    between_seeds = squares / 3  # six readings, three means
    for depth, each in values.items():
        one = found[f"k{depth}"]
        assert one.record["accuracy"] == pytest.approx(fmean(each))
        assert one.record["accuracy_se"] == pytest.approx(math.sqrt(0.01**2 + between_seeds / len(each)))
        assert one.record["test_accuracy"] == pytest.approx(fmean(each) - 0.01)
        assert one.record["seeds"] == len(each)
        assert one.identities == tuple(f"{depth}-{seed}" for seed in range(len(each)))
        assert not one.is_held_out
    assert list(found) == ["k1", "k2", "k3"]


def test_search_seeds_are_left_out_where_confirming_seeds_exist() -> None:
    lines = [line(1, 0.5), line(2, 0.9), line(2, 0.7, seed=1), line(2, 0.72, seed=2)]
    found = stand(lines, held_out={"2-1", "2-2"})
    assert found["k2"].record["accuracy"] == pytest.approx(0.71)
    assert (found["k2"].is_held_out, found["k2"].record["seeds"]) == (True, 2)
    assert (found["k1"].is_held_out, found["k1"].record["seeds"]) == (False, 1)


def test_incomplete_rows_and_rows_without_a_value_take_no_part() -> None:
    lines = [line(1, 0.5), line(2, 0.6, status="failed"), line(3, math.nan), {**line(4, 0.7), "accuracy": None}]
    assert list(stand(lines)) == ["k1"]
    assert stand([line(1, 0.5, status="failed")]) == {}


def test_duplicate_rows_count_once_and_keyless_rows_are_told_by_shape() -> None:
    assert stand([line(1, 0.5), line(1, 0.5)])["k1"].record["seeds"] == 1
    keyless = [{name: value for name, value in line(d, 0.5).items() if name != "key"} for d in (1, 2)]
    assert len(summarize(table.from_records(keyless), WAYS)) == 2
    odd = [line(1, 0.5, topology="My net #3"), line(2, 0.6, topology="a/b"), line(3, 0.7, topology=None)]
    assert len(stand(odd)) == 3


def test_objectives_may_have_the_names_of_other_columns() -> None:
    lines = [line(d, 0.5, command_error=0.1 * d, speed_steps=1.0 * d, command="nas", started="now") for d in (1, 2)]
    found = stand(lines, objectives={"command_error": "min", "speed_steps": "max"})
    assert [one.on_front for one in found.values()] == [True, True]


def test_null_errors_give_no_chance() -> None:
    assert math.isnan(stand([line(d, 0.5 + 0.1 * d, error=None) for d in (1, 2)])["k1"].p_front)


def test_rows_that_are_not_comparable_have_fronts_of_their_own() -> None:
    for name in ("task", "data", "preset", "start", "task_version"):
        other = {name: 2 if name == "task_version" else "other"}
        found = summarize(table.from_records([line(1, 0.9), line(2, 0.1, **other)]), WAYS)
        assert [one.on_front for one in found] == [True, True]
    assert [one.on_front for one in summarize(table.from_records([line(1, 0.9), line(2, 0.1)]), WAYS)] == [True, False]


def test_each_recipe_is_a_candidate() -> None:
    lines = [line(1, 0.5, recipe_lr=0.1), line(1, 0.7, seed=1, recipe_lr=0.2), line(1, 0.8, seed=2, recipe_lr=0.2)]
    found = summarize(table.from_records(lines), WAYS)
    assert sorted(one.record["seeds"] for one in found) == [1, 2]


def test_front_without_errors_is_of_measured_values_and_has_no_chances() -> None:
    lines = [line(depth, 0.5 + 0.1 * (depth in (2, 4)), error=None) for depth in range(1, 6)]
    found = stand([{name: value for name, value in one.items() if not name.endswith("_se")} for one in lines])
    assert all(math.isnan(one.p_front) for one in found.values())
    assert [key for key, one in found.items() if one.on_front] == ["k1", "k2"]
    costs = stand(lines, objectives={"flops": "min", "depth": "max"})
    assert all(one.on_front for one in costs.values())  # what is counted has no noise


def test_lucky_result_is_shrunk_towards_its_neighbours() -> None:
    """Accuracy rises with depth; one shallow network is lucky by three deviations of noise."""
    random = np.random.default_rng(0)
    lines = [line(d, 0.5 + 0.02 * d + 0.02 * random.normal() + 0.06 * (d == 5), error=0.02) for d in range(1, 21)]
    before = stand(lines)
    assert lines[4]["accuracy"] > lines[5]["accuracy"]  # and it is cheaper
    after = stand([*lines, line(5, 0.6, seed=1, error=0.02), line(5, 0.6, seed=2, error=0.02)])
    assert 0.1 < before["k6"].p_front < 0.5 < after["k6"].p_front
    assert after["k6"].on_front


def test_chances_are_calibrated() -> None:
    """Of those said to be on the front with a chance about p, a share of about p is."""
    said, true = [], []
    for seed in range(15):
        random = np.random.default_rng(seed)
        truth = np.sin(np.arange(1, 16) / random.uniform(2, 6) + random.uniform(0, 6)) / 10
        lines = [
            line(d, float(truth[d - 1] + 0.05 * random.normal()), seed=s, error=None, topology="resnet")
            for d in range(1, 16)
            for s in range(2)
        ]
        found = stand(lines)
        said += [found[f"k{d}"].p_front for d in range(1, 16)]
        true += non_dominated(np.stack([-truth, np.arange(1, 16.0)], axis=1)).tolist()
    chance, share = np.array(said), np.array(true, dtype=float)
    fifth = np.minimum((chance * 5).astype(int), 4)
    for one in range(5):
        assert abs(chance[fifth == one].mean() - share[fifth == one].mean()) < 0.15
    assert abs(chance.mean() - share.mean()) < 0.05


def test_large_table_models_what_is_near_its_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architecture_summary, "SAMPLE_SIZE", 12)
    monkeypatch.setattr(architecture_summary, "CONTENDERS", 4)
    found = stand([line(depth, 0.5 + 0.02 * depth - 0.001 * depth**2) for depth in range(1, 31)])
    assert len(found) == 30
    assert {key for key, one in found.items() if one.on_front} == {f"k{depth}" for depth in range(1, 11)}
    assert 10 <= sum(one.p_front > 0 for one in found.values()) <= 14
    assert {one.tier for one in found.values()} > {1}


def test_chances_are_calibrated_in_large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is not made of the luckiest, of which hundreds are better than any truth."""
    monkeypatch.setattr(architecture_summary, "SAMPLE_SIZE", 60)
    monkeypatch.setattr(architecture_summary, "CONTENDERS", 30)
    said, true = 0.0, 0
    for seed in range(3):
        random = np.random.default_rng(seed)
        depths = np.arange(1, 401)
        truth = 0.5 + np.sin(depths / 130) / 5
        lines = [line(int(d), float(truth[d - 1] + 0.05 * random.normal()), error=0.05) for d in depths]
        found = stand([{**one, "topology": "resnet"} for one in lines])
        shown = [int(key[1:]) for key, one in found.items() if one.on_front]
        best = non_dominated(np.stack([-truth, depths], axis=1))
        off = [found[f"k{d}"].expected["accuracy"] - truth[d - 1] for d in shown]
        assert abs(float(np.mean(off))) < 0.04  # 0.1 and more where they were the luckiest
        said += sum(one.p_front for one in found.values())
        true += int(best[[d - 1 for d in range(1, 401) if found[f"k{d}"].p_front > 0]].sum())
    assert said < 1.5 * true + 10


def test_levels_follow_draws_and_errors_of_examples() -> None:
    random = np.random.default_rng(5)
    expected = np.array([1.0, 0.9, 0.5, 0.45, 0.0, 0.93])
    drawn = expected + 0.01 * random.normal(size=(2000, 6))
    front = np.array([0, 1, 2, 3, 4])
    assert tiers_of(drawn, np.zeros(6), front).tolist() == [1, 2, 3, 4, 5, 2]
    assert tiers_of(drawn, np.full(6, 0.1), front).tolist() == [1, 1, 2, 2, 3, 1]
    assert tiers_of(drawn, np.full(6, 10.0), front).tolist() == [1] * 6


def test_two_standard_errors_keep_a_point_from_being_surely_dominated() -> None:
    values = np.array([[0.0, 1.0], [0.5, 1.0], [0.1, 1.0], [0.2, 0.5]])
    errors = np.array([[0.0, 0.0], [0.1, 0.0], [0.049, 0.0], [0.0, 0.0]])
    assert not_surely_dominated(values, errors).tolist() == [True, False, False, True]
    assert not_surely_dominated(values, errors * 1.03).tolist() == [True, False, True, True]


def test_points_stand_unless_another_surely_beats_them() -> None:
    for objectives in (1, 2, 3):
        draw = np.random.default_rng(objectives)
        for number in (1, 2, 40):
            values = draw.integers(0, 6, (number, objectives)) / 4  # so that many are equal
            values[draw.random(values.shape) < 0.02] = np.nan
            errors = draw.integers(0, 3, values.shape) / 8
            hoped = values - 2 * errors
            stands = [
                not any((other <= one).all() and (other < one).any() for other in values) for one in hoped
            ]  # by every pair
            assert not_surely_dominated(values, errors).tolist() == stands


def test_impossible_objectives_are_refused() -> None:
    with raises("unknown-name", option="column", value="acuracy", nearest="accuracy"):
        stand([line(1, 0.5)], objectives={"acuracy": "max"})
    with raises("missing-value", option="objectives"):
        stand([line(1, 0.5)], objectives={})


def test_coordinates_tell_architectures_apart() -> None:
    records = [
        {"depth": 1, "width": 8, "params": 100, "topology": "dca(k=2)", "recipe_lr": 0.1, "recipe_schedule": "flat"},
        {"depth": 4, "width": 8, "params": 1000, "topology": "dca(k=4)", "recipe_lr": 0.0, "recipe_schedule": "cosine"},
        {"depth": 2, "width": 8, "params": 10000, "topology": "resnet", "recipe_lr": 0.2, "recipe_schedule": "flat"},
        {"depth": 2, "width": 8, "params": 10000, "topology": "dca/resnet", "blocks": "heads=1/2"},
    ]
    places = features_of(records)
    columns = {tuple(np.round(column, 3)) for column in places.sizes.T}
    assert columns == {(0, 1, 0.5, 0.5), (0, 0.5, 1, 1), (0, 1, 0.5, 0.5), (0.5, 0, 1, 0.5)}
    words = np.linalg.norm(places.words[:, None] - places.words[None], axis=2)
    assert words[0, 1] == pytest.approx(1)  # of the schedules
    assert words[0, 2] == pytest.approx(1)  # of the topologies
    assert words[1, 2] == pytest.approx(math.sqrt(2))


def test_default_option_lies_on_the_line_of_its_option() -> None:
    places = features_of([{"topology": text} for text in ("resnet", "hyper(streams=16)", "hyper", "hyper(streams=8)")])
    (line,) = places.sizes.T  # and of no other option, which all have alike
    assert line == pytest.approx([0.5, 1, 0, 0.5])
    assert np.linalg.norm(places.words[1] - places.words[2]) == 0


def test_single_architecture_has_coordinates() -> None:
    assert features_of([{"depth": 3, "topology": "resnet"}]).sizes.shape == (1, 1)
    assert stand([line(1, 0.5)])["k1"].on_front


def test_front_of_hundreds_is_whole() -> None:
    found = stand([line(depth, 0.1 + depth / 1000, error=1e-5) for depth in range(1, 301)])
    assert sum(one.on_front for one in found.values()) == 300


def test_equal_seeds_give_certain_chances() -> None:
    """Nothing is chance where two seeds of every architecture come out alike."""
    found = stand([line(d, 0.5 + 0.1 * d, seed=s, error=None) for d in (1, 2) for s in range(2)])
    assert all(one.p_front > 0.9 for one in found.values())


def test_without_any_error_all_have_one_level() -> None:
    found = stand([line(d, 0.5 + 0.0001 * d, error=None) for d in range(1, 6)])
    assert {one.tier for one in found.values()} == {1}


def test_presets_have_fronts_of_their_own() -> None:
    lines = [line(1, 0.5) | {"preset": "smoke"}, line(2, 0.9) | {"preset": "proxy"}]
    assert sum(one.on_front for one in stand(lines).values()) == 2
    assert len(front(table.from_records(lines), {"accuracy": "max"})) == 2


def test_lines_without_an_architecture_stand_alone() -> None:
    lines = [{"name": name, "acc": value} for name, value in (("a", 0.5), ("b", 0.6), ("c", 0.9))]
    found = summarize(table.from_records(lines), {"acc": "max"})
    assert [one.record["acc"] for one in found] == [0.5, 0.6, 0.9]


def test_objective_is_the_mean_over_rows_of_one_architecture() -> None:
    lines = [line(1, 0.5, latency_ms=2.0), line(1, 0.5, seed=1, latency_ms=4.0), line(2, 0.6, latency_ms=9.0)]
    found = stand(lines, objectives={"accuracy": "max", "latency_ms": "min"})
    assert {key: one.record["latency_ms"] for key, one in found.items()} == {"k1": 3.0, "k2": 9.0}
