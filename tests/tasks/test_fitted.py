"""What a training gave: plain numbers, or a reason that names the field and its value."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nas.evaluation import evaluate
from nas.jobs import EvaluationJob
from tasks.base import Fitted
from toy_rows import LITTLE
from toy_searches import TOYS


def fitted(**changes: Any) -> Fitted:
    return Fitted(**{"steps": 1, "metrics": {"loss": 0.5}, **changes})


@pytest.mark.parametrize("steps", [3, 3.0, torch.tensor(3), torch.tensor([3.0]), np.int64(3), np.array(3)])
def test_one_number_of_any_kind_is_a_plain_one(steps: Any) -> None:
    found = fitted(steps=steps, metrics={"loss": torch.tensor(0.5)}, test={"loss": np.float32(0.25)})
    assert (found.steps, found.metrics, found.test) == (3, {"loss": 0.5}, {"loss": 0.25})
    assert (type(found.steps), type(found.metrics["loss"]), type(found.test["loss"])) == (int, float, float)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"steps": torch.tensor([1, 2])}, r"Fitted\.steps must be one number, got tensor\(\[1, 2\]\)"),
        ({"steps": "many"}, r"Fitted\.steps must be one number, got 'many'"),
        ({"steps": None}, r"Fitted\.steps must be one number, got None"),
        ({"steps": 1.5}, r"Fitted\.steps must be a whole number .*got 1\.5"),
        ({"steps": -1}, r"Fitted\.steps must be a whole number .*got -1"),
        ({"steps": 10**22}, r"Fitted\.steps must be a whole number of at most 64 bits, got 10{22}"),
        ({"steps": float("nan")}, r"Fitted\.steps must be a whole number .*got nan"),
        ({"metrics": None}, r"Fitted\.metrics must be a mapping from names to numbers, got None"),
        ({"metrics": {"loss": torch.ones(3)}}, r"Fitted\.metrics\['loss'\] must be one number, got tensor"),
        ({"metrics": {"loss": "low"}}, r"Fitted\.metrics\['loss'\] must be one number, got 'low'"),
        ({"test": {3: 0.5}}, r"names in Fitted\.test must be text, got 3"),
        ({"test": {"loss": 10**400}}, r"Fitted\.test\['loss'\] must be one number"),
        ({"speeds": 7}, r"Fitted\.speeds must be a mapping"),
        ({"network": "resnet"}, r"Fitted\.network must be a torch\.nn\.Module or None, got 'resnet'"),
    ],
    ids=str,
)
def test_anything_else_names_the_field_and_the_value(changes: dict[str, Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        fitted(**changes)


def test_what_is_told_beside_the_metrics_is_left_out_and_said() -> None:
    with pytest.warns(UserWarning, match=r"Fitted\.measures\['a'\] must be one number, got 'x'; it is left out"):
        assert fitted(measures={"a": "x", "b": 2}).measures == {"b": 2.0}


@pytest.mark.parametrize("given", ["Fitted(steps=torch.ones(2), metrics={})", "None", "{'accuracy': 1.0}"])
def test_a_task_that_gives_something_else_fails_its_evaluation_with_a_reason(tmp_path: Path, given: str) -> None:
    program = tmp_path / "mine.py"
    ending = f"class Wrong(Toy):\n    name = 'wrong'\n    def fit(self, run):\n        return {given}\n"
    program.write_text(f"{TOYS.read_text()}\n\n{ending}")
    row = evaluate(EvaluationJob(task=f"{program}:Wrong", architecture=LITTLE, preset="smoke"))
    assert row.status == "failed"
    assert "Fitted" in str(row.error)
    assert row.to_json()
