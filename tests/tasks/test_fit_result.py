"""FitResult: plain numbers, or an error with the field and its value."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from expect import warns
from grouped import grouped
from nas.evaluation.evaluate import evaluate
from nas.request.job import EvaluationJob
from tasks.base import FitResult
from toy_rows import LITTLE
from toy_searches import TOYS


def fit_result(**changes: Any) -> FitResult:
    return FitResult(**{"steps": 1, "metrics": {"loss": 0.5}, **changes})


def test_scalars_of_torch_and_numpy_become_plain_numbers() -> None:
    with grouped() as case:
        for steps in (3, 3.0, torch.tensor(3), torch.tensor([3.0]), np.int64(3), np.array(3)):
            with case(repr(steps)):
                result = fit_result(steps=steps, metrics={"loss": torch.tensor(0.5)}, test={"loss": np.float32(0.25)})
                assert (result.steps, result.metrics, result.test) == (3, {"loss": 0.5}, {"loss": 0.25})
                kinds = (type(result.steps), type(result.metrics["loss"]), type(result.test["loss"]))
                assert kinds == (int, float, float)


def test_other_values_raise_with_the_field_and_the_value() -> None:
    loss = "FitResult.metrics['loss']"
    refusals: list[tuple[dict[str, Any], type[Exception], str, str]] = [
        ({"steps": torch.tensor([1, 2])}, TypeError, "FitResult.steps", "tensor([1, 2])"),
        ({"steps": "many"}, TypeError, "FitResult.steps", "'many'"),
        ({"steps": None}, TypeError, "FitResult.steps", "None"),
        ({"steps": 1.5}, ValueError, "FitResult.steps", "1.5"),
        ({"steps": -1}, ValueError, "FitResult.steps", "-1"),
        ({"steps": 10**22}, ValueError, "FitResult.steps", f"{10**22}"),
        ({"steps": float("nan")}, ValueError, "FitResult.steps", "nan"),
        ({"metrics": None}, TypeError, "FitResult.metrics", "None"),
        ({"metrics": {"loss": torch.ones(3)}}, TypeError, loss, "tensor([1., 1., 1.])"),
        ({"metrics": {"loss": "low"}}, TypeError, loss, "'low'"),
        ({"test": {3: 0.5}}, TypeError, "FitResult.test", "3"),
        ({"test": {"loss": 10**400}}, TypeError, "FitResult.test['loss']", "000"),
        ({"speeds": 7}, TypeError, "FitResult.speeds", "7"),
        ({"network": "resnet"}, TypeError, "FitResult.network", "'resnet'"),
    ]
    with grouped() as case:
        for changes, kind, field, value in refusals:
            with case(str(changes)):
                with pytest.raises(kind) as caught:
                    fit_result(**changes)
                assert type(caught.value) is kind
                assert f"{field} " in str(caught.value)
                assert str(caught.value).partition(field)[2].endswith(value)


def test_extra_metrics_that_are_no_numbers_are_dropped_with_a_notice() -> None:
    with warns("skipped", option="FitResult.extra_metrics['a']"):
        assert fit_result(extra_metrics={"a": "x", "b": 2}).extra_metrics == {"b": 2.0}


def test_evaluation_without_a_fit_result_fails_with_a_reason(tmp_path: Path) -> None:
    with grouped() as case:
        for number, code in enumerate(("FitResult(steps=torch.ones(2), metrics={})", "None", "{'accuracy': 1.0}")):
            with case(code):
                program = tmp_path / f"mine_{number}.py"
                ending = f"class Wrong(Toy):\n    name = 'wrong'\n    def fit(self, run):\n        return {code}\n"
                program.write_text(f"{TOYS.read_text()}\n\n{ending}")
                row = evaluate(EvaluationJob(task=f"{program}:Wrong", architecture=LITTLE, preset="smoke"))
                assert row.status == "failed"
                assert "FitResult" in str(row.error)
                assert row.to_json()
