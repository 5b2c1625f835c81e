"""What a search gains over the base network: which networks are compared, on which metric, with which error."""

from dataclasses import replace
from typing import Any

from nas.report.base_gain import base_gain
from results.records.row import Row
from results.stats.architecture_summary import ArchitectureSummary
from toy_rows import LITTLE, a_row

OBJECTIVES = {"accuracy": "max", "flops": "min"}


def summary(row: Row, expected: float, flops: int, test: float, *, on_front: bool = True, **record: Any) -> Any:
    columns = {
        "topology": "resnet",
        "key": f"k{flops}",
        "flops": flops,
        "test_accuracy": test,
        "test_accuracy_se": 0.03,
    }
    mean = {"accuracy": expected, "flops": float(flops)}
    return ArchitectureSummary((row.identity(),), {**columns, **record}, mean, False, 0.5, on_front, 1)


def rows(number: int) -> list[Row]:
    return [a_row(architecture=replace(LITTLE, depth=depth)) for depth in range(1, number + 1)]


def test_the_best_and_the_cheapest_of_at_most_the_base_cost_are_named() -> None:
    base, better, cheap, costly, hidden = networks = rows(5)
    summaries = [
        summary(base, 0.80, 100, 0.81),
        summary(better, 0.90, 90, 0.85, test_accuracy_se=0.04),
        summary(cheap, 0.80, 20, 0.70),
        summary(costly, 0.99, 101, 0.99),
        summary(hidden, 0.95, 10, 0.95, on_front=False),
    ]
    first, second, third = base_gain(networks, str(base.architecture), OBJECTIVES, summaries)
    assert "k100" in first
    assert "0.810±0.030" in first
    for part in ("k90", "0.850±0.040", "+0.040±0.050"):
        assert part in second
    assert "k20" in third


def test_less_may_be_better() -> None:
    base, better = networks = rows(2)
    objectives = {"loss": "min", "flops": "min"}
    summaries = []
    for row, key, loss in ((base, "b", 2.0), (better, "g", 1.5)):
        record = {"topology": "resnet", "key": key, "flops": 5, "loss": loss}
        summaries.append(ArchitectureSummary((row.identity(),), record, {"loss": loss}, False, 1.0, True, 1))
    _, second, _ = base_gain(networks, str(base.architecture), objectives, summaries)
    assert "loss 1.5, -0.5" in second


def test_without_a_better_network_the_second_line_says_so() -> None:
    base, other = networks = rows(2)
    summaries = [summary(base, 0.9, 100, 0.9), summary(other, 0.8, 50, 0.8)]
    _, second = base_gain(networks, str(base.architecture), OBJECTIVES, summaries)
    assert "k50" not in second


def test_nothing_is_compared_without_a_base_a_metric_or_a_cost() -> None:
    base, other = networks = rows(2)
    summaries = [summary(base, 0.8, 100, 0.8), summary(other, 0.9, 50, 0.9)]
    text = str(base.architecture)
    assert base_gain(networks, "another", OBJECTIVES, summaries) == []
    assert base_gain(networks, text, {"accuracy": "max"}, summaries) == []
    assert base_gain(networks, text, {"flops": "min"}, summaries) == []
    assert base_gain(networks, text, OBJECTIVES, summaries[1:]) == []
