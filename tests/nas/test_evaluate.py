from pathlib import Path

import pytest

from nas.evaluate import Job, evaluate
from search_spaces.errors import UserError
from toy_tasks import Toy

TOYS = Path(__file__).parent / "toy_tasks.py"
JOB = Job(task=f"{TOYS}:Toy", architecture=Toy.base, preset="smoke", seed=0)


def test_a_row_says_what_was_found_and_with_what() -> None:
    row = evaluate(JOB)
    assert (row.task, row.task_version, row.status, row.steps, row.data) == ("toy", 1, "complete", 1, "toy")
    assert row.architecture == Toy.base
    assert row.curve == ({"step": 1, "accuracy": row.validation["accuracy"]},)
    assert row.test["accuracy"] == row.validation["accuracy"] / 2
    assert {"python", "torch", "optuna"} <= set(row.versions)
    assert row.wall_s > 0


def test_an_evaluation_that_was_finished_but_not_recorded_is_not_repeated(tmp_path: Path) -> None:
    job = Job(task=JOB.task, architecture=Toy.base, preset="smoke", seed=0, folder=str(tmp_path / "kept"))
    assert evaluate(job) == evaluate(job)  # wall_s and all: the second is the first, read back


def test_a_mistake_that_concerns_every_architecture_is_not_a_failed_row() -> None:
    with pytest.raises(UserError, match="NoSuchTask"):
        evaluate(Job(task=f"{TOYS}:NoSuchTask", architecture=Toy.base, preset="smoke", seed=0))
