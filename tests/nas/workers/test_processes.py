"""The process that we begin, and those that train together."""

import subprocess
import sys
from pathlib import Path

import pytest

from nas.evaluation import evaluate
from nas.jobs import EvaluationJob, fresh_task
from nas.workers.together import evaluate_together
from search_spaces.errors import UserError
from toy_searches import TOYS


def digits(folder: Path) -> EvaluationJob:
    task = fresh_task("digits-vit", None)
    return EvaluationJob(task="digits-vit", architecture=task.base, preset="smoke", folder=str(folder))


def test_one_process_is_this_one(tmp_path: Path) -> None:
    job = digits(tmp_path / "a")
    assert evaluate_together(job, 1).metrics == evaluate(digits(tmp_path / "b")).metrics


@pytest.mark.slow
def test_two_processes_find_one_row_and_a_users_error_is_told_once(tmp_path: Path) -> None:
    job = digits(tmp_path / "a")
    row = evaluate_together(job, 2)
    assert row.status == "complete"
    assert row.metrics["accuracy"] > 0.5
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["row.json"]
    assert row.to_json().encode() == (tmp_path / "a" / "row.json").read_bytes()
    task = fresh_task("imagenet-vit", str(tmp_path))
    lacking = EvaluationJob(task="imagenet-vit", architecture=task.base, preset="smoke", data=str(tmp_path))
    with pytest.raises(UserError, match="data"):
        evaluate_together(lacking, 2)


@pytest.mark.slow
def test_where_one_of_two_dies_so_do_both_and_their_process(tmp_path: Path) -> None:
    program = (
        "from nas.jobs import EvaluationJob, fresh_task\nfrom nas.workers.together import evaluate_together\n"
        f"task = fresh_task('{TOYS}:Deadly', None)\n"
        "from search_spaces.parsing import parse_architecture\n"
        "if __name__ == '__main__':\n"
        "    architecture = parse_architecture('depth=1,heads=1', task.base)\n"
        f"    job = EvaluationJob(task='{TOYS}:Deadly', architecture=architecture, preset='smoke')\n"
        "    evaluate_together(job, 2)\n    print('it lives')\n"
    )
    script = tmp_path / "script.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
