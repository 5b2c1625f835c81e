"""The numbers of a report, compared with naive calculations."""

from statistics import fmean, stdev
from typing import Any

import pytest

from nas.report.html import chart_records
from nas.report.study import Study
from results.records import table

OBJECTIVES: dict[str, Any] = {"accuracy": "max", "flops": "min"}


def test_hypervolume_grows_with_each_new_front_and_ends_at_one(study: Study) -> None:
    volumes = chart_records.hypervolumes(study.rows(), study.summaries(), OBJECTIVES)
    shares = [volume["share"] for volume in volumes]
    # second seeds and failures add nothing
    assert [volume["trainings"] for volume in volumes] == [*range(1, 18, 2), 19]
    assert shares == sorted(shares)
    assert shares[0] < shares[2] < shares[6]
    assert shares[-1] == 1


def test_hypervolume_is_that_of_the_union_of_boxes(study: Study) -> None:
    architectures = [architecture for architecture in study.summaries() if architecture.record["topology"] == "resnet"]
    values = [(-architecture.expected["accuracy"], architecture.expected["flops"]) for architecture in architectures]
    lows, highs = zip(*[(min(column), max(column)) for column in zip(*values, strict=True)], strict=True)
    points = sorted(tuple((v - a) / (b - a) for v, a, b in zip(point, lows, highs, strict=True)) for point in values)
    areas = []
    for number in range(1, len(points) + 1):  # the most accurate first, as in the rows below
        area, right = 0.0, 1.1
        for x, y in reversed(points[:number]):
            area, right = area + (right - x) * (1.1 - y), x
        areas.append(area)
    identities = [
        architecture.identities[0]
        for architecture in sorted(architectures, key=lambda architecture: -architecture.expected["accuracy"])
    ]
    rows = sorted(study.rows(), key=lambda row: [*identities, row.identity()].index(row.identity()))
    volumes = chart_records.hypervolumes(rows, architectures, OBJECTIVES)
    assert [volume["share"] for volume in volumes[:3]] == pytest.approx([area / areas[-1] for area in areas])


def test_architectures_without_rows_are_not_part_of_the_order(study: Study) -> None:
    volumes = chart_records.hypervolumes(study.rows(), study.summaries(), OBJECTIVES)
    flat = table.from_records([{"accuracy": 1.0, "flops": 10, "params": 5}])
    architectures = Study("both", "", study.rows(), column_tables=[flat]).summaries()
    assert len(architectures) == len(study.summaries()) + 1
    assert chart_records.hypervolumes(study.rows(), architectures, OBJECTIVES)[-1] == volumes[-1]
    assert chart_records.hypervolumes([], architectures, OBJECTIVES) == []


def test_every_training_with_a_curve_has_points(study: Study) -> None:
    points = chart_records.curves(study.rows(), "accuracy")
    assert len(points) == 18 * 2  # an intermediate point and the end
    assert {point["step"] for point in points} == {5, 10}
    assert chart_records.curves(study.rows(), "nothing") == []


def test_costs_of_parts_sum_up_to_the_whole(study: Study) -> None:
    architectures = study.summaries()
    for quantity, column in (("parameters", "params"), ("operations", "flops")):
        sums: dict[str, int] = {}
        for part in chart_records.cost_part_records(architectures, quantity):
            sums[part["key"]] = sums.get(part["key"], 0) + part["value"]
        elementwise = 20 if quantity == "operations" else 0
        assert sums == {
            architecture.record["key"]: architecture.record[column] + elementwise for architecture in architectures
        }


def test_axes_with_their_means_and_spreads(study: Study) -> None:
    architectures = study.summaries()
    assert chart_records.axes_of(architectures) == ["depth", "topology"]
    means = chart_records.means_by_value(architectures, "depth", "accuracy")
    assert [mean["at"] for mean in means] == ["1", "2", "4"]
    for mean in means:
        values = [each.record["accuracy"] for each in architectures if str(each.record["depth"]) == mean["at"]]
        assert (mean["number"], mean["mean"], mean["spread"]) == (3, fmean(values), stdev(values))


def test_values_of_an_axis_are_in_numeric_order_and_single_ones_have_no_spread(study: Study) -> None:
    (one, *_) = study.summaries()
    ten = type(one)(**{**vars(one), "record": {**one.record, "depth": 10}})
    two = type(one)(**{**vars(one), "record": {**one.record, "depth": 2}})
    means = chart_records.means_by_value([ten, two], "depth", "accuracy")
    assert [(mean["at"], mean["spread"]) for mean in means] == [("2", None), ("10", None)]


def test_differences_are_between_architectures_of_equal_cost(study: Study) -> None:
    differences = chart_records.at_equal_cost(study.summaries(), "flops", "accuracy")
    assert {difference["neighbours"] for difference in differences} == {2}  # depth 2 costs twice as much as depth 1
    for difference in chart_records.by_topology(differences):
        gain = {"resnet": 0.0, "dca(k=2)": 0.03}.get(difference["topology"], -0.03)
        assert difference["mean"] == pytest.approx(gain, abs=1e-9)
        assert difference["error"] == pytest.approx(0, abs=1e-9)
    assert [difference["topology"] for difference in chart_records.by_topology(differences)][:2] == [
        "dca(k=2)",
        "resnet",
    ]
    assert chart_records.at_equal_cost(study.summaries()[:1], "flops", "accuracy") == []


def test_published_points_are_only_of_the_same_task() -> None:
    points = chart_records.published({"imagenet-vit"}, "params", "accuracy")
    (point,) = (point for point in points if point["model"] == "ViT-B, original")
    assert point == {"model": "ViT-B, original", "paper": "leaner, table 4", "x": 86.6e6, "y": pytest.approx(0.801)}
    assert {point["paper"][:3] for point in chart_records.published({"c4-lm"}, "params", "perplexity")} == {"anc"}
    assert len(chart_records.published({"lra-listops"}, "params", "accuracy")) == 2
    for tasks, cost in (({"imagenet-vit"}, "flops"), ({"digits-vit"}, "params"), ({"c4-lm", "lm1b-lm"}, "params")):
        assert chart_records.published(tasks, cost, "accuracy") == []


def test_origins_list_every_value_once(study: Study) -> None:
    origins = dict(chart_records.provenance_pairs(study.rows()))
    assert origins["command"] == "nas search any --seed 0"
    assert origins["seeds"] == "0, 1, 7"
    assert origins["versions"] == "torch 2"
