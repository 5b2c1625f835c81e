"""Pictures of fronts: baselines near the architectures are lines, those far away are in the legend alone."""

from math import nan

from nas.report.plots import draw_front
from results.stats.architecture_summary import ArchitectureSummary


def summary(accuracy: float, flops: int) -> ArchitectureSummary:
    record = {"topology": "resnet", "flops": flops, "accuracy": accuracy, "seeds": 1}
    return ArchitectureSummary(
        (str(flops),), record, {"accuracy": accuracy, "flops": float(flops)}, False, nan, True, 1
    )


def test_baselines_do_not_squeeze_the_front() -> None:
    baselines = {
        "near": {"accuracy": 0.88},
        "far below": {"accuracy": 0.3},
        "far above": {"accuracy": 0.99},
        "tested alone": {"test_accuracy": 0.9},
    }
    objectives = {"accuracy": "max", "flops": "min"}
    figure = draw_front([summary(0.9, 10), summary(0.93, 20)], objectives, "title", baselines)  # type: ignore[arg-type]
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert 0.85 < low < 0.88
    assert 0.93 < high < 0.96
    lines = {str(line.get_label()): line for line in axes.get_lines() if not str(line.get_label()).startswith("_")}
    assert "near" in lines
    below, above = (next(label for label in lines if label.startswith(name)) for name in ("far below", "far above"))
    assert ("0.3" in below, "0.99" in above) == (True, True)
    assert not len(lines[below].get_xdata())
    assert not any("tested alone" in label for label in lines)
