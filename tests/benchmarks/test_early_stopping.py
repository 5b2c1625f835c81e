"""The benchmark of early stopping: counts of steps, hypervolumes and output."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import curves
from benchmarks.early_stopping import compare, hypervolume_of, pair, steps
from nas.report.study import Study
from nas.samplers.rungs import Rungs
from results.records import jsonl
from results.records.costs import Costs
from tasks.vision.digit_ranks import DigitRanksViT
from toy_rows import LITTLE, a_row

WAYS: Any = {"accuracy": "max", "flops": "min"}
FEW = ("resnet", "grn-v3")


def a_study(*values: tuple[float, float, int]) -> Study:
    """A study from validation accuracy, test accuracy and FLOPs of each training."""
    rows = [
        a_row(
            architecture=LITTLE.with_fields({"hidden": 8 + number}),
            metrics={"accuracy": validation},
            test={"accuracy": test},
            costs=Costs(flops=flops),
            steps=10 * (1 + number),
        )
        for number, (validation, test, flops) in enumerate(values)
    ]
    return Study("s", "sqlite:///x.db", rows)


def test_front_is_chosen_by_validation_and_measured_by_test() -> None:
    study = a_study((0.9, 0.8, 10), (0.8, 0.7, 5), (0.7, 0.99, 7))  # the last one is not on the front
    assert hypervolume_of(study, WAYS, (-0.5, 20.0)) == pytest.approx(0.3 * 10 + 0.2 * 5)
    assert steps(study) == 10 + 20 + 30


def test_curves_are_recorded_for_every_member_of_the_space() -> None:
    curve_by_text = curves.curves()
    assert len(curve_by_text) == 100
    assert all([step for step, _ in curve] == list(range(36, 721, 36)) for curve in curve_by_text.values())
    assert all({*curves.METRICS, *curves.TEST} == set(curve[-1][1]) for curve in curve_by_text.values())


def test_written_curves_are_read_back(tmp_path: Path) -> None:
    metrics = dict.fromkeys(curves.METRICS, 0.125)
    row = a_row(
        steps=20, curve=({"step": 10, "metrics": metrics},), metrics=metrics, test={"accuracy": 0.5, "loss": 0.25}
    )
    curves.write([row], tmp_path / "c.csv.gz")
    test = {"test_accuracy": 0.5, "test_loss": 0.25}
    assert curves.curves(tmp_path / "c.csv.gz") == {str(row.architecture): [(10, metrics), (20, {**metrics, **test})]}


def test_recorded_rows_agree_with_the_curves() -> None:
    rows = curves.rows_of_curves()
    assert (len(rows), rows[0].architecture) == (100, DigitRanksViT.base)
    for row in rows:
        *points, (last, at_end) = curves.curves()[str(row.architecture)]
        assert [(point["step"], point["metrics"]) for point in row.curve] == points
        assert (row.steps, {**row.metrics, **{f"test_{name}": value for name, value in row.test.items()}}) == (
            last,
            at_end,
        )


def test_early_stopping_takes_fewer_steps(tmp_path: Path) -> None:
    few = [row for row in curves.rows_of_curves() if row.architecture.depth < 6 and row.architecture.topology in FEW]
    jsonl.write(few, tmp_path / "few.jsonl")
    search = {"task": f"replay:{tmp_path}/few.jsonl", "objectives": "accuracy,flops", "sampler": "random", "trials": 9}
    figures = compare(search, {"held": Rungs(1, 0.1)})
    steps, hypervolume = figures["held"]
    assert 1.0 < steps < 10.0
    assert 0.9 < hypervolume < 1.1


def test_figure_has_the_other_settings_as_peers() -> None:
    ways: Mapping[str, tuple[float, float]] = {"": (3.0, 0.99), "other": (2.0, 1.0)}
    figures = pair("_x", ways, 2.5, 0.995)
    assert (figures["steps_saved_x"].value, figures["steps_saved_x"].peers) == (3.0, {"other": 2.0})
    assert (figures["steps_saved_x"].is_met, figures["hypervolume_x"].is_met) == (True, False)
